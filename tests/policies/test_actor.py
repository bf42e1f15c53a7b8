from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rlgov.errors import PolicyError
from rlgov.policies.actor import MlpActor

SIZES = (4, 3, 2)
TORCH = {"tanh": torch.nn.Tanh, "relu": torch.nn.ReLU}


def network(activation: str, seed: int, hidden: int = 32) -> torch.nn.Sequential:
    torch.manual_seed(seed)
    return torch.nn.Sequential(
        torch.nn.Linear(20, hidden),
        TORCH[activation](),
        torch.nn.Linear(hidden, hidden),
        TORCH[activation](),
        torch.nn.Linear(hidden, sum(SIZES)),
    )


def actor_of(net: torch.nn.Sequential, activation: str) -> MlpActor:
    layers = [
        (layer.weight.detach().numpy(), layer.bias.detach().numpy())
        for layer in net
        if isinstance(layer, torch.nn.Linear)
    ]
    return MlpActor(layers, activation, SIZES)


@pytest.mark.parametrize("activation", ["tanh", "relu"])
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 1000), n=st.integers(1, 5))
def test_it_equals_torch(activation: str, seed: int, n: int) -> None:
    net = network(activation, seed)
    x = np.random.default_rng(seed).uniform(-5, 5, (n, 20)).astype(np.float32)
    theirs = net(torch.from_numpy(x)).detach().numpy()
    actor = actor_of(net, activation)
    np.testing.assert_allclose(actor.logits(x), theirs, atol=1e-5)
    assert actor.logits(x).dtype == np.float32
    best = [part.argmax(1) for part in np.split(actor.logits(x), np.cumsum(SIZES)[:-1], axis=1)]
    np.testing.assert_array_equal(actor.act(x), np.stack(best, 1))


def test_a_masked_action_is_never_taken() -> None:
    actor = actor_of(network("tanh", 1), "tanh")
    x = np.random.default_rng(0).uniform(-5, 5, (200, 20)).astype(np.float32)
    free = actor.act(x)
    assert len(set(free[:, 0].tolist())) > 1
    mask = np.ones(sum(SIZES), bool)
    mask[1:4] = False
    assert set(actor.act(x, mask)[:, 0].tolist()) == {0}
    np.testing.assert_array_equal(actor.act(x, mask)[:, 1:], free[:, 1:])


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_an_output_that_is_no_number_means_as_found_for_that_job_alone(bad: float) -> None:
    actor = actor_of(network("relu", 1), "relu")
    x = np.random.default_rng(0).uniform(-5, 5, (3, 20)).astype(np.float32)
    before = actor.act(x)
    x[1] = bad
    with np.errstate(invalid="ignore"):
        after = actor.act(x)
    assert after[1].tolist() == [0, 0, 0]
    np.testing.assert_array_equal(after[[0, 2]], before[[0, 2]])


def layer(out: int, into: int, value: float = 0.1) -> tuple[np.ndarray, np.ndarray]:
    return np.full((out, into), value, np.float32), np.zeros(out, np.float32)


@pytest.mark.parametrize(
    ("layers", "activation", "message"),
    [
        ([], "tanh", "at least one layer"),
        ([layer(9, 20)], "swish", "none of tanh, relu"),
        ([layer(8, 20)], "tanh", "8 logits, not 9"),
        ([layer(5, 20), layer(9, 6)], "tanh", "gives 5 values"),
        ([layer(9, 20, np.nan)], "tanh", "not finite"),
        ([(layer(9, 20)[0], np.zeros(8, np.float32))], "tanh", "does not go with"),
    ],
)
def test_layers_that_do_not_fit_are_refused(layers, activation: str, message: str) -> None:
    with pytest.raises(PolicyError, match=message):
        MlpActor(layers, activation, SIZES)
