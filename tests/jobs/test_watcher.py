"""Counting work: it changes no bit of a step, and agrees with torch's own counter."""

import hashlib

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.flop_counter import FlopCounterMode

from rlgov.jobs import hook


class Apply(nn.Module):
    """A linear layer and a function of what comes out."""

    def __init__(self, function):
        super().__init__()
        self.linear, self.function = nn.Linear(8, 8), function

    def forward(self, x):
        return self.function(self.linear(x))


class Recurrent(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.layers = kind(8, 16, 2, batch_first=True, dropout=0.1)

    def forward(self, x):
        return self.layers(x)[0]


def attention(x):
    heads = x.view(4, 16, 2, 4).transpose(1, 2)
    return functional.scaled_dot_product_attention(heads, heads, heads, is_causal=True)


TARGETS = torch.arange(64) % 8
MODULES = {
    "lstm": lambda: Recurrent(nn.LSTM),
    "gru": lambda: Recurrent(nn.GRU),
    "encoder": lambda: nn.TransformerEncoderLayer(8, 2, 16, batch_first=True),
    "attention": lambda: Apply(attention),
    "convolution": lambda: nn.Sequential(nn.Conv1d(16, 8, 3), nn.BatchNorm1d(8), nn.MaxPool1d(2)),
    "transposed": lambda: nn.ConvTranspose1d(16, 8, 3),
    "norms": lambda: nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8), nn.GELU(), nn.RMSNorm(8)),
    "smoothed": lambda: Apply(
        lambda x: functional.cross_entropy(x.reshape(-1, 8), TARGETS, label_smoothing=0.1)
    ),
    "logits": lambda: Apply(
        lambda x: functional.binary_cross_entropy_with_logits(x, torch.full_like(x, 0.3))
    ),
    "dropout": lambda: nn.Sequential(nn.Linear(8, 8), nn.Dropout1d(0.3), nn.AlphaDropout(0.2)),
    "reductions": lambda: Apply(
        lambda x: x.norm(dim=-1) + x.std(-1) + x.amax(-1) + x.logsumexp(-1)
    ),
    "einsum": lambda: Apply(lambda x: torch.einsum("bsd,btd->bst", x, x)),
}


def train(make, half, watched):
    """Three steps, the second one watched or not; bits of weights and generator, and the tally."""
    torch.manual_seed(0)
    model, x, tally = make(), torch.randn(4, 16, 8), None
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    for step in range(3):
        mode = hook._watcher(torch) if watched and step == 1 else None
        if mode is not None:
            tally = mode.tally = hook._Tally()
            mode.__enter__()
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=half):
            out = model(x)
        out.float().square().mean().backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if mode is not None:
            mode.__exit__(None, None, None)
    digest = hashlib.sha256(torch.get_rng_state().numpy().tobytes())
    for parameter in model.parameters():
        digest.update(parameter.detach().numpy().tobytes())
    return digest.hexdigest(), tally


@pytest.mark.filterwarnings("ignore:Mismatch dtype between input and weight")
@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("name", MODULES)
def test_watching_changes_no_bit(name, half):
    plain, _ = train(MODULES[name], half, watched=False)
    watched, tally = train(MODULES[name], half, watched=True)
    assert watched == plain
    assert tally.valid
    assert not tally.differs
    assert sum(tally.flop) + sum(tally.half) > 0
    assert (sum(tally.half) > 0) == half or name in ("lstm", "gru")


@pytest.mark.parametrize("function", [lambda x: x.prod(-1), lambda x: x.cumprod(-1)])
def test_what_torch_computes_another_way_is_noticed(function):
    _, tally = train(lambda: Apply(function), False, watched=True)
    assert tally.differs


# Torch's counter leaves out attention on the CPU: two products of 4 x 2 heads, 16 by 16 by 4, and
# two and a half times that on the way back.
ATTENTION = 3.5 * 2 * 2 * 4 * 2 * 16 * 16 * 4


@pytest.mark.parametrize(
    ("name", "left_out"),
    [("encoder", ATTENTION), ("attention", ATTENTION), ("convolution", 0), ("transposed", 0)],
)
def test_products_are_counted_as_torch_counts_them(name, left_out):
    torch.manual_seed(0)
    model, x = MODULES[name]().eval(), torch.randn(4, 16, 8)
    with FlopCounterMode(display=False) as theirs:
        model(x).square().mean().backward()
    mode = hook._watcher(torch)
    tally = mode.tally = hook._Tally()
    with mode:
        for parameter in model.parameters():
            parameter.grad = None
        model(x).square().mean().backward()
    counted, expected = sum(tally.flop), theirs.get_total_flops() + left_out
    # Ours has the elementwise operations as well, which matter in models as small as these.
    assert expected <= counted <= 1.5 * expected
    assert tally.launch[0] > 0
    assert tally.launch[1] > 0
