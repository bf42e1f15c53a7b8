from __future__ import annotations

import json
import re
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import pytest
import yaml

from rlgov.cli.confdir import packaged_conf
from rlgov.policies.bandit import BanditSpec
from rlgov.policies.baselines import FIXED_KEYS
from rlgov.policies.bayes import BayesSpec
from rlgov.policies.selector import SelectorSpec
from tests.cli.probe import Cli
from tests.policies.make import make_bundle

FIGURES = (
    "saving",
    "oracle_saving",
    "gap",
    "captured",
    "slowdown",
    "violations",
    "windows_to_2pct",
    "gap_after_10",
    "saving_with_reference",
    "guard_share",
)
QUICK = ("n_jobs=20", "windows=4", "plots=false", "out=run")
PROFILE = """\
device,job,config,gpu_mhz,step_time_s,power_w,energy_per_step_j,energy_scope
toy,bert,pinned,300,2.0,12.0,24.0,VIN
toy,bert,pinned,600,1.3,15.0,19.5,VIN
toy,bert,pinned,900,1.05,21.0,22.05,VIN
toy,bert,pinned,1200,1.0,30.0,30.0,VIN
toy,bert,as_found,,1.0,28.0,28.0,VIN
"""


def summary() -> dict[str, Any]:
    read: dict[str, Any] = json.loads(Path("run/summary.json").read_text())
    return read


def test_rows_hold_every_figure_of_every_policy_and_budget(cli: Cli) -> None:
    result = cli("evaluate", "policy=[as_found,oracle]", "budget=[0.05,0.2]", *QUICK)
    assert result.code == 0, result.err
    made = summary()
    keys = [(row["policy"], row["budget"]) for row in made["rows"]]
    assert keys == [("as_found", 0.05), ("oracle", 0.05), ("as_found", 0.2), ("oracle", 0.2)]
    for row in made["rows"]:
        assert (row["board"], row["source"]) == ("jetson_agx_orin_64gb", "heldout")
        assert row["n_jobs"] == 20
        for name in FIGURES:
            assert set(row[name]) == {"mean", "median", "p5", "p95", "ci95"}
    assert made["emulated"] is True
    assert made["seed"] == 1
    assert made["distance_to_training"]["heldout"]["median"] > 0
    assert "distance to the nearest training job" in result.err
    assert "mulated" in result.out


def test_the_same_seed_gives_the_same_figures_and_another_does_not(cli: Cli) -> None:
    rows = []
    for out, seed in (("a", 1), ("b", 1), ("c", 2)):
        words = ("n_jobs=20", "windows=3", "plots=false", "budget=0.1", "policy=random")
        assert cli("evaluate", *words, f"seed={seed}", f"out={out}").code == 0
        rows.append(json.loads(Path(out, "summary.json").read_text())["rows"])
    assert rows[0] == rows[1]
    assert rows[0] != rows[2]


def test_one_value_of_each_list_key_is_accepted(cli: Cli) -> None:
    result = cli("evaluate", "policy=max", "budget=0.1", "knobs=gpu", "guard=off", *QUICK)
    assert result.code == 0, result.err
    (row,) = summary()["rows"]
    assert row["knobs"] == ["gpu"]
    assert row["guard"] is False
    assert row["guard_share"]["mean"] == 0.0


@pytest.mark.parametrize("form", ['policy=["{}",max]', "policy=['{}',max]"])
def test_a_bundle_whose_path_needs_quotes_is_found_in_a_list(cli: Cli, form: str) -> None:
    make_bundle().save(Path("a=b mesuré/bundle"))
    result = cli("evaluate", form.format("a=b mesuré/bundle"), "budget=0.1", *QUICK)
    assert result.code == 0, result.err
    assert [row["policy"] for row in summary()["rows"]] == ["a=b mesuré/bundle", "max"]


def test_a_sweep_ends_in_one_table(cli: Cli) -> None:
    words = ("policy=max", "budget=0.1", "n_jobs=20", "windows=2", "plots=false")
    result = cli("evaluate", "-m", *words, "seed=1,2", "out=run")
    assert result.code == 0, result.err
    assert "violations" in result.out


def test_pictures_come_with_the_figures(cli: Cli) -> None:
    pytest.importorskip("matplotlib")
    result = cli("evaluate", "policy=max", "budget=[0.1]", "n_jobs=20", "windows=2", "out=run")
    assert result.code == 0, result.err
    assert {"saving.png", "regret.png", "pareto.png"} <= {p.name for p in Path("run").iterdir()}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["n_jobs=19"], "at least 20 jobs"),
        (["policy=max,random"], r"'policy=\[max,random\]'"),
        (["budget=0.02,0.05"], r"'budget=\[0.02,0.05\]'"),
        (["budget=-0.1"], "budget must be at least 0"),
        (["policy=nvpmodel:7W"], "nvpmodel:MAXN, nvpmodel:50W"),
        (["policy=maxx"], "did you mean max"),
        (["policy=fixed"], "at least one of"),
        (["policy=ucb", "policy_args.ucb.arms=all"], "gpu, joint"),
        (["policy=util30", "policy_args.util30.windows=0"], "at least 1"),
        (["knobs=[dla]"], "knobs is one of gpu, cpu, emc"),
        (["objective=power_cap"], "power_cap=SHARE"),
        (["profile=nowhere.csv"], "nowhere.csv"),
        (["board=replay"], "profile=FILE"),
        (["drift=rain"], "drift is one of"),
    ],
)
def test_what_cannot_be_evaluated_is_said_in_one_line(
    words: list[str], message: str, cli: Cli
) -> None:
    result = cli("evaluate", "windows=2", "plots=false", *words)
    assert result.code in (2, 6)
    assert re.search(message, result.err)
    assert "Traceback" not in result.err


@pytest.mark.parametrize("name", ["profile.csv", "a=b mesuré.csv"])
def test_a_measured_profile_is_replayed(cli: Cli, name: str) -> None:
    Path(name).write_text(PROFILE)
    words = ("policy=[oracle,as_found,util30]", "budget=0.1", f"profile={name}", "plots=false")
    result = cli("evaluate", *words, "out=run")
    assert result.code == 0, result.err
    made = summary()
    assert made["board"] == "toy"
    assert made["source"] == name
    assert made["energy_scope"] == "VIN"
    oracle = made["rows"][0]
    assert oracle["saving"]["mean"] == pytest.approx(1 - 22.05 / 28.0)
    assert oracle["saving"]["ci95"] is None
    assert oracle["n_jobs"] == 1
    assert "Replayed" in result.out
    assert cli("evaluate", *words, "board=replay", "out=named").code == 0
    named = json.loads(Path("named/summary.json").read_text())
    assert named["rows"] == made["rows"]


def test_a_profile_of_several_jobs_asks_for_one(cli: Cli) -> None:
    Path("two.csv").write_text(PROFILE + PROFILE.replace("bert", "gpt (7b)").split("\n", 1)[1])
    words = ("policy=oracle", "budget=0.1", "profile=two.csv", "plots=false")
    result = cli("evaluate", *words)
    assert result.code == 6
    assert "profile_job=" in result.err
    assert cli("evaluate", *words, "profile_job=gpt (7b)", "out=run").code == 0
    assert summary()["job"] == "gpt (7b)"


def test_a_profile_without_times_has_no_budget(cli: Cli) -> None:
    rows = PROFILE.splitlines()
    head = rows[0].split(",")
    kept = [i for i, column in enumerate(head) if column not in ("step_time_s", "power_w")]
    text = "\n".join(",".join(row.split(",")[i] for i in kept) for row in rows)
    Path("energy.csv").write_text(text + "\n")
    words = ("policy=oracle", "budget=0.1", "profile=energy.csv", "plots=false", "out=run")
    result = cli("evaluate", *words)
    assert result.code == 0, result.err
    assert "no step times" in result.err
    assert summary()["rows"][0]["violations"]["mean"] is None
    refused = cli("evaluate", "policy=oracle", "profile=energy.csv", "objective=edp")
    assert refused.code == 2
    assert "objective=energy" in refused.err


DRIFTS = sorted(path.stem for path in (packaged_conf() / "drift").glob("*.yaml"))


@pytest.mark.parametrize("name", DRIFTS)
def test_every_drift_runs_and_its_oracle_is_the_yardstick(cli: Cli, name: str) -> None:
    words = ("policy=oracle", "budget=0.1", "n_jobs=20", "windows=12", "guard=off")
    result = cli("evaluate", *words, f"drift={name}", "plots=false", "out=run")
    assert result.code == 0, result.err
    made = summary()
    assert made["drift"]["name"] == name
    assert made["rows"][0]["gap"]["mean"] == pytest.approx(0.0, abs=1e-9)


def test_the_configs_parameters_are_the_policies_own() -> None:
    given = yaml.safe_load((packaged_conf() / "evaluate.yaml").read_text())["policy_args"]
    for name, kind in (("util30", SelectorSpec), ("ucb", BanditSpec), ("bayes", BayesSpec)):
        assert given[name] == asdict(kind())
        assert list(given[name]) == [field.name for field in fields(kind)]
    assert tuple(given["fixed"]) == FIXED_KEYS
