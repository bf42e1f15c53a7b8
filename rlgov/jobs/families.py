"""Published language models as numbers: what the job population is drawn from.

Each row restates the ``config.json`` that its authors published on the Hugging Face hub, and the
parameter count of the paper or model card; `rlgov.jobs.architecture.parameters` must reproduce the
count (see the tests). BERT miniatures: Turc et al. 2019. MiniLM: Wang et al. 2020. ELECTRA: Clark
et al. 2020. ALBERT: Lan et al. 2020. DeBERTa: He et al. 2021, 2023. Pythia: Biderman et al. 2023.
OPT: Zhang et al. 2022. The rest: their model cards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from rlgov.errors import ConfigError
from rlgov.jobs.architecture import STYLE_NAMES, Shapes


@dataclass(frozen=True)
class Arch:
    """One model (see `rlgov.jobs.architecture.Shapes` for the fields that both have).

    Attributes:
        name: Its name on the hub, without the owner.
        family: The line it belongs to; held-out splits leave out whole families.
        published: Parameters as published.
        context: Longest sequence it was made for.
        style: How PyTorch runs its layers.
        instruct: Tuned to follow instructions.
    """

    name: str
    family: str
    published: float
    layers: int
    hidden: int
    heads: int
    ffn: int
    vocab: int
    context: int
    style: str
    positions: int = 0
    kv_heads: int = 0
    head_dim: int = 0
    embed: int = 0
    gated: bool = False
    bias: bool = True
    tied: bool = True
    decoder: bool = False
    disentangled: bool = False
    shared: bool = False
    pooler: bool = False
    conv: bool = False
    instruct: bool = False


def _bert(name: str, published: float, layers: int, hidden: int) -> Arch:
    heads = hidden // 64
    ffn = 4 * hidden
    return Arch(
        name, "bert", published, layers, hidden, heads, ffn, 30522, 512, "bert", 514, pooler=True
    )


def _encoder(
    name: str,
    family: str,
    published: float,
    shape: tuple[int, int, int, int],
    vocab: int = 30522,
    *,
    positions: int = 514,
    embed: int = 0,
    shared: bool = False,
    pooler: bool = True,
) -> Arch:
    layers, hidden, heads, ffn = shape
    return Arch(
        name,
        family,
        published,
        layers,
        hidden,
        heads,
        ffn,
        vocab,
        512,
        "bert",
        positions,
        embed=embed,
        shared=shared,
        pooler=pooler,
    )


def _deberta(
    name: str, published: float, layers: int, hidden: int, heads: int, *, conv: bool = False
) -> Arch:
    return Arch(
        name,
        "deberta",
        published,
        layers,
        hidden,
        heads,
        4 * hidden,
        128100,
        512,
        "deberta",
        disentangled=True,
        pooler=True,
        conv=conv,
    )


def _pythia(name: str, published: float, layers: int, hidden: int, heads: int) -> Arch:
    return Arch(
        name,
        "pythia",
        published,
        layers,
        hidden,
        heads,
        4 * hidden,
        50304,
        2048,
        "neox",
        tied=False,
        decoder=True,
    )


def _gpt2(name: str, published: float, layers: int, hidden: int) -> Arch:
    heads = hidden // 64
    ffn = 4 * hidden
    return Arch(
        name, "gpt2", published, layers, hidden, heads, ffn, 50257, 1024, "gpt2", 1024, decoder=True
    )


def _opt(name: str, published: float, layers: int, hidden: int, heads: int, embed: int = 0) -> Arch:
    return Arch(
        name,
        "opt",
        published,
        layers,
        hidden,
        heads,
        4 * hidden,
        50272,
        2048,
        "bert",
        2050,
        embed=embed,
        decoder=True,
    )


def _llama(
    name: str,
    family: str,
    published: float,
    shape: tuple[int, int, int, int, int],
    vocab: int,
    *,
    head_dim: int = 0,
    tied: bool = True,
    instruct: bool = False,
) -> Arch:
    layers, hidden, heads, kv_heads, ffn = shape
    return Arch(
        name,
        family,
        published,
        layers,
        hidden,
        heads,
        ffn,
        vocab,
        2048,
        "llama",
        kv_heads=kv_heads,
        head_dim=head_dim,
        gated=True,
        bias=False,
        tied=tied,
        decoder=True,
        instruct=instruct,
    )


MODELS: tuple[Arch, ...] = (
    _bert("bert-tiny", 4.4e6, 2, 128),
    _bert("bert-mini", 11.2e6, 4, 256),
    _bert("bert-small", 28.8e6, 4, 512),
    _bert("bert-medium", 41.4e6, 8, 512),
    _bert("bert-base-uncased", 109.5e6, 12, 768),
    _bert("bert-large-uncased", 335.1e6, 24, 1024),
    _encoder("roberta-base", "roberta", 124.6e6, (12, 768, 12, 3072), 50265, positions=515),
    _encoder("roberta-large", "roberta", 355.4e6, (24, 1024, 16, 4096), 50265, positions=515),
    _encoder(
        "distilbert-base-uncased",
        "distilbert",
        66.4e6,
        (6, 768, 12, 3072),
        positions=512,
        pooler=False,
    ),
    _encoder(
        "electra-small",
        "electra",
        13.5e6,
        (12, 256, 4, 1024),
        positions=514,
        embed=128,
        pooler=False,
    ),
    _encoder("electra-base", "electra", 108.9e6, (12, 768, 12, 3072), pooler=False),
    _encoder("electra-large", "electra", 334.1e6, (24, 1024, 16, 4096), pooler=False),
    _encoder("minilm-l6-h384", "minilm", 22.7e6, (6, 384, 12, 1536)),
    _encoder("minilm-l12-h384", "minilm", 33.4e6, (12, 384, 12, 1536)),
    _encoder(
        "albert-base-v2", "albert", 11.7e6, (12, 768, 12, 3072), 30000, embed=128, shared=True
    ),
    _encoder(
        "albert-large-v2", "albert", 17.7e6, (24, 1024, 16, 4096), 30000, embed=128, shared=True
    ),
    _deberta("deberta-v3-xsmall", 70e6, 12, 384, 6),
    _deberta("deberta-v3-small", 142e6, 6, 768, 12),
    _deberta("deberta-v3-base", 184e6, 12, 768, 12),
    _deberta("deberta-v3-large", 435e6, 24, 1024, 16),
    _deberta("deberta-v2-xlarge", 900e6, 24, 1536, 24, conv=True),
    _pythia("pythia-14m", 14_067_712, 6, 128, 4),
    _pythia("pythia-31m", 30_494_720, 6, 256, 8),
    _pythia("pythia-70m", 70_426_624, 6, 512, 8),
    _pythia("pythia-160m", 162_322_944, 12, 768, 12),
    _pythia("pythia-410m", 405_334_016, 24, 1024, 16),
    _pythia("pythia-1b", 1_011_781_632, 16, 2048, 8),
    _pythia("pythia-1.4b", 1_414_647_808, 24, 2048, 16),
    _gpt2("gpt2", 124.4e6, 12, 768),
    _gpt2("gpt2-medium", 354.8e6, 24, 1024),
    _gpt2("gpt2-large", 774.0e6, 36, 1280),
    _opt("opt-125m", 125.2e6, 12, 768, 12),
    _opt("opt-350m", 331.2e6, 24, 1024, 16, 512),
    _opt("opt-1.3b", 1315.8e6, 24, 2048, 32),
    _llama("smollm-135m", "smollm", 134.5e6, (30, 576, 9, 3, 1536), 49152),
    _llama("smollm-360m", "smollm", 361.8e6, (32, 960, 15, 5, 2560), 49152),
    _llama("smollm2-1.7b", "smollm", 1711.4e6, (24, 2048, 32, 32, 8192), 49152),
    _llama("gemma-3-270m", "gemma", 268.1e6, (18, 640, 4, 1, 2048), 262144, head_dim=256),
    _llama("gemma-3-1b", "gemma", 999.9e6, (26, 1152, 4, 1, 6912), 262144, head_dim=256),
    _llama(
        "qwen2.5-0.5b-instruct", "instruct", 494.0e6, (24, 896, 14, 2, 4864), 151936, instruct=True
    ),
    _llama(
        "qwen2.5-1.5b-instruct",
        "instruct",
        1543.7e6,
        (28, 1536, 12, 2, 8960),
        151936,
        instruct=True,
    ),
    _llama(
        "llama-3.2-1b-instruct",
        "instruct",
        1235.8e6,
        (16, 2048, 32, 8, 8192),
        128256,
        instruct=True,
    ),
    _llama(
        "tinyllama-1.1b-chat",
        "instruct",
        1100.0e6,
        (22, 2048, 32, 4, 5632),
        32000,
        tied=False,
        instruct=True,
    ),
)
"""Every model, in a fixed order (labels of a drawn job are indices into it)."""

FAMILIES: tuple[str, ...] = tuple(dict.fromkeys(model.family for model in MODELS))
ENCODER_FAMILIES = tuple(dict.fromkeys(m.family for m in MODELS if not m.decoder))
DECODER_FAMILIES = tuple(dict.fromkeys(m.family for m in MODELS if m.decoder))


def model(name: str) -> Arch:
    """The model called ``name``.

    Raises:
        ConfigError: There is none; the message lists those there are.
    """
    for arch in MODELS:
        if arch.name == name:
            return arch
    raise ConfigError(f"no model {name!r}; there are {', '.join(m.name for m in MODELS)}")


def members(families: Sequence[str]) -> dict[str, NDArray[np.intp]]:
    """Indices into `MODELS` of each of ``families``.

    Raises:
        ConfigError: A family does not exist.
    """
    unknown = sorted(set(families) - set(FAMILIES))
    if unknown:
        raise ConfigError(f"no model family {unknown[0]!r}; there are {', '.join(FAMILIES)}")
    return {f: np.array([i for i, m in enumerate(MODELS) if m.family == f]) for f in families}


def _column(arch: Arch, name: str) -> float | bool | int:
    derived: dict[str, float | int] = {
        "kv_heads": arch.kv_heads or arch.heads,
        "head_dim": arch.head_dim or arch.hidden // arch.heads,
        "embed": arch.embed or arch.hidden,
        "style": STYLE_NAMES.index(arch.style),
    }
    value: float | bool | int = derived.get(name, getattr(arch, name))
    return value


def shapes(models: Sequence[Arch] = MODELS) -> Shapes:
    """The models as arrays, for counting."""
    columns = {}
    for field in fields(Shapes):
        values = [_column(arch, field.name) for arch in models]
        kind = np.intp if field.name == "style" else bool if isinstance(values[0], bool) else float
        columns[field.name] = np.array(values, kind)
    return Shapes(**columns)
