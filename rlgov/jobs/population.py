"""Draws fine-tuning jobs: what to train, how, and what feeds it.

Every figure of a drawn job's `rlgov.work.Work` is counted from its architecture and recipe
(`rlgov.jobs.counting`); what cannot be counted (kernel choice, Python, the loader, waiting) is
drawn from the spreads given here. No board is in it: the `Roofline` only rejects jobs whose steps
would be too short or too long to be somebody's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlgov.errors import ConfigError
from rlgov.jobs import architecture, counting
from rlgov.jobs.architecture import Recipe, Shapes
from rlgov.jobs.families import FAMILIES, MODELS, members, shapes
from rlgov.jobs.jobbatch import JobBatch, Roofline
from rlgov.jobs.rules import RULE_KEYS, Draws, Rule, force, matches
from rlgov.work import FloatArray, Work

SPLITS = ("train", "validation", "heldout")
METHODS = ("full", "lora", "bitfit")
PRECISIONS = ("fp32", "bf16", "fp16", "bf16_weights")
"""``bf16`` and ``fp16`` run under autocast; ``bf16_weights`` stores the weights in bf16."""

MAX_ROUNDS = 200
_SHAPES = shapes()
_INSTRUCT = np.array([m.instruct for m in MODELS])
_DECODER = np.array([m.decoder for m in MODELS])
_CONTEXT = np.array([float(m.context) for m in MODELS])
_FAMILY = np.array([m.family for m in MODELS])
_NAME = np.array([m.name for m in MODELS])


@dataclass(frozen=True)
class LoaderRegime:
    """What makes a batch ready.

    Attributes:
        name: Its label.
        weight: How often it is drawn, relative to the others.
        sample_mcycle: Mega-cycles a sequence, lowest and highest (log-uniform).
        token_kcycle: Kilo-cycles a token, lowest and highest (log-uniform).
        workers: Worker processes to choose from (0: the training thread does it).
        fixed_ms: Milliseconds a step that no knob changes (log-uniform).
    """

    name: str
    weight: float
    sample_mcycle: tuple[float, float]
    token_kcycle: tuple[float, float]
    workers: Sequence[int] = (0, 1, 2, 4)
    fixed_ms: tuple[float, float] = (0.05, 2.0)


@dataclass(frozen=True)
class Population:
    """A distribution of jobs; the constructor is the schema of ``conf/population``.

    Attributes:
        split: ``train``, ``validation`` or ``heldout``: picks the stream of random numbers.
        seed: Root of that stream.
        families: Model families to draw from (see `rlgov.jobs.families`).
        loaders: What feeds the jobs.
        batches: Sequences a micro-batch.
        sequences: Tokens a sequence.
        accumulations: Micro-batches a step.
        precisions: Weights of `PRECISIONS`.
        methods: Weights of `METHODS`.
        ranks: LoRA ranks.
        decoder_share: Share of decoder jobs, where the families have both kinds.
        checkpointing_share: Share of jobs that recompute activations.
        fused_attention_share: Share with fused attention (where the model has it).
        fused_optimizer_share: Share with fused AdamW.
        flop_sigma: Spread (of the log) of operations run over operations counted.
        byte_sigma: Spread of the traffic over the bytes counted.
        launch_sigma: Spread of launches.
        host_sigma: Spread of Python's cycles.
        memory_gib: Memory that a job may use (a 64 GB board less system and cache).
        min_step_s: Shortest step, by ``roofline``.
        max_step_s: Longest step, by ``roofline``.
        roofline: The estimate for both.
        exclude: Rules of which a job may match none.
        only: Rules of which a job must match one (each drawn equally often; empty: any job).
    """

    split: str
    seed: int
    families: Sequence[str]
    loaders: Sequence[LoaderRegime]
    batches: Sequence[int] = (2, 4, 8, 12, 16, 24, 32, 48, 64)
    sequences: Sequence[int] = (32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 2048)
    accumulations: Sequence[int] = (1, 1, 1, 2, 4, 8)
    precisions: Mapping[str, float] = field(
        default_factory=lambda: {"fp32": 0.35, "bf16": 0.3, "fp16": 0.2, "bf16_weights": 0.15}
    )
    methods: Mapping[str, float] = field(
        default_factory=lambda: {"full": 0.6, "lora": 0.32, "bitfit": 0.08}
    )
    ranks: Sequence[int] = (4, 8, 16, 32, 64)
    decoder_share: float = 0.5
    checkpointing_share: float = 0.2
    fused_attention_share: float = 0.6
    fused_optimizer_share: float = 0.6
    flop_sigma: float = 0.12
    byte_sigma: float = 0.25
    launch_sigma: float = 0.12
    host_sigma: float = 0.4
    memory_gib: float = 48.0
    min_step_s: float = 0.05
    max_step_s: float = 10.0
    roofline: Roofline = field(default_factory=Roofline)
    exclude: Sequence[Rule] = ()
    only: Sequence[Rule] = ()

    def __post_init__(self) -> None:
        """Refuse what could never be drawn.

        Raises:
            ConfigError: A name does not exist, or a range is empty.
        """
        _known("split", [self.split], SPLITS)
        _known("precision", self.precisions, PRECISIONS)
        _known("method", self.methods, METHODS)
        _known("family", self.families, FAMILIES)
        for rule in (*self.exclude, *self.only):
            _known("key of a rule", rule, RULE_KEYS)
        for name in ("families", "loaders", "batches", "sequences", "accumulations", "ranks"):
            if not getattr(self, name):
                raise ConfigError(f"a population needs at least one of its {name}")
        if not 0 < self.min_step_s < self.max_step_s:
            raise ConfigError("a population needs 0 < min_step_s < max_step_s")

    def rng(self, stream: int = 0) -> np.random.Generator:
        """Random numbers of this split; streams and splits never share draws."""
        key = (SPLITS.index(self.split), stream)
        return np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=key))

    def draw(self, n: int, rng: np.random.Generator | None = None) -> JobBatch:
        """Draw ``n`` jobs.

        Args:
            n: How many.
            rng: Random numbers; ``None``: the first stream of this split.

        Raises:
            ConfigError: Hardly any job fits; loosen the limits.
        """
        if n < 1:
            raise ConfigError(f"cannot draw {n} jobs: ask for at least 1")
        rng = self.rng() if rng is None else rng
        parts: list[JobBatch] = []
        missing = n
        for _ in range(MAX_ROUNDS):
            part = self._attempt(max(64, 3 * missing), rng)
            parts.append(part.take(slice(0, missing)))
            missing -= len(parts[-1])
            if not missing:
                return JobBatch.concatenate(parts)
        raise ConfigError(
            f"only {n - missing} of {n} jobs of population {self.split!r} fit: "
            "widen min_step_s and max_step_s, raise memory_gib or loosen its rules"
        )

    def _attempt(self, n: int, rng: np.random.Generator) -> JobBatch:
        """Candidates, less those that break a rule, the memory or the time limits."""
        drawn = self._candidates(n, rng)
        drawn = _at(drawn, np.flatnonzero(self._allowed(drawn)))
        arch, recipe = _SHAPES.take(drawn["index"]), _recipe(drawn)
        drawn["memory_gib"] = counting.memory_gib(arch, recipe)
        work = self._work(arch, recipe, drawn, rng)
        drawn["step_s"] = self.roofline.step_s(work)
        drawn["parameters"] = architecture.parameters(arch)
        drawn["trainable"] = architecture.trainable(arch, recipe)
        fits = (drawn["memory_gib"] <= self.memory_gib) & (drawn["step_s"] >= self.min_step_s)
        keep = np.flatnonzero(fits & (drawn["step_s"] <= self.max_step_s))
        return _batch(work.take(keep), _at(drawn, keep), rng)

    def _candidates(self, n: int, rng: np.random.Generator) -> Draws:
        """Labels of ``n`` jobs, each drawn on its own, then forced to a rule of ``only``."""
        drawn: Draws = {
            "family": self._family(n, rng),
            "method": _weighted(self.methods, n, rng),
            "precision": _weighted(self.precisions, n, rng),
            "loader": _weighted({x.name: x.weight for x in self.loaders}, n, rng),
            "batch": rng.choice(np.asarray(self.batches, float), n),
            "seq": rng.choice(np.asarray(self.sequences, float), n),
            "accumulation": rng.choice(np.asarray(self.accumulations, float), n),
            "rank": rng.choice(np.asarray(self.ranks, float), n),
            "lora_all": rng.random(n) < 0.5,
            "checkpointing": rng.random(n) < self.checkpointing_share,
            "fused_attention": rng.random(n) < self.fused_attention_share,
            "fused_optimizer": rng.random(n) < self.fused_optimizer_share,
        }
        if self.only:
            force(drawn, self.only, rng)
        drawn["index"] = _models(drawn["family"], rng)
        drawn["instruct"] = _INSTRUCT[drawn["index"]]
        drawn["fused_attention"] &= ~_SHAPES.disentangled[drawn["index"]]
        drawn["rank"] = np.where(drawn["method"] == "lora", drawn["rank"], 0.0)
        return drawn

    def _family(self, n: int, rng: np.random.Generator) -> NDArray[np.str_]:
        """Families: first the kind, then one of that kind, so that no long list dominates."""
        kinds = {m.family: m.decoder for m in MODELS}
        decoders = np.array([f for f in self.families if kinds[f]])
        encoders = np.array([f for f in self.families if not kinds[f]])
        if not len(decoders) or not len(encoders):
            return rng.choice(np.array(self.families), n)
        pick = rng.random(n) < self.decoder_share
        return np.where(pick, rng.choice(decoders, n), rng.choice(encoders, n))

    def _allowed(self, drawn: Draws) -> NDArray[np.bool_]:
        """Jobs that exist (biases for BitFit, a context that long) and that the rules allow."""
        index = drawn["index"]
        fine = (drawn["method"] != "bitfit") | _SHAPES.bias[index]
        fine &= drawn["seq"] <= _CONTEXT[index]
        for rule in self.exclude:
            fine &= ~matches(drawn, rule)
        if self.only:
            fine &= np.any([matches(drawn, rule) for rule in self.only], axis=0)
        allowed: NDArray[np.bool_] = fine
        return allowed

    def _work(self, arch: Shapes, recipe: Recipe, drawn: Draws, rng: np.random.Generator) -> Work:
        """Counted work times what cannot be counted."""
        n = len(recipe.batch)
        tile, traffic, kernels, python = (
            np.exp(sigma * rng.standard_normal((n, 1)))
            for sigma in (self.flop_sigma, self.byte_sigma, self.launch_sigma, self.host_sigma)
        )
        matrix = counting.matrix_flop(arch, recipe) * tile
        vector = counting.vector_flop(arch, recipe) * tile
        half = recipe.half[:, None]
        samples = recipe.batch * recipe.accumulation
        return Work(
            flop=vector + np.where(half, 0.0, matrix),
            flop_half=np.where(half, matrix, 0.0),
            byte=counting.step_bytes(arch, recipe) * traffic,
            launch=counting.launches(arch, recipe) * kernels,
            host_gcycle=counting.host_gcycles(arch, recipe) * python,
            spin=_spin(n, rng),
            samples=samples,
            tokens=samples * recipe.seq,
            **self._loader(samples, recipe.seq, drawn["loader"], rng),
        )

    def _loader(
        self, samples: FloatArray, seq: FloatArray, name: NDArray[Any], rng: np.random.Generator
    ) -> dict[str, FloatArray]:
        """Cycles, workers and fixed seconds of the loader of every job."""
        n = len(samples)
        cycles, workers, fixed = np.zeros(n), np.zeros(n), np.zeros(n)
        for regime in self.loaders:
            at = np.flatnonzero(name == regime.name)
            sample = _log_uniform(regime.sample_mcycle, len(at), rng) * 1e-3
            token = _log_uniform(regime.token_kcycle, len(at), rng) * 1e-6
            cycles[at] = samples[at] * (sample + token * seq[at])
            workers[at] = rng.choice(np.asarray(regime.workers, float), len(at))
            fixed[at] = _log_uniform(regime.fixed_ms, len(at), rng) * 1e-3
        return {"loader_gcycle": cycles, "loader_workers": workers, "fixed_s": fixed}


def _known(what: str, given: Sequence[str] | Mapping[str, Any], known: Sequence[str]) -> None:
    unknown = [name for name in given if name not in known]
    if unknown:
        raise ConfigError(f"no {what} {unknown[0]!r}; there are {', '.join(known)}")


def _weighted(weights: Mapping[str, float], n: int, rng: np.random.Generator) -> NDArray[np.str_]:
    share = np.array(list(weights.values()), float)
    return np.array(list(weights))[rng.choice(len(share), n, p=share / share.sum())]


def _log_uniform(bounds: tuple[float, float], n: int, rng: np.random.Generator) -> FloatArray:
    return np.exp(rng.uniform(np.log(bounds[0]), np.log(bounds[1]), n))


def _at(drawn: Draws, index: NDArray[np.intp]) -> Draws:
    return {name: values[index] for name, values in drawn.items()}


def _models(family: NDArray[Any], rng: np.random.Generator) -> NDArray[np.intp]:
    """One model of each job's family, as an index into ``MODELS``."""
    index = np.zeros(len(family), np.intp)
    for name, choices in members(FAMILIES).items():
        at = np.flatnonzero(family == name)
        index[at] = rng.choice(choices, len(at))
    return index


def _recipe(drawn: Draws) -> Recipe:
    own = {f.name: drawn[f.name] for f in fields(Recipe) if f.name in drawn}
    return Recipe(
        half=drawn["precision"] != "fp32",
        half_weights=drawn["precision"] == "bf16_weights",
        lora=drawn["method"] == "lora",
        bitfit=drawn["method"] == "bitfit",
        **own,
    )


def _spin(n: int, rng: np.random.Generator) -> FloatArray:
    """CUDA's default waits by spinning where cores are free; some loops sleep (assumption)."""
    spins = rng.random(n) < 0.7
    return np.where(spins, rng.uniform(0.8, 1.0, n), rng.uniform(0.0, 0.3, n))


def _batch(work: Work, drawn: Draws, rng: np.random.Generator) -> JobBatch:
    """Names and schedules of jobs that were kept."""
    n = len(work.samples)
    index = drawn.pop("index")
    drawn["model"] = _NAME[index]
    drawn["kind"] = np.where(_DECODER[index], "decoder", "encoder")
    dynamic = rng.random(n) < 0.6
    spread = rng.uniform(0.05, 0.5, n) / np.sqrt(drawn["accumulation"])
    state_byte = 4 * drawn["parameters"] + 8 * drawn["trainable"]
    state_byte = np.where(drawn["method"] == "full", state_byte, 12 * drawn["trainable"])
    return JobBatch(
        work=work,
        labels=drawn,
        length_cv=np.where(dynamic, spread, 0.0),
        eval_every_steps=rng.choice(np.array([0.0, 50.0, 100.0, 200.0, 500.0]), n),
        eval_batches=rng.choice(np.array([10.0, 25.0, 50.0, 100.0]), n),
        checkpoint_every_steps=rng.choice(np.array([0.0, 200.0, 500.0]), n),
        checkpoint_s=state_byte / rng.uniform(0.3e9, 1.5e9, n),
    )
