"""A training loop for the stand-in torch, with everything that may go wrong around a step."""

import contextlib
import os
import sys

import torch
from torch.utils.data.dataloader import _BaseDataLoaderIter


class Base(torch.optim.Optimizer):
    def __init__(self):
        super().__init__([1.0], {})

    def step(self, closure=None):
        return "stepped"


class Derived(Base):
    def step(self, closure=None):
        if closure == "fail":
            raise ValueError("closure")
        return super().step(closure)


class Wrapper(torch.optim.Optimizer):
    """Steps the inner optimizer only in every second call."""

    def __init__(self, inner):
        super().__init__([1.0], {})
        self.inner, self.calls = inner, 0

    def step(self, closure=None):
        self.calls += 1
        if self.calls % 2 == 0:
            self.inner.step()


Base().step  # noqa: B018 - both classes are wrapped now, as torch does
optimizer = Derived()
for _ in _BaseDataLoaderIter([[1], [2], [3]]):
    assert optimizer.step() == "stepped"
with contextlib.suppress(ValueError):
    optimizer.step("fail")
wrapper = Wrapper(optimizer)
for _ in range(4):
    wrapper.step()
child = os.fork()
if child == 0:
    optimizer.step()
    os._exit(0)
os.waitpid(child, 0)
torch.save("weights", os.devnull)
optimizer.step()
print("steps=6", torch.__version__, "%d.%d" % sys.version_info[:2])  # noqa: UP031
