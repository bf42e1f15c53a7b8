"""Architectures and training recipes as arrays, and the parameters that they have.

Launches and bytes of an unfused (eager) layer differ between kinds of layers (`STYLES`): they were
read off real models with a dispatch-mode counter, dropout taken as the one kernel that CUDA runs.
Disentangled attention: He et al. 2021, "DeBERTa", section 3.1. LoRA: Hu et al. 2021. BitFit: Ben
Zaken et al. 2022.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rlgov.work import FloatArray

BoolArray: TypeAlias = NDArray[np.bool_]

RELATIVE_POSITIONS = 512.0
"""Rows of DeBERTa's relative-position table: 2 x ``position_buckets`` (256)."""


class Style(NamedTuple):
    """How PyTorch runs one layer of a kind, in tensors read or written and kernels launched.

    Attributes:
        clone: Hidden-size elements copied to make heads contiguous.
        norm: Elements of both norms (RMS norms are not fused in eager PyTorch).
        rotary: Elements of the rotary embedding, per element of queries and keys.
        act: FFN-size elements of the activation (and of the gate's product).
        score: Score-size elements (``batch * heads * seq^2``) without dropout, unfused.
        dropout: 1 where the layer drops attention and two hidden tensors in training.
        launch_forward: Kernels forward, unfused attention, fp32.
        launch_backward: Kernels backward.
        launch_fused: Kernels saved forward by fused attention (twice that backward).
        module: Module calls.
        linear: Linear layers.
        tensor: Parameter tensors.
    """

    clone: float
    norm: float
    rotary: float
    act: float
    score: float
    dropout: float
    launch_forward: float
    launch_backward: float
    launch_fused: float
    module: float
    linear: float
    tensor: float


STYLES: dict[str, Style] = {
    "bert": Style(8, 4, 0, 2, 8, 1, 22, 38, 6, 18, 6, 16),
    "neox": Style(4, 4, 6, 2, 8, 0, 29, 48, 5, 12, 4, 12),
    "gpt2": Style(6, 4, 0, 17, 8, 1, 28, 42, 6, 13, 4, 12),
    "llama": Style(8, 16, 10, 5, 8, 0, 44, 78, 8, 13, 7, 9),
    "deberta": Style(16, 4, 0, 2, 24, 1, 52, 68, 0, 19, 6, 16),
}
STYLE_NAMES = tuple(STYLES)
_STYLE = np.array([STYLES[name] for name in STYLE_NAMES], float)


@dataclass(frozen=True)
class Shapes:
    """Architectures of n jobs; every field is an array ``[n]``.

    Attributes:
        layers: Transformer layers.
        hidden: Width of the residual stream.
        heads: Query heads.
        kv_heads: Key and value heads (fewer than ``heads`` under grouped queries).
        head_dim: Width of a head.
        ffn: Inner width of the MLP.
        vocab: Rows of the token embedding.
        embed: Width of the token embedding (a projection follows where it is not ``hidden``).
        positions: Rows of learned position and segment embeddings.
        gated: The MLP has a gate (three matrices).
        bias: Linear layers have biases.
        tied: The output head shares the token embedding.
        decoder: A causal language model with a head over the vocabulary (else a classifier).
        disentangled: DeBERTa's attention.
        shared: All layers share one set of weights (ALBERT).
        pooler: A dense layer on the first token.
        conv: A convolution of width 3 beside the first layer (DeBERTa-v2 xlarge).
        style: Index into `STYLE_NAMES`.
    """

    layers: FloatArray
    hidden: FloatArray
    heads: FloatArray
    kv_heads: FloatArray
    head_dim: FloatArray
    ffn: FloatArray
    vocab: FloatArray
    embed: FloatArray
    positions: FloatArray
    gated: BoolArray
    bias: BoolArray
    tied: BoolArray
    decoder: BoolArray
    disentangled: BoolArray
    shared: BoolArray
    pooler: BoolArray
    conv: BoolArray
    style: NDArray[np.intp]

    def take(self, index: NDArray[np.intp]) -> Shapes:
        """The architectures at ``index``."""
        return Shapes(**{f.name: getattr(self, f.name)[index] for f in fields(self)})

    def of_style(self, name: str) -> FloatArray:
        """A `Style` figure of every job."""
        column: FloatArray = _STYLE[self.style, Style._fields.index(name)]
        return column


@dataclass(frozen=True)
class Recipe:
    """How n jobs train; every field is an array ``[n]``.

    Attributes:
        batch: Sequences a micro-batch.
        seq: Tokens a sequence (its mean, padding included).
        accumulation: Micro-batches an optimizer step.
        half: Matrices run in bf16 or fp16.
        half_weights: Weights are stored in half precision too (no autocast).
        lora: Adapters are trained, the model is frozen.
        bitfit: Only biases are trained.
        rank: Rank of the adapters.
        lora_all: Adapters on every linear layer (else on queries and values).
        checkpointing: Activations are recomputed layer by layer.
        fused_attention: Scores never reach memory.
        fused_optimizer: AdamW runs as one kernel a group (else as foreach passes).
    """

    batch: FloatArray
    seq: FloatArray
    accumulation: FloatArray
    half: BoolArray
    half_weights: BoolArray
    lora: BoolArray
    bitfit: BoolArray
    rank: FloatArray
    lora_all: BoolArray
    checkpointing: BoolArray
    fused_attention: BoolArray
    fused_optimizer: BoolArray

    @property
    def frozen(self) -> BoolArray:
        """The model's matrices get no gradients."""
        return self.lora | self.bitfit


def layer_matrices(a: Shapes) -> FloatArray:
    """Elements of one layer's weight matrices: queries, keys, values, output, MLP."""
    wide = a.heads * a.head_dim
    narrow = a.kv_heads * a.head_dim
    return a.hidden * (2 * wide + 2 * narrow) + (2.0 + a.gated) * a.hidden * a.ffn


def layer_biases(a: Shapes) -> FloatArray:
    """Elements of one layer's biases (0 where the linear layers have none)."""
    wide = (a.heads + 2 * a.kv_heads) * a.head_dim
    return a.bias * (wide + 2 * a.hidden + a.ffn)


def parameters(a: Shapes) -> FloatArray:
    """Parameters of the model as published (with its pooler or language-model head)."""
    norm = a.hidden * np.where(a.of_style("norm") > 4, 1.0, 2.0)
    layer = layer_matrices(a) + layer_biases(a) + 2 * norm
    repeats = np.where(a.shared, 1.0, a.layers)
    project = (a.embed != a.hidden) * a.embed * a.hidden
    head = (a.decoder & ~a.tied) * a.vocab * a.hidden
    extra = a.disentangled * RELATIVE_POSITIONS * a.hidden + a.conv * 3 * a.hidden**2
    stem = (a.vocab + a.positions) * a.embed + project + norm
    total: FloatArray = stem + head + extra + a.pooler * a.hidden**2 + layer * repeats
    return total


def adapter_parameters(a: Shapes, r: Recipe) -> FloatArray:
    """Elements of LoRA's adapters as they are run: rank x (inputs + outputs) of each matrix."""
    wide = a.heads * a.head_dim
    narrow = a.kv_heads * a.head_dim
    some = 2 * a.hidden + wide + narrow
    every = some + 2 * a.hidden + wide + narrow + (2.0 + a.gated) * (a.hidden + a.ffn)
    return r.lora * a.layers * r.rank * np.where(r.lora_all, every, some)


def trainable(a: Shapes, r: Recipe) -> FloatArray:
    """Parameters that get gradients and optimizer states."""
    adapters = adapter_parameters(a, r) / np.where(a.shared, a.layers, 1.0)
    biases = np.where(a.shared, 1.0, a.layers) * layer_biases(a)
    frozen = np.where(r.lora, adapters, biases)
    return np.where(r.frozen, frozen, parameters(a))


def trainable_tensors(a: Shapes, r: Recipe) -> FloatArray:
    """Parameter tensors that get gradients."""
    linear = a.of_style("linear")
    adapted = 2 * np.where(r.lora_all, linear, np.minimum(2.0, linear))
    layer = np.where(r.lora, adapted, np.where(r.bitfit, linear + 2, a.of_style("tensor")))
    return layer * np.where(a.shared, 1.0, a.layers) + 4
