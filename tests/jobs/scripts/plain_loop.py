"""A plain loop; the optimizer is hand-written and never calls the base class's step."""

import torch
from fingerprint import report
from torch.utils.data import DataLoader, TensorDataset


class Signum(torch.optim.Optimizer):
    def __init__(self, params, lr=0.01):
        super().__init__(params, {"lr": lr})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.add_(p.grad.sign(), alpha=-group["lr"])


torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Embedding(50, 16), torch.nn.Flatten(), torch.nn.Linear(128, 2))
data = TensorDataset(torch.randint(0, 50, (24, 8)), torch.randint(0, 2, (24,)))
optimizer = Signum(model.parameters())
steps = 0
for _ in range(3):
    for tokens, labels in DataLoader(data, batch_size=4, shuffle=True):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(tokens), labels).backward()
        optimizer.step()
        steps += 1
report(model, steps)
