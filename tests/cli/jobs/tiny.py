"""A small training job that knows nothing of rlgov: ``tiny.py how [steps]``."""

import hashlib
import os
import signal
import sys
from pathlib import Path

import torch


def parent_maps() -> str:
    """The libraries of whoever started this job."""
    return Path(f"/proc/{os.getppid()}/maps").read_text()


how = sys.argv[1]
steps = int(sys.argv[2]) if len(sys.argv) > 2 else 60
torch.manual_seed(0)
model = torch.nn.Sequential(
    torch.nn.Linear(64, 512), torch.nn.ReLU(), torch.nn.Dropout(0.1), torch.nn.Linear(512, 4)
)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
print("naïve \x1b[31mcolour\x1b[0m\ttab", flush=True)
for _ in range(steps):
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(torch.randn(128, 64)), torch.arange(128) % 4)
    loss.backward()
    optimizer.step()
digest = hashlib.sha256(b"".join(p.detach().numpy().tobytes() for p in model.parameters()))
print(f"loss {loss.item()!r} weights {digest.hexdigest()}", flush=True)
if how == "parent":
    print(f"parent has torch: {'libtorch' in parent_maps()}")
if how == "fail":
    sys.exit(3)
if how == "wait":
    print("ready", flush=True)
    signal.pause()
