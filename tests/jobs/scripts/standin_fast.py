"""Far more steps than a socket holds; the last line goes out before any of them is read."""

import sys

import torch


class Nothing(torch.optim.Optimizer):
    def __init__(self):
        super().__init__([1.0], {})

    def step(self, closure=None):
        pass


optimizer = Nothing()
for _ in range(int(sys.argv[1])):
    optimizer.step()
print("done", flush=True)
