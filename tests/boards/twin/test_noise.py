from __future__ import annotations

import numpy as np

from rlgov.boards.twin.noise import job_seeds, normals, uniforms


def test_draws_depend_on_seed_and_counter_only() -> None:
    seeds = job_seeds(100, np.random.default_rng(0))
    counter = np.arange(100, dtype=np.int64)
    many = normals(seeds, counter, 7)
    for i in (0, 41, 99):
        assert (normals(seeds[i : i + 1], counter[i : i + 1], 7)[0] == many[i]).all()


def test_draws_look_standard_normal_and_uncorrelated() -> None:
    seeds = job_seeds(20_000, np.random.default_rng(1))
    z = normals(seeds, np.zeros(20_000, np.int64), 4)
    after = normals(seeds, np.ones(20_000, np.int64), 4)
    assert np.abs(z.mean(0)).max() < 0.03
    assert np.abs(z.std(0) - 1).max() < 0.03
    both = np.corrcoef(np.concatenate([z, after], 1).T)
    assert np.abs(both - np.eye(8)).max() < 0.04


def test_uniforms_stay_inside() -> None:
    u = uniforms(np.arange(1000, dtype=np.uint64), np.zeros(1000, np.int64), 5)
    assert 0 < u.min() < u.max() < 1
