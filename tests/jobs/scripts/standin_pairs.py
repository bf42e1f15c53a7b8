"""Steps optimizers in the order of the letters given; ``|`` fetches a batch, ``-`` drops A."""

import sys

import torch
from torch.utils.data.dataloader import _BaseDataLoaderIter


class Nothing(torch.optim.Optimizer):
    def __init__(self):
        super().__init__([1.0], {})

    def step(self, closure=None):
        pass


optimizers = {name: Nothing() for name in "ABC"}
batches = _BaseDataLoaderIter([[0]] * 100)
for letter in sys.argv[1]:
    if letter == "|":
        next(batches)
    elif letter == "-":
        del optimizers["A"]
    else:
        optimizers[letter].step()
