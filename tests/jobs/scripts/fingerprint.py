"""What a job prints last: its own count of steps, and its weights to the last bit."""

import hashlib
import random

import numpy as np
import torch

random.seed(10)
np.random.seed(11)  # noqa: NPY002 - jobs do use the global one


def report(model, steps):
    digest = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(name.encode())
        digest.update(
            tensor.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().tobytes()
        )
    digest.update(torch.get_rng_state().numpy().tobytes())
    digest.update(repr((random.getstate(), np.random.get_state())).encode())  # noqa: NPY002
    print(f"steps={steps} weights={digest.hexdigest()}", flush=True)
