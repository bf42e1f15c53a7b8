"""Counts the operations, bytes and launches of one training step from a model's architecture.

Everything is NumPy over a batch of jobs (arrays ``[n]``) and knows no board. Sources:

* operations of dense layers, 2 per weight and token forward and twice that backward:
  Kaplan et al. 2020, "Scaling laws for neural language models", section 2.1;
* attention's quadratic term and activation memory: Korthikanti et al. 2022, "Reducing activation
  recomputation in large transformer models", sections 4.1 and appendix A;
* one more forward pass under checkpointing: Chen et al. 2016, "Training deep nets with sublinear
  memory cost"; fused attention recomputes its scores backward: Dao et al. 2022, "FlashAttention";
* bytes and launches of an unfused (eager) layer: the tensors that each PyTorch operator reads and
  writes, counted per kind of layer (`rlgov.jobs.architecture`). They are the traffic without cache
  hits or re-reads between tiles.

``tests/jobs/test_counting.py`` compares the operations with ``torch.utils.flop_counter`` and the
bytes with a dispatch-mode count.
"""

from __future__ import annotations

import numpy as np

from rlgov.jobs.architecture import (
    RELATIVE_POSITIONS,
    Recipe,
    Shapes,
    adapter_parameters,
    layer_matrices,
    parameters,
    trainable,
    trainable_tensors,
)
from rlgov.work import FloatArray

ADAM_FLOP = 14.0
"""Operations of AdamW per trainable parameter (torch's update, counted by hand)."""

ADAM_FUSED_BYTE = 28.0
"""Fused AdamW in fp32: reads p, g, m, v and writes p, m, v."""

ADAM_FOREACH_BYTE = 80.0
"""Foreach AdamW in fp32: eight passes (decay, lerp, mul, addcmul, sqrt, div, add, addcdiv)."""

CLIP_BYTE = 12.0
"""Gradient clipping: one read for the norm, one read and write for the scale."""

FOREACH_TENSORS, FOREACH_ELEMENTS = 36.0, 320 * 65536.0
"""Tensors and elements that one multi-tensor launch covers (PyTorch's MultiTensorApply.cuh)."""

BACKWARD_BYTE, BACKWARD_BYTE_FROZEN = 1.8, 1.5
"""Activation bytes of a backward pass over a forward pass; without weight gradients the saved
inputs need not be read (first: dispatch-mode count; second: assumption from the same tensors)."""

BACKWARD_LAUNCH_FROZEN = 0.75
"""Launches of a backward pass without weight and bias gradients, over one with them."""

MIXED_BYTE, HALF_BYTE = 2.8, 2.2
"""Bytes an activation element under autocast, and with weights in half precision (norms and softmax
still compute in fp32): dispatch-mode counts give 2.5 to 3.2 and 1.9 to 2.8, by kind of layer."""

CAST_LAUNCHES = (16.0, 20.0)
"""Kernels that autocast adds to a layer, forward and backward (dispatch mode: 15-21 and 18-22)."""

MODULE_GCYCLE = 40e-6
"""Python's cost of one module call on an A78-class core: a BERT layer's forward pass of 18 modules
took 163 us on one x86 core near 3 GHz, 24 us of them in its 28 operators, so about 23 kilo-cycles
a module; times 1.7 for the slower core (assumption: draw it with a wide prior)."""

MICRO_BATCH_GCYCLE, STEP_GCYCLE, TENSOR_GCYCLE = 1.5e-3, 8e-3, 8e-6
"""The training loop: a micro-batch, a step, a parameter tensor (assumptions, likewise)."""


def layers_flop(a: Shapes, r: Recipe) -> tuple[FloatArray, FloatArray]:
    """Matrix operations of all layers forward, one micro-batch: (weights, attention).

    Weights: 2 per element and token, and for DeBERTa its relative positions through the query and
    key projections. Attention: scores and values, 4 x tokens x seq x width; DeBERTa's two
    position terms, 4 x tokens x 512 x width.
    """
    tokens = r.batch * r.seq
    wide = a.heads * a.head_dim
    relative = a.disentangled * RELATIVE_POSITIONS
    weights = 2 * layer_matrices(a) * tokens + 4 * relative * a.hidden**2
    weights = weights * a.layers + a.conv * 6 * a.hidden**2 * tokens
    return weights, a.layers * 4 * tokens * (r.seq + relative) * wide


def ends_flop(a: Shapes, r: Recipe) -> FloatArray:
    """Matrix operations outside the layers forward: embedding projection, head, pooler."""
    tokens = r.batch * r.seq
    project = (a.embed != a.hidden) * a.embed * a.hidden * tokens
    head = a.decoder * a.vocab * np.where(a.tied, a.embed, a.hidden) * tokens
    total: FloatArray = 2 * (project + head + a.pooler * a.hidden**2 * r.batch)
    return total


def matrix_flop(a: Shapes, r: Recipe) -> FloatArray:
    """Matrix operations of one step, ``[n, 3]`` (the optimizer has none).

    Backward is twice forward; a frozen model keeps only the half that carries gradients through
    (attention keeps both, since neither of its operands is a weight), plus its adapters.
    """
    weights, attention = layers_flop(a, r)
    ends = ends_flop(a, r)
    adapters = 2 * adapter_parameters(a, r) * r.batch * r.seq
    forward = weights + attention + ends + adapters
    through = np.where(r.frozen, 1.0, 2.0)
    again = 2.0 + 0.5 * r.fused_attention
    backward = through * (weights + ends) + again * attention + 2 * adapters
    backward = backward + r.checkpointing * (weights + attention + adapters)
    k = r.accumulation
    return np.stack([k * forward, k * backward, np.zeros_like(forward)], -1)


def vector_flop(a: Shapes, r: Recipe) -> FloatArray:
    """Operations beside the matrices, ``[n, 3]``: norms, softmax, activation, loss, AdamW.

    Per element: norm 8, residual and dropout 3, activation 10, softmax 5 with its scale and mask 4
    (hand counts; they are a few per cent of a step's operations).
    """
    tokens = r.batch * r.seq
    scores = r.batch * a.heads * r.seq**2
    layers = a.layers * (tokens * (22 * a.hidden + 10 * a.ffn) + 9 * scores)
    loss = a.decoder * 6 * tokens * a.vocab
    k = r.accumulation
    forward = layers + loss
    backward = 1.5 * forward + r.checkpointing * layers
    optimizer = (ADAM_FLOP + 4) * trainable(a, r)
    return np.stack([k * forward, k * backward, optimizer], -1)


def activation_elements(a: Shapes, r: Recipe) -> FloatArray:
    """Elements that one layer's forward pass reads and writes, one micro-batch (see `Style`).

    DeBERTa also projects its relative positions, repeats them for every sequence, and writes and
    gathers from two score tensors of 512 columns.
    """
    tokens = r.batch * r.seq
    wide, narrow = tokens * a.heads * a.head_dim, tokens * a.kv_heads * a.head_dim
    hidden, ffn = tokens * a.hidden, tokens * a.ffn
    drop = 2.25 * a.of_style("dropout")
    fused = r.fused_attention
    linear = 4 * hidden + 2 * wide + 2 * narrow
    attention = np.where(fused, 2.0, a.of_style("clone")) * wide + 2 * (wide + narrow)
    attention = attention + a.of_style("rotary") * (wide + narrow)
    scores = ~fused * (a.of_style("score") + drop) * r.batch * a.heads * r.seq**2
    residual = (a.of_style("norm") + 6 + 2 * drop) * hidden
    mlp = (2.0 + a.gated) * (hidden + ffn) + a.of_style("act") * ffn
    tables = 4 * RELATIVE_POSITIONS * (r.batch * a.heads * r.seq + (r.batch + 1) * a.hidden)
    return linear + attention + scores + residual + mlp + a.disentangled * tables


def _element_byte(r: Recipe) -> FloatArray:
    """Bytes an activation element."""
    return np.where(r.half_weights, HALF_BYTE, np.where(r.half, MIXED_BYTE, 4.0))


def _weight_bytes(a: Shapes, r: Recipe) -> tuple[FloatArray, FloatArray]:
    """Bytes of weights and their gradients a micro-batch: (forward, backward).

    Autocast reads every matrix in fp32 and writes it in half before use; a first gradient is
    written, each later one of an accumulation reads, adds and writes.
    """
    matrices = a.layers * layer_matrices(a) + a.decoder * a.vocab * a.embed
    stored = np.where(r.half, 2.0, 4.0)
    cast = np.where(r.half & ~r.half_weights, 6.0, 0.0)
    gradient = np.where(r.half_weights, 2.0, 4.0)
    later = (r.accumulation - 1) / r.accumulation
    written = trainable(a, r) * (gradient * (1 + 2 * later) + np.where(cast > 0, 4.0, 0.0))
    return matrices * (stored + cast), matrices * stored + written


def step_bytes(a: Shapes, r: Recipe) -> FloatArray:
    """Bytes of one step, ``[n, 3]``: activations, weights, gradients, optimizer states."""
    layers = a.layers * activation_elements(a, r) * _element_byte(r)
    tokens = r.batch * r.seq
    # Logits in fp32: written, upcast, log-softmax, and their gradients.
    loss = a.decoder * tokens * a.vocab * 4
    weights_forward, weights_backward = _weight_bytes(a, r)
    ratio = np.where(r.frozen, BACKWARD_BYTE_FROZEN, BACKWARD_BYTE)
    forward = layers + 5 * loss + weights_forward + 3 * tokens * a.embed * 4
    backward = layers * (ratio + r.checkpointing) + 6 * loss + weights_backward
    k = r.accumulation
    adam = np.where(r.fused_optimizer, ADAM_FUSED_BYTE, ADAM_FOREACH_BYTE)
    adam = adam * np.where(r.half_weights & ~r.frozen, 0.5, 1.0) + CLIP_BYTE
    return np.stack([k * forward, k * backward, adam * trainable(a, r)], -1)


def launches(a: Shapes, r: Recipe) -> FloatArray:
    """Kernel launches of one step, ``[n, 3]``."""
    autocast = r.half & ~r.half_weights
    adapters = 5 * np.where(r.lora_all, a.of_style("linear"), 2.0) * r.lora
    saved = a.of_style("launch_fused") * r.fused_attention
    layer = a.of_style("launch_forward") - saved + CAST_LAUNCHES[0] * autocast + adapters
    frozen = np.where(r.frozen, BACKWARD_LAUNCH_FROZEN, 1.0)
    back = frozen * a.of_style("launch_backward") - 2 * saved + 2 * adapters
    back = back + CAST_LAUNCHES[1] * autocast
    tensors = trainable_tensors(a, r)
    # Later gradients of an accumulation are added to the first: one launch a tensor.
    later = (r.accumulation - 1) / r.accumulation * tensors
    forward = a.layers * layer + 20 + 20 * a.decoder
    backward = a.layers * (back + r.checkpointing * layer) + 18 + later
    groups = np.maximum(tensors / FOREACH_TENSORS, trainable(a, r) / FOREACH_ELEMENTS) + 1
    optimizer = groups * np.where(r.fused_optimizer, 4.0, 14.0) + 10
    k = r.accumulation
    return np.stack([k * forward, k * backward, optimizer], -1)


def host_gcycles(a: Shapes, r: Recipe) -> FloatArray:
    """Giga-cycles of Python beside launching, ``[n, 3]``: modules, data, the training loop."""
    modules = a.layers * a.of_style("module") * MODULE_GCYCLE
    k = r.accumulation
    forward = k * (modules + MICRO_BATCH_GCYCLE)
    backward = k * r.checkpointing * modules
    optimizer = STEP_GCYCLE + TENSOR_GCYCLE * trainable_tensors(a, r)
    return np.stack([forward, backward, optimizer], -1)


def memory_gib(a: Shapes, r: Recipe, *, framework_gib: float = 1.5) -> FloatArray:
    """Memory of a job in GiB: weights, gradients, AdamW states, saved activations, logits.

    Activations after Korthikanti et al. (34 bsh + 5 abs^2 bytes a layer in half precision), the
    MLP's part scaled to its width and to twice with a gate; fp32 stores all but dropout masks
    twice as wide; fused attention keeps no scores.

    Args:
        a: Architectures.
        r: Recipes.
        framework_gib: CUDA context, libraries and the process itself (assumption).
    """
    tokens = r.batch * r.seq
    hidden, ffn = tokens * a.hidden, tokens * a.ffn
    scores = ~r.fused_attention * 5 * r.batch * a.heads * r.seq**2
    scores = scores * np.where(a.disentangled, 2.2, 1.0)
    layer = 18 * hidden + np.where(a.gated, 8, 4) * ffn + scores
    layer = layer * np.where(r.half, 1.0, 1.9) * np.where(r.frozen, 0.75, 1.0)
    kept = np.where(r.checkpointing, 2 * hidden * a.layers + layer, layer * a.layers)
    logits = a.decoder * tokens * a.vocab * 12
    weights = parameters(a) * np.where(r.half_weights, 2.0, np.where(r.half, 6.0, 4.0))
    states = trainable(a, r) * np.where(r.half_weights & ~r.frozen, 6.0, 12.0)
    return framework_gib + (weights + states + kept + logits) / 2**30
