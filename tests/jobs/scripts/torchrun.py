"""Two ranks that step together."""

import torch
import torch.distributed as dist
from fingerprint import report
from torch.nn.parallel import DistributedDataParallel

torch.manual_seed(8)
dist.init_process_group("gloo")
model = DistributedDataParallel(torch.nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(6):
    optimizer.zero_grad()
    model(torch.randn(4, 8)).square().mean().backward()
    optimizer.step()
if dist.get_rank() == 0:
    report(model.module, 6)
dist.barrier()
dist.destroy_process_group()
