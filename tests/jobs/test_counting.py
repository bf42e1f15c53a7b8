from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlgov.jobs import architecture, counting
from rlgov.jobs.architecture import Recipe, Shapes
from rlgov.jobs.families import MODELS, Arch, model, shapes

BATCH, SEQ = 4, 64
VIEWS = (
    *("view", "t", "transpose", "permute", "expand", "slice", "unsqueeze", "squeeze", "select"),
    *("_unsafe_view", "detach", "alias", "split", "split_with_sizes", "as_strided", "reshape"),
    *("unbind", "chunk", "empty", "empty_like"),
)


def recipe(n: int = 1, **changes: Any) -> Recipe:
    plain: dict[str, Any] = {
        "batch": 8.0,
        "seq": 128.0,
        "accumulation": 1.0,
        "half": False,
        "half_weights": False,
        "lora": False,
        "bitfit": False,
        "rank": 0.0,
        "lora_all": False,
        "checkpointing": False,
        "fused_attention": False,
        "fused_optimizer": True,
    }
    plain.update(changes)
    return Recipe(**{name: np.array([value] * n) for name, value in plain.items()})


def one(name: str) -> Shapes:
    return shapes([model(name)])


def tiny(style: str, **changes: Any) -> Arch:
    """A model of two layers that a CPU runs in milliseconds."""
    base = Arch("tiny", "tiny", 0.0, 2, 128, 4, 512, 1000, 512, style)
    return replace(base, **changes)


def _bert(layers: int) -> Any:
    t = pytest.importorskip("transformers")
    config = t.BertConfig(
        **_common(layers), hidden_dropout_prob=0.0, attention_probs_dropout_prob=0
    )
    return t.BertForSequenceClassification(config)


def _neox(layers: int) -> Any:
    t = pytest.importorskip("transformers")
    return t.GPTNeoXForCausalLM(t.GPTNeoXConfig(**_common(layers)))


def _llama(layers: int) -> Any:
    t = pytest.importorskip("transformers")
    common = {**_common(layers), "tie_word_embeddings": True}
    return t.LlamaForCausalLM(t.LlamaConfig(num_key_value_heads=2, **common))


def _deberta(layers: int) -> Any:
    t = pytest.importorskip("transformers")
    common = _common(layers)
    common.pop("attn_implementation")
    config = t.DebertaV2Config(
        **common,
        relative_attention=True,
        position_buckets=256,
        max_relative_positions=-1,
        pos_att_type="p2c|c2p",
        share_att_key=True,
        norm_rel_ebd="layer_norm",
        position_biased_input=False,
        type_vocab_size=0,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        pooler_dropout=0.0,
    )
    return t.DebertaV2ForSequenceClassification(config)


def _common(layers: int) -> dict[str, Any]:
    return {
        "num_hidden_layers": layers,
        "hidden_size": 128,
        "num_attention_heads": 4,
        "intermediate_size": 512,
        "vocab_size": 1000,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "pad_token_id": 0,
        "attn_implementation": "eager",
    }


REAL: dict[str, tuple[Callable[[int], Any], Arch]] = {
    "bert": (_bert, tiny("bert", positions=514, pooler=True)),
    "neox": (_neox, tiny("neox", tied=False, decoder=True)),
    "llama": (_llama, tiny("llama", kv_heads=2, gated=True, bias=False, decoder=True)),
    "deberta": (_deberta, tiny("deberta", disentangled=True, pooler=True)),
}


def _inputs(arch: Arch) -> dict[str, Any]:
    torch = pytest.importorskip("torch")
    ids = torch.randint(3, 1000, (BATCH, SEQ), generator=torch.Generator().manual_seed(0))
    labels = ids if arch.decoder else torch.zeros(BATCH, dtype=torch.long)
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": labels}


@pytest.mark.parametrize("style", REAL)
def test_matrix_operations_equal_those_that_torch_counts(style: str) -> None:
    counter = pytest.importorskip("torch.utils.flop_counter").FlopCounterMode
    build, arch = REAL[style]
    network = build(2).train()
    with counter(display=False) as forward:
        loss = network(**_inputs(arch)).loss
    with counter(display=False) as backward:
        loss.backward()
    counted = counting.matrix_flop(shapes([arch]), recipe(batch=float(BATCH), seq=float(SEQ)))[0]
    assert counted[0] == pytest.approx(forward.get_total_flops(), rel=0.02)
    assert counted[1] == pytest.approx(backward.get_total_flops(), rel=0.02)
    assert counted[2] == 0


@pytest.mark.parametrize("style", REAL)
def test_parameters_equal_the_real_models(style: str) -> None:
    build, arch = REAL[style]
    real = sum(p.numel() for p in build(2).parameters())
    assert architecture.parameters(shapes([arch]))[0] == pytest.approx(real, rel=0.03)


def _traffic(run: Callable[[], Any]) -> tuple[Any, float, int]:
    """Result, bytes read and written, and operators that would be kernels."""
    torch = pytest.importorskip("torch")
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_leaves

    class Counter(TorchDispatchMode):  # type: ignore[misc]
        moved, kernels = 0.0, 0

        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            out = func(*args, **(kwargs or {}))
            if func.overloadpacket.__name__ not in VIEWS:
                leaves = [x for x in tree_leaves((args, kwargs, out)) if torch.is_tensor(x)]
                self.moved += sum(x.numel() * x.element_size() for x in leaves)
                self.kernels += 1
            return out

    with Counter() as counter:
        result = run()
    return result, counter.moved, counter.kernels


def _per_layer(style: str, precision: str) -> tuple[float, float, float, float]:
    """Bytes forward and backward, kernels forward and backward, of one more layer."""
    torch = pytest.importorskip("torch")
    build, arch = REAL[style]
    half = torch.bfloat16
    rows = []
    for layers in (2, 4):
        network = build(layers).train().to(half if precision == "bf16_weights" else torch.float32)
        with torch.autocast("cpu", half, enabled=precision == "bf16"):
            out, forward, kernels = _traffic(partial(network, **_inputs(arch)))
        _, backward, kernels_back = _traffic(out.loss.backward)
        rows.append((forward, backward, kernels, kernels_back))
    return tuple((b - a) / 2 for a, b in zip(*rows, strict=True))  # type: ignore[return-value]


@pytest.mark.parametrize("precision", ["fp32", "bf16", "bf16_weights"])
@pytest.mark.parametrize("style", REAL)
def test_bytes_and_launches_of_a_layer_are_near_what_torch_moves(
    style: str, precision: str
) -> None:
    _, arch = REAL[style]
    r = recipe(
        batch=float(BATCH),
        seq=float(SEQ),
        half=precision != "fp32",
        half_weights=precision == "bf16_weights",
    )
    one_layer, two_layers = (shapes([replace(arch, layers=n)]) for n in (1, 2))
    moved = (counting.step_bytes(two_layers, r) - counting.step_bytes(one_layer, r))[0]
    kernels = (counting.launches(two_layers, r) - counting.launches(one_layer, r))[0]
    # The real model ran without dropout, which is three kernels on a CPU and one with CUDA.
    drop = one_layer.of_style("dropout")[0]
    dropped = drop * 2.25 * (BATCH * arch.heads * SEQ**2 + 2 * BATCH * SEQ * arch.hidden)
    dropped *= {"fp32": 4.0, "bf16": counting.MIXED_BYTE}.get(precision, counting.HALF_BYTE)
    real = _per_layer(style, precision)
    assert moved[0] - dropped == pytest.approx(real[0], rel=0.25)
    assert moved[1] - counting.BACKWARD_BYTE * dropped == pytest.approx(real[1], rel=0.3)
    assert kernels[0] - 3 * drop == pytest.approx(real[2], rel=0.2)
    assert kernels[1] - 3 * drop == pytest.approx(real[3], rel=0.2)


@pytest.mark.parametrize("arch", MODELS, ids=lambda arch: arch.name)
def test_parameters_are_those_published(arch: Arch) -> None:
    assert architecture.parameters(shapes([arch]))[0] == pytest.approx(arch.published, rel=0.03)


def test_a_step_of_full_training_is_six_operations_a_parameter_and_token() -> None:
    a = one("pythia-410m")
    r = recipe(seq=32.0)
    matrices = 24 * architecture.layer_matrices(a)[0] + 50304 * 1024
    total = counting.matrix_flop(a, r).sum()
    # What is left over is attention's quadratic term: small at 32 tokens.
    assert total == pytest.approx(6 * matrices * 8 * 32, rel=0.02)


def test_lora_needs_no_weight_gradients() -> None:
    a = one("pythia-410m")
    full = counting.matrix_flop(a, recipe())[0]
    lora = counting.matrix_flop(a, recipe(lora=True, rank=8.0))[0]
    # Two thirds of the operations, plus attention's full backward pass and small adapters.
    assert lora.sum() / full.sum() == pytest.approx(2 / 3, abs=0.04)
    assert lora.sum() / full.sum() > 2 / 3
    states = counting.step_bytes(a, recipe(lora=True, rank=8.0))[0, 2]
    assert states < 0.01 * counting.step_bytes(a, recipe())[0, 2]


def test_bitfit_trains_the_biases_only() -> None:
    a = one("bert-base-uncased")
    r = recipe(bitfit=True)
    # 12 layers of 3 x 768 (queries, keys, values), 768, 3072 and 768.
    assert architecture.trainable(a, r)[0] == 12 * (5 * 768 + 3072)
    assert counting.matrix_flop(a, r)[0, 1] < 0.55 * counting.matrix_flop(a, recipe())[0, 1]


def test_checkpointing_adds_one_forward_pass_and_saves_memory() -> None:
    a = one("bert-large-uncased")
    kept = counting.matrix_flop(a, recipe())[0]
    redone = counting.matrix_flop(a, recipe(checkpointing=True))[0]
    assert redone[0] == kept[0]
    assert redone[1] - kept[1] == pytest.approx(kept[0], rel=0.001)
    assert counting.memory_gib(a, recipe(checkpointing=True)) < counting.memory_gib(a, recipe())


def test_accumulation_repeats_everything_but_the_optimizer() -> None:
    a = one("gpt2")
    once, four = recipe(), recipe(accumulation=4.0)
    for count in (counting.matrix_flop, counting.launches):
        assert count(a, four)[0, 0] == 4 * count(a, once)[0, 0]
        assert count(a, four)[0, 2] == count(a, once)[0, 2]
    moved, moved_once = counting.step_bytes(a, four)[0], counting.step_bytes(a, once)[0]
    assert moved[2] == moved_once[2]
    # Later gradients are added to the first: more than four times the bytes.
    assert moved[1] > 4 * moved_once[1]


def test_disentangled_attention_costs_more_than_plain() -> None:
    plain = replace(model("deberta-v3-base"), disentangled=False)
    a = shapes([model("deberta-v3-base"), plain])
    flop = counting.matrix_flop(a, recipe(2))[:, 0]
    assert flop[0] > 1.15 * flop[1]


def test_optimizer_bytes_follow_its_states() -> None:
    a = one("bert-base-uncased")
    parameters = architecture.parameters(a)[0]
    fused = counting.step_bytes(a, recipe())[0, 2]
    foreach = counting.step_bytes(a, recipe(fused_optimizer=False))[0, 2]
    assert fused == 40 * parameters
    assert foreach == 92 * parameters


def test_memory_of_bert_base_is_what_people_see() -> None:
    # States alone: 16 bytes a parameter; activations after Korthikanti et al. in fp32.
    small = counting.memory_gib(one("bert-base-uncased"), recipe(batch=1.0, seq=16.0))[0]
    assert small == pytest.approx(1.5 + 16 * 109.5e6 / 2**30, rel=0.05)
    large = counting.memory_gib(one("bert-base-uncased"), recipe(batch=32.0, seq=512.0))[0]
    assert 15 < large < 32


recipes = st.fixed_dictionaries(
    {
        "batch": st.sampled_from([1.0, 4.0, 32.0]),
        "seq": st.sampled_from([16.0, 128.0, 512.0]),
        "accumulation": st.sampled_from([1.0, 4.0]),
        "half": st.booleans(),
        "checkpointing": st.booleans(),
        "fused_attention": st.booleans(),
        "fused_optimizer": st.booleans(),
        "lora_all": st.booleans(),
    }
)
COUNTS = (
    counting.matrix_flop,
    counting.vector_flop,
    counting.step_bytes,
    counting.launches,
    counting.host_gcycles,
)


@given(recipes, st.sampled_from(["full", "lora", "bitfit"]), st.sampled_from(["batch", "seq"]))
def test_more_tokens_are_never_less_work(plain: dict[str, Any], method: str, key: str) -> None:
    own = {"lora": method == "lora", "bitfit": method == "bitfit", "rank": 8.0}
    less = recipe(len(MODELS), **plain, **own)
    more = recipe(len(MODELS), **{**plain, key: 2 * plain[key]}, **own)
    a = shapes()
    for count in COUNTS:
        assert np.all(count(a, more) >= count(a, less))
    for count in COUNTS[:3]:
        assert np.all(count(a, more)[:, :2] > count(a, less)[:, :2])
    assert np.all(counting.memory_gib(a, more) > counting.memory_gib(a, less))


@given(recipes)
def test_counts_are_finite_positive_and_equal_one_by_one(plain: dict[str, Any]) -> None:
    a, r = shapes(), recipe(len(MODELS), **plain)
    for count in COUNTS:
        together = count(a, r)
        assert together.shape == (len(MODELS), 3)
        assert np.all(np.isfinite(together))
        assert np.all(together >= 0)
        alone = count(shapes([MODELS[-1]]), recipe(**plain))
        np.testing.assert_allclose(together[-1], alone[0])


@given(recipes)
def test_a_frozen_model_is_never_more_work_than_full_training_backward(
    plain: dict[str, Any],
) -> None:
    a = shapes()
    full = counting.matrix_flop(a, recipe(len(MODELS), **plain))
    frozen = counting.matrix_flop(a, recipe(len(MODELS), **plain, bitfit=True))
    assert np.all(frozen[:, 1] < full[:, 1])
    np.testing.assert_array_equal(frozen[:, 0], full[:, 0])


# Seconds an epoch of BERT-base on SQuAD (88,524 windows of 384 tokens, fp32, full power limit), by
# micro-batch: traces of Zeus (SymbioticLab/Zeus, Apache-2.0). Peaks: NVIDIA's data sheets.
ZEUS = {
    "V100": (15.7e12, 900e9, 32.0, {8: 1573.05, 12: 1594.155, 32: 1733.285, 56: 1766.005}),
    "P100": (9.3e12, 732e9, 16.0, {4: 2804.655, 8: 2791.79, 12: 2888.68, 24: 2952.215}),
}


@pytest.mark.parametrize("card", ZEUS)
def test_counts_agree_with_measured_training(card: str) -> None:
    peak_flop, peak_byte, card_gib, epochs = ZEUS[card]
    a = one("bert-base-uncased")
    for batch, epoch_s in epochs.items():
        r = recipe(batch=float(batch), seq=384.0, fused_optimizer=False)
        step_s = epoch_s * batch / 88524
        flop = (counting.matrix_flop(a, r) + counting.vector_flop(a, r)).sum()
        # A well-used card: neither more than it can, nor far less than BERT is known to reach.
        assert 0.6 < flop / step_s / peak_flop < 0.85
        assert 0.1 < counting.step_bytes(a, r).sum() / step_s / peak_byte < 0.6
        assert counting.memory_gib(a, r)[0] < card_gib
