from __future__ import annotations

import importlib.util
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import yaml

from rlgov.boards.twin import TwinModel, TwinSpec
from rlgov.boards.twin.loadfile import read_job
from rlgov.errors import ConfigError, TraceError
from rlgov.traces.fit import FittedTwin, errors_of, fit, fit_job
from rlgov.traces.fit_files import board_to_dict, read_ensemble, save_fit
from rlgov.traces.fit_parameters import parameters_for, value_at, with_value
from rlgov.traces.fit_points import points_of, scope_weights
from rlgov.traces.fit_solve import solve_points
from rlgov.traces.schema import Profile, ProfileRow
from tests.traces.fitting import board, job, other, profile

ORIN = board("jetson_agx_orin_64gb")
GPU = [{"gpu_mhz": f} for f in ORIN.knobs["gpu"].levels_mhz]
FEW = [{"gpu_mhz": f} for f in (306.0, 510.0, 816.0, 1122.0, 1300.5)]


def rms(fitted: FittedTwin) -> dict[str, float]:
    return {e.surface: e.rms for e in fitted.errors}


@pytest.fixture(scope="module")
def full() -> FittedTwin:
    measured = profile(other(ORIN), job(), GPU, noise=0.005, rails=True)
    return fit(measured, ORIN, ensemble=20)


def test_a_noisy_profile_is_met_within_its_noise(full: FittedTwin) -> None:
    assert set(rms(full)) == {"time", "power", *(f"rail {r.lower()}" for r in ORIN.rails)}
    assert max(rms(full).values()) < 0.008


def test_what_was_measured_is_learnt_and_the_rest_says_so(full: FittedTwin) -> None:
    learnt = {c.name: c for c in full.constraints}
    assert learnt["gpu.voltage.knee_ghz"].constrained
    assert learnt["gpu.voltage.knee_ghz"].value == pytest.approx(0.65 * 1.15, rel=0.1)
    assert learnt["job: gpu_gcycle"].value == pytest.approx(0.20, rel=0.05)
    assert not learnt["memory.mem_static_w"].constrained
    assert all(0 < c.remaining < 1.2 for c in full.constraints)


def test_the_ensemble_fits_as_well_and_really_differs(full: FittedTwin) -> None:
    measured = profile(other(ORIN), job(), GPU, noise=0.005, rails=True)
    points = points_of([measured], ORIN)
    assert len(full.members) == 20
    best = rms(full)
    for spec, load in full.members:
        for error in errors_of(points, load, spec):
            assert error.rms <= max(1.3 * best[error.surface], best[error.surface] + 0.002) + 1e-9
    statics = [spec.memory.mem_static_w for spec, _ in full.members]
    knees = [spec.gpu.voltage.knee_ghz for spec, _ in full.members]
    assert np.std(np.log(statics)) > 0.05
    assert np.std(np.log(knees)) < np.std(np.log(statics))


def test_five_settings_find_the_best_clock() -> None:
    truth, load = other(ORIN), job()
    fitted = fit(profile(truth, load, FEW), ORIN, ensemble=0)
    everywhere = profile(truth, load, GPU)
    joules = np.array([r.energy_per_step_j for r in everywhere.settings()], float)
    found = profile(fitted.spec, fitted.loads, GPU)
    pick = int(np.argmin([r.energy_per_step_j or np.inf for r in found.settings()]))
    assert joules[pick] <= 1.01 * joules.min()


def test_energy_alone_is_enough_for_the_shape() -> None:
    measured = profile(other(ORIN), job(), GPU)
    rows = [replace(r, step_time_s=None, power_w=None) for r in measured.rows]
    fitted = fit(Profile(rows), ORIN, ensemble=0)
    assert set(rms(fitted)) == {"energy"}
    assert rms(fitted)["energy"] < 0.005


def test_time_alone_fits_time_and_leaves_power_to_the_prior() -> None:
    measured = profile(other(ORIN), job(), GPU)
    rows = [replace(r, power_w=None, energy_per_step_j=None) for r in measured.rows]
    fitted = fit(Profile(rows), ORIN, ensemble=0)
    assert rms(fitted)["time"] < 0.002
    assert fitted.spec.base_w == ORIN.base_w


def test_any_knobs_may_vary() -> None:
    grid = [
        {"gpu_mhz": g, "cpu_mhz": c, "emc_mhz": e}
        for g in (306.0, 714.0, 1300.5)
        for c in (729.6, 2201.6)
        for e in (2133.0, 3199.0)
    ]
    fitted = fit(profile(other(ORIN), job(), grid, rails=True), ORIN, ensemble=0)
    assert max(rms(fitted).values()) < 0.005
    found = {c.name: c for c in fitted.constraints}
    assert found["job: host_gcycle"].constrained


def test_a_power_limit_is_a_knob_too() -> None:
    card = board("nvidia_v100")
    load = replace(job(), gpu_j=np.array([[9.0, 0, 0]]), soc_j=np.ones(1), mem_j=np.ones(1))
    limits = [{"power_limit_w": w} for w in (100.0, 125.0, 150.0, 175.0, 200.0, 250.0)]
    fitted = fit(profile(card, load, limits), card, ensemble=0)
    assert max(rms(fitted).values()) < 0.02


def test_points_left_out_are_reported_apart() -> None:
    measured = profile(other(ORIN), job(), GPU)
    train = np.arange(len(GPU)) % 2 == 0
    fitted = fit(measured, ORIN, train=train, ensemble=0)
    assert sum(e.points for e in fitted.errors) == 2 * int(train.sum())
    assert sum(e.points for e in fitted.held_out) == 2 * int((~train).sum())
    assert max(e.rms for e in fitted.held_out) < 0.01


def test_a_job_that_the_board_was_not_fitted_to_needs_few_settings() -> None:
    truth, load = other(ORIN), job()
    heavier = load.scaled(1.7)
    profiles = [
        profile(truth, load, GPU, rails=True),
        profile(truth, replace(load, gpu_gcycle=load.gpu_gcycle * 2), GPU, rails=True),
        profile(truth, heavier, GPU, rails=True),
    ]
    points = points_of(profiles, ORIN)
    train = points.job < 2
    solution = solve_points(points.keep(train), parameters_for(points.keep(train), ORIN))
    ends = np.isin(np.round(points.clocks_ghz[:, 0], 4), [0.306, 1.3005])
    fitted = fit_job(points, 2, ends, solution)
    spec = solution.problem.parameters.board_of(solution.theta)
    errors = errors_of(points.keep(~ends).of_job(2), fitted, spec)
    assert max(e.rms for e in errors) < 0.03


def test_a_scope_covers_its_rails_and_an_unknown_one_the_total() -> None:
    two = scope_weights("VDD_GPU_SOC+vdd_cpu_cv", ORIN)
    assert two.tolist() == [1.0, 1.0, 0.0, 1.0, 0.0]
    assert scope_weights("", ORIN).tolist() == scope_weights("WALL", ORIN).tolist()


def test_unknown_rails_are_left_out_and_named() -> None:
    row = ProfileRow("b", "j", gpu_mhz=306, step_time_s=1.0, rails={"vdd_fan": 1.0})
    assert points_of([Profile([row])], ORIN).ignored == ("vdd_fan",)


def test_nothing_to_fit_is_an_error() -> None:
    as_found = ProfileRow("b", "j", config="as_found", step_time_s=1.0, power_w=10.0)
    with pytest.raises(TraceError, match="nothing to fit"):
        fit(Profile([as_found]), ORIN)


def test_a_path_into_a_board_reads_and_writes() -> None:
    changed = with_value(ORIN, "gpu.voltage.knee_ghz", 0.9)
    assert value_at(changed, "gpu.voltage.knee_ghz") == 0.9
    assert value_at(ORIN, "gpu.voltage.knee_ghz") != 0.9


def test_saved_files_are_boards_and_jobs(full: FittedTwin, tmp_path: Path) -> None:
    paths = save_fit(full, tmp_path, "a test's profile")
    assert {p.name for p in paths} == {"board.yaml", "job.yaml", "ensemble.yaml"}
    spec = TwinSpec.from_dict(yaml.safe_load((tmp_path / "board.yaml").read_text()))
    name, load = read_job(tmp_path / "job.yaml")
    assert (spec.name, name) == ("jetson_agx_orin_64gb_fitted", "job")
    assert replace(spec, name=ORIN.name) == full.spec
    model = TwinModel(spec)
    costs = [
        m.grid_cost(load, np.array([[714.0, 2201.6, 3199.0]]), np.full(1, 60.0)) for m in (model,)
    ]
    assert costs[0][0][0, 0] > 0
    assert (tmp_path / "board.yaml").read_text().startswith("# Fitted to a test's profile")
    ensemble = read_ensemble(tmp_path / "ensemble.yaml")
    assert len(ensemble) == 20
    assert ensemble[3][1][0].gpu_j == pytest.approx(full.members[3][1].gpu_j)


def test_every_board_survives_its_file() -> None:
    for name in ("nvidia_v100", "jetson_tx2"):
        spec = board(name)
        assert TwinSpec.from_dict(yaml.safe_load(yaml.safe_dump(board_to_dict(spec)))) == spec


def test_a_file_that_is_no_ensemble_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text("members: 3")
    with pytest.raises(TraceError, match="no ensemble"):
        read_ensemble(path)
    with pytest.raises(TraceError, match="cannot read"):
        read_ensemble(tmp_path / "absent.yaml")
    with pytest.raises(ConfigError, match="no fitted job"):
        read_job(path)


def test_without_scipy_the_message_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy.optimize", None)
    with pytest.raises(ConfigError, match=r"rlgov\[fit\]"):
        fit(profile(ORIN, job(), FEW), ORIN, ensemble=0)


def script() -> ModuleType:
    path = Path(__file__).resolve().parents[2] / "scripts/fit_measured.py"
    spec = importlib.util.spec_from_file_location("fit_measured", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_published_measurements_of_a_board_are_met(
    shared: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import json

    tool = script()
    holdout = Path(__file__).with_name("holdout.json")
    group = json.loads(holdout.read_text())["groups"][0]
    profiles = tool.profiles_of(group, shared / "measured")
    spec = tool.spec_of(group["board"])
    fitted = fit(profiles, spec, ensemble=0)
    assert tool.pooled([e for e in fitted.errors if e.surface == "time"]) < 0.01
    assert tool.pooled([e for e in fitted.errors if e.surface.startswith("rail")]) < 0.025
    held = tool.held_out_errors(group, profiles, spec)
    assert (
        max(tool.pooled([e for e in held if e.surface == s]) for s in {e.surface for e in held})
        < 0.03
    )
    assert "held out: 64 of 117" in capsys.readouterr().out
