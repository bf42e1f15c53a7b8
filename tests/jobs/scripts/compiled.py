"""``torch.compile`` of the model, or of the whole step with the optimizer in it."""

import sys

import torch
from fingerprint import report

torch.manual_seed(6)


class Plain(torch.optim.Optimizer):
    def __init__(self, params, lr=0.1):
        super().__init__(params, {"lr": lr})

    def step(self, closure=None):
        with torch.no_grad():
            for group in self.param_groups:
                for p in group["params"]:
                    p.sub_(p.grad * group["lr"])


model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
backend, what = sys.argv[1], sys.argv[2]
optimizer = Plain(model.parameters()) if what == "step" else torch.optim.AdamW(model.parameters())
forward = torch.compile(model, backend=backend)


@torch.compile(backend=backend, fullgraph=True)
def step():
    optimizer.step()


steps = 0
for _ in range(9):
    optimizer.zero_grad()
    forward(torch.randn(4, 8)).square().mean().backward()
    step() if what == "step" else optimizer.step()
    steps += 1
print("graphs", torch._dynamo.utils.counters["stats"]["unique_graphs"])
report(model, steps)
