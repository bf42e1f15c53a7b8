"""Two optimizers that both step in every batch of a loader."""

import torch
from fingerprint import report
from torch.utils.data import DataLoader

torch.manual_seed(2)
generator, critic = torch.nn.Linear(4, 8), torch.nn.Linear(8, 1)
of_critic = torch.optim.Adam(critic.parameters(), lr=1e-2)
of_generator = torch.optim.SGD(generator.parameters(), lr=1e-2, momentum=0.9)
batches = 0
for real in DataLoader(torch.randn(30, 8), batch_size=5):
    of_critic.zero_grad()
    (critic(generator(torch.randn(5, 4)).detach()).mean() - critic(real).mean()).backward()
    of_critic.step()
    of_generator.zero_grad()
    (-critic(generator(torch.randn(5, 4))).mean()).backward()
    of_generator.step()
    batches += 1
report(torch.nn.ModuleList([generator, critic]), batches)
