"""Accelerate with gradient accumulation; the epoch's length is no multiple of it."""

import torch
from accelerate import Accelerator
from fingerprint import report
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(4)
accelerator = Accelerator(cpu=True, gradient_accumulation_steps=4)
model = torch.nn.Linear(8, 1)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
loader = DataLoader(TensorDataset(torch.randn(20, 8), torch.randn(20, 1)), batch_size=2)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
steps = 0
for _ in range(3):
    for x, y in loader:
        with accelerator.accumulate(model):
            accelerator.backward(torch.nn.functional.mse_loss(model(x), y))
            steps += accelerator.sync_gradients
            optimizer.step()
            optimizer.zero_grad()
report(accelerator.unwrap_model(model), steps)
