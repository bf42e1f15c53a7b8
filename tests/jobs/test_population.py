from __future__ import annotations

import json
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hydra.utils import instantiate
from hypothesis import given, settings
from hypothesis import strategies as st
from omegaconf import OmegaConf

from rlgov.errors import ConfigError
from rlgov.jobs.families import DECODER_FAMILIES, ENCODER_FAMILIES, MODELS, members, model
from rlgov.jobs.jobbatch import JobBatch, Roofline, distance_to, features
from rlgov.jobs.population import LoaderRegime, Population
from rlgov.jobs.rules import matches
from rlgov.work import Work

CONF = Path(__file__).parents[2] / "conf" / "population"
SPLITS = {"default": "train", "validation": "validation", "heldout": "heldout"}
TOKENISED = LoaderRegime("tokenised", 1.0, (0.05, 0.6), (0.1, 1.0))


def load(name: str) -> Population:
    population: Population = instantiate(OmegaConf.load(CONF / f"{name}.yaml"), _convert_="all")
    return population


@pytest.fixture(scope="module")
def batches() -> dict[str, JobBatch]:
    return {name: load(name).draw(4000) for name in SPLITS}


def small(**changes: Any) -> Population:
    plain: dict[str, Any] = {
        "split": "train",
        "seed": 0,
        "families": ["bert", "pythia"],
        "loaders": [TOKENISED],
    }
    return Population(**{**plain, **changes})


@pytest.mark.parametrize(("name", "split"), SPLITS.items())
def test_every_config_draws_what_was_asked_for(
    name: str, split: str, batches: dict[str, JobBatch]
) -> None:
    population, jobs = load(name), batches[name]
    assert population.split == split
    assert len(jobs) == 4000
    for field in fields(Work):
        values = getattr(jobs.work, field.name)
        assert values.shape[0] == 4000
        assert np.all(np.isfinite(values))
        assert np.all(values >= 0)
    assert all(len(values) == 4000 for values in jobs.labels.values())
    assert np.all(jobs.work.spin <= 1)


@pytest.mark.parametrize("name", SPLITS)
def test_jobs_fit_into_memory_and_take_sensible_time(
    name: str, batches: dict[str, JobBatch]
) -> None:
    population, jobs = load(name), batches[name]
    step_s = population.roofline.step_s(jobs.work)
    np.testing.assert_allclose(step_s, jobs.labels["step_s"].astype(float))
    assert step_s.min() >= population.min_step_s
    assert step_s.max() <= population.max_step_s
    assert jobs.labels["memory_gib"].max() <= population.memory_gib


@pytest.mark.parametrize("name", ["default", "validation"])
def test_heldout_jobs_are_never_drawn_for_training(name: str, batches: dict[str, JobBatch]) -> None:
    held = load("heldout")
    own = load(name)
    assert {json.dumps(r, sort_keys=True) for r in held.only} == {
        json.dumps(r, sort_keys=True) for r in own.exclude
    }
    for rule in held.only:
        assert not matches(batches[name].labels, rule).any()
        assert matches(batches["heldout"].labels, rule).sum() > 200
    either = np.any([matches(batches["heldout"].labels, rule) for rule in held.only], axis=0)
    assert either.all()


def test_validation_is_training_from_another_stream() -> None:
    own, other = (OmegaConf.load(CONF / f"{name}.yaml") for name in ("default", "validation"))
    assert own.pop("split") != other.pop("split")
    assert own == other


def test_heldout_holds_a_whole_encoder_line_and_a_whole_decoder_line() -> None:
    held = {rule["family"][0] for rule in load("heldout").only if list(rule) == ["family"]}
    assert held & set(ENCODER_FAMILIES)
    assert held & set(DECODER_FAMILIES)
    assert not held & set(load("default").families)


def test_training_covers_what_users_run(batches: dict[str, JobBatch]) -> None:
    labels = batches["default"].labels
    wanted = {
        "kind": {"encoder", "decoder"},
        "method": {"full", "lora", "bitfit"},
        "precision": {"fp32", "bf16", "fp16", "bf16_weights"},
        "family": {"bert", "pythia"},
    }
    for name, values in wanted.items():
        for value in values:
            assert (labels[name] == value).mean() > 0.03, value
    assert (labels["batch"] <= 4).mean() > 0.05
    assert (labels["batch"] >= 48).mean() > 0.05
    part = Roofline().parts(batches["default"].work)
    device = np.maximum(part["compute"] + part["matrix"], part["memory"])
    # Each bottleneck is the largest for some jobs: compute, memory, the loader, the host.
    assert (part["compute"] + part["matrix"] > part["memory"]).mean() > 0.2
    assert (part["memory"] > part["compute"] + part["matrix"]).mean() > 0.2
    assert (part["loader"] > device).mean() > 0.02
    assert (part["host"] > device).mean() > 0.02


def test_splits_and_streams_never_share_draws() -> None:
    numbers = [load(name).rng(stream).random(100) for name in SPLITS for stream in (0, 1)]
    together = np.concatenate(numbers)
    assert len(np.unique(together)) == len(together)
    steps = {name: load(name).draw(500).labels["step_s"] for name in SPLITS}
    assert not np.isin(steps["default"], steps["validation"]).any()


def test_the_same_seed_draws_the_same_jobs() -> None:
    first, again = load("default").draw(300), load("default").draw(300)
    for field in fields(Work):
        np.testing.assert_array_equal(
            getattr(first.work, field.name), getattr(again.work, field.name)
        )
    other = load("default").draw(300, load("default").rng(1))
    assert not np.array_equal(first.work.byte, other.work.byte)


def test_a_job_is_described_in_plain_json(batches: dict[str, JobBatch]) -> None:
    row = batches["heldout"].describe(7)
    assert json.loads(json.dumps(row, allow_nan=False)) == row
    arch = model(str(row["model"]))
    assert row["family"] == arch.family
    assert row["kind"] == ("decoder" if arch.decoder else "encoder")
    assert row["instruct"] == arch.instruct


def test_labels_agree_with_the_work(batches: dict[str, JobBatch]) -> None:
    jobs = batches["default"]
    fp32 = jobs.labels["precision"] == "fp32"
    assert np.all(jobs.work.flop_half[fp32] == 0)
    assert np.all(jobs.work.flop_half[~fp32][:, :2] > 0)
    samples = jobs.labels["batch"].astype(float) * jobs.labels["accumulation"].astype(float)
    np.testing.assert_array_equal(jobs.work.samples, samples)
    no_bias = np.isin(jobs.labels["model"], [m.name for m in MODELS if not m.bias])
    assert not (no_bias & (jobs.labels["method"] == "bitfit")).any()
    assert np.all((jobs.labels["rank"].astype(float) > 0) == (jobs.labels["method"] == "lora"))


def test_heldout_is_farther_from_training_than_validation_is(
    batches: dict[str, JobBatch],
) -> None:
    train = batches["default"]
    assert distance_to(train, train).max() < 1e-3
    near = distance_to(train, batches["validation"])
    far = distance_to(train, batches["heldout"])
    assert np.quantile(far, 0.9) > np.quantile(near, 0.9)


def test_distance_equals_brute_force(batches: dict[str, JobBatch]) -> None:
    train = batches["default"].take(slice(0, 200))
    test = batches["heldout"].take(slice(0, 50))
    scale = features(train.work).std(0)
    gap = (features(test.work)[:, None] - features(train.work)[None]) / scale
    brute = np.sqrt((gap**2).sum(-1)).min(-1)
    np.testing.assert_allclose(distance_to(train, test, chunk=7), brute, rtol=1e-5)


@given(st.integers(1, 70), st.integers(0, 2**32))
@settings(max_examples=15)
def test_any_number_of_jobs_can_be_drawn(n: int, seed: int) -> None:
    jobs = small(seed=seed).draw(n)
    assert len(jobs) == n
    assert set(jobs.labels["family"]) <= {"bert", "pythia"}


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"split": "test"}, "no split 'test'"),
        ({"families": ["berd"]}, "no family 'berd'"),
        ({"families": []}, "at least one of its families"),
        ({"precisions": {"fp8": 1.0}}, "no precision 'fp8'"),
        ({"methods": {"qlora": 1.0}}, "no method 'qlora'"),
        ({"exclude": [{"famly": ["bert"]}]}, "no key of a rule 'famly'"),
        ({"min_step_s": 2.0, "max_step_s": 1.0}, "min_step_s < max_step_s"),
    ],
)
def test_a_population_that_cannot_be_is_refused(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        small(**changes)


def test_limits_that_no_job_meets_are_an_error_not_a_hang() -> None:
    with pytest.raises(ConfigError, match="0 of 5 jobs"):
        small(memory_gib=0.1).draw(5)
    with pytest.raises(ConfigError, match="at least 1"):
        small().draw(0)


def test_unknown_models_and_families_name_what_there_is() -> None:
    with pytest.raises(ConfigError, match="bert-tiny"):
        model("bert-huge")
    with pytest.raises(ConfigError, match="pythia"):
        members(["nope"])


def test_no_jobs_cannot_be_put_together() -> None:
    with pytest.raises(ConfigError, match="no jobs"):
        JobBatch.concatenate([])


def test_more_loader_workers_never_slow_the_estimate(batches: dict[str, JobBatch]) -> None:
    work = batches["default"].work
    at = np.flatnonzero(work.loader_workers > 0)
    work = work.take(at)
    more = replace(work, loader_workers=work.loader_workers + 1)
    assert np.all(Roofline().step_s(more) <= Roofline().step_s(work))
