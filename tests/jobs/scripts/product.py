"""A product over a dimension: torch has two formulas for its gradient, which round differently."""

import torch
from fingerprint import report

torch.manual_seed(9)
model = torch.nn.Linear(8, 8)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
for _ in range(8):
    optimizer.zero_grad()
    model(torch.randn(16, 8)).prod(-1).square().mean().backward()
    optimizer.step()
report(model, 8)
