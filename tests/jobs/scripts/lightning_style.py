"""A closure runs forward and backward inside ``step``; a scheduler wraps the bound method."""

import torch
from fingerprint import report

torch.manual_seed(3)
model = torch.nn.Sequential(torch.nn.Linear(6, 12), torch.nn.Dropout(0.1), torch.nn.Linear(12, 1))
optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=4)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
x, y = torch.randn(16, 6), torch.randn(16, 1)


def closure():
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(model(x), y)
    loss.backward()
    return loss


steps = 0
for _ in range(7):
    optimizer.step(closure)
    scheduler.step()
    steps += 1
report(model, steps)
