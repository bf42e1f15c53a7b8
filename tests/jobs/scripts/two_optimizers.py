"""Two networks against each other: the critic learns every batch, the generator every third."""

import torch
from fingerprint import report

torch.manual_seed(1)
generator, critic = torch.nn.Linear(4, 8), torch.nn.Linear(8, 1)
slow = torch.optim.RMSprop(generator.parameters(), lr=1e-2)
fast = torch.optim.Adam(critic.parameters(), lr=1e-2)
batches = 0
for batch in range(15):
    real = torch.randn(6, 8)
    if batch % 3 == 0:
        slow.zero_grad()
        (-critic(generator(torch.randn(6, 4))).mean()).backward()
        slow.step()
    fast.zero_grad()
    (critic(generator(torch.randn(6, 4)).detach()).mean() - critic(real).mean()).backward()
    fast.step()
    batches += 1
report(torch.nn.ModuleList([generator, critic]), batches)
