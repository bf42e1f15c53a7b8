"""Runs out of memory in the third batch and starts again with less of it, as Trainer can."""

import torch
from accelerate.utils import find_executable_batch_size
from fingerprint import report
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(12)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Dropout(0.1), torch.nn.Linear(16, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
data = TensorDataset(torch.randn(48, 8), torch.randn(48, 1))


@find_executable_batch_size(starting_batch_size=8)
def train(batch_size):
    steps = 0
    for number, (x, y) in enumerate(DataLoader(data, batch_size=batch_size)):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(x), y)
        if batch_size == 8 and number == 2:
            raise RuntimeError("CUDA out of memory.")
        loss.backward()
        optimizer.step()
        steps += 1
    return steps


report(model, 2 + train())
