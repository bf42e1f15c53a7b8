"""Ends as told: fails, exits, waits to be interrupted, or trains nothing."""

import os
import signal
import sys
import time

import torch

how = sys.argv[1]
weight = torch.nn.Parameter(torch.ones(3))
optimizer = torch.optim.SGD([weight], lr=0.1)
for _ in range(7):
    if how == "no_steps":
        break
    weight.sum().backward()
    optimizer.step()
if how == "raise":
    raise ValueError("out of luck")
if how == "exit":
    sys.exit(42)
if how == "kill":
    os.kill(os.getpid(), signal.SIGKILL)
if how == "interrupt":
    raise KeyboardInterrupt
if how == "wait":
    print("ready", flush=True)
    time.sleep(60)
