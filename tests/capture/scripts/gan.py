"""Two networks against each other: in every round the critic is updated twice, and then the generator once."""

import torch
from torch import nn

critic = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
generator = nn.Linear(4, 8)
critic_optimizer = torch.optim.Adam(critic.parameters())
generator_optimizer = torch.optim.Adam(generator.parameters())
bce = nn.BCEWithLogitsLoss()
for _ in range(10):
    for _ in range(2):
        real, fake = critic(torch.randn(16, 8)), critic(generator(torch.randn(16, 4)).detach())
        critic_optimizer.zero_grad()
        (bce(real, torch.ones_like(real)) + bce(fake, torch.zeros_like(fake))).backward()
        critic_optimizer.step()
    generator_optimizer.zero_grad()
    judged = critic(generator(torch.randn(16, 4)))
    bce(judged, torch.ones_like(judged)).backward()
    generator_optimizer.step()
