"""Loader workers in processes of their own, one slow item, an evaluation that takes long."""

import time

import torch
from fingerprint import report
from torch.utils.data import DataLoader, Dataset


class Rows(Dataset):
    def __init__(self, count, slow_s):
        self.rows, self.slow_s = torch.randint(0, 50, (count, 6)), slow_s

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        if i == 20:
            time.sleep(self.slow_s)
        return {"ids": self.rows[i], "y": self.rows[i, 0].float()}


torch.manual_seed(7)
model = torch.nn.Sequential(torch.nn.Embedding(50, 4), torch.nn.Flatten(), torch.nn.Linear(24, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
train, held_out = Rows(40, 0.8), Rows(24, 0.4)
steps = 0
for batch in DataLoader(train, batch_size=4, num_workers=1):
    optimizer.zero_grad()
    (model(batch["ids"])[:, 0] - batch["y"]).square().mean().backward()
    optimizer.step()
    steps += 1
    if steps == 7:
        for other in DataLoader(held_out, batch_size=4):
            model(other["ids"])
report(model, steps)
