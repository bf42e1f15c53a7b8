"""The actor that reads a belief: its logits start as minus the regrets; PPO goes on from there."""

from __future__ import annotations

from typing import Any

import torch
from stable_baselines3.common.policies import ActorCriticPolicy
from torch import Tensor, nn


class _Extractor(nn.Module):
    """Hidden layers of actor and critic; the actor's latent has the regrets beside it."""

    def __init__(
        self, inputs: int, hidden: list[int], activation: type[nn.Module], skip: slice
    ) -> None:
        super().__init__()
        self.policy_net = _layers(inputs, hidden, activation)
        self.value_net = _layers(inputs, hidden, activation)
        self._skip = skip
        self.latent_dim_pi = hidden[-1] + skip.stop - skip.start
        self.latent_dim_vf = hidden[-1]

    def forward(self, features: Tensor) -> tuple[Tensor, Tensor]:
        return self.forward_actor(features), self.forward_critic(features)

    def forward_actor(self, features: Tensor) -> Tensor:
        return torch.cat([self.policy_net(features), features[:, self._skip]], dim=1)

    def forward_critic(self, features: Tensor) -> Tensor:
        latent: Tensor = self.value_net(features)
        return latent


class RegretPolicy(ActorCriticPolicy):
    """Logits are a network's output minus ``sharpness`` times the belief's regrets.

    Args:
        skip: Where the regrets lie in the observation.
        sharpness: Initial weight of the regrets.
        **kwargs: Of Stable-Baselines3's policy, which passes its own by name.
    """

    def __init__(self, *args: Any, skip: slice, sharpness: float, **kwargs: Any) -> None:
        self._skip = skip
        self._sharpness = sharpness
        super().__init__(*args, **kwargs)

    def _build_mlp_extractor(self) -> None:
        arch = self.net_arch
        hidden = list(arch["pi"]) if isinstance(arch, dict) else list(arch)
        self.mlp_extractor = _Extractor(  # type: ignore[assignment]
            self.features_dim, hidden, self.activation_fn, self._skip
        )

    def _build(self, lr_schedule: Any) -> None:
        super()._build(lr_schedule)
        regrets = self._skip.stop - self._skip.start
        last = self.action_net
        if not isinstance(last, nn.Linear):
            raise TypeError("Stable-Baselines3 no longer ends the actor with a linear layer")
        with torch.no_grad():
            last.weight.mul_(0.01)
            last.weight[:, -regrets:] = -self._sharpness * torch.eye(regrets)
            last.bias.zero_()


def _layers(inputs: int, hidden: list[int], activation: type[nn.Module]) -> nn.Sequential:
    modules: list[nn.Module] = []
    for width in hidden:
        modules += [nn.Linear(inputs, width), activation()]
        inputs = width
    return nn.Sequential(*modules)
