"""The work of ``rlgov evaluate``, imported only when it is asked for."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from rich.console import Console

from rlgov.cli.command import Invocation
from rlgov.cli.evaluate_replay import REPLAY, ReplayWorld
from rlgov.cli.evaluate_twin import TwinWorld
from rlgov.cli.evaluate_world import World
from rlgov.cli.progress import WindowBar
from rlgov.cli.text import table
from rlgov.errors import ConfigError
from rlgov.policies.base import Policy
from rlgov.policies.evaluate import Evaluation, Trial, catches_up, evaluate_policy
from rlgov.policies.registry import make_policy
from rlgov.reports.evaluation_plots import plot_evaluation

COLUMNS = {
    "saving": "saving",
    "oracle": "oracle_saving",
    "gap": "gap",
    "after 10": "gap_after_10",
    "captured": "captured",
    "slowdown": "slowdown",
    "violations": "violations",
    "guard": "guard_share",
}


def run(invocation: Invocation) -> int:
    """Evaluate, print the table, record the figures and draw the pictures."""
    config = invocation.config
    console = Console(stderr=True, highlight=False)
    began = time.monotonic()
    world = world_of(config)
    names, budgets = _names(config), _budgets(config)
    for line in world.notices:
        console.print(f"rlgov: {line}", markup=False)
    with WindowBar(console, total=len(names) * len(budgets) * config["windows"]) as bar:
        results = _evaluate(config, world, names, budgets, bar)
    rows = [row for group in results for row in _rows(group, world)]
    summary = {
        **world.summary(),
        "wall_s": time.monotonic() - began,
        "rows": rows,
        "curves": [_curve(each) for group in results for each in group],
        **_swept(rows),
    }
    invocation.folder.write_summary(summary)
    print(_table(rows))
    print(f"\n{world.closing}")
    if config["plots"]:
        console.print(f"rlgov: {plot_evaluation(summary, invocation.folder.path)}", markup=False)
    return 0


def world_of(config: dict[str, Any]) -> World:
    """The world that a configuration asks for.

    Raises:
        ConfigError: It cannot be.
    """
    if config["objective"] == "power_cap" and config["power_cap"] is None:
        raise ConfigError("objective=power_cap needs power_cap=SHARE of the power as found")
    if config["profile"] is not None:
        return ReplayWorld.of(config)
    if config["board"].get("name") == REPLAY:
        raise ConfigError("board=replay needs profile=FILE")
    return TwinWorld.of(config)


def _evaluate(
    config: dict[str, Any],
    world: World,
    names: Sequence[str],
    budgets: Sequence[float],
    bar: WindowBar,
) -> list[list[Evaluation]]:
    """Results by budget; every policy is built before the first one runs."""
    trials = [world.trial(budget, bar.advance) for budget in budgets]
    policies = [[_policy(config, trial, name) for name in names] for trial in trials]
    results = []
    for trial, group in zip(trials, policies, strict=True):
        # These two runs are every row's yardstick; they are none of the bar's windows.
        with bar.paused(f"budget {trial.budget:g}: the best there is"):
            _ = trial.as_found, trial.oracle
        done = []
        for policy in group:
            bar.describe(f"budget {trial.budget:g}: {policy.name}")
            done.append(evaluate_policy(trial, policy))
        results.append(done)
    return results


def _policy(config: dict[str, Any], trial: Trial, name: str) -> Policy:
    args = config["policy_args"].get(name, {})
    if name == "fixed":
        args = {key: value for key, value in args.items() if value is not None}
    return make_policy(name, trial.context(), args)


def _names(config: dict[str, Any]) -> list[str]:
    given = config["policy"]
    names = [str(name) for name in (given if isinstance(given, list) else [given])]
    return list(dict.fromkeys(names))


def _budgets(config: dict[str, Any]) -> list[float]:
    given = config["budget"]
    return list(dict.fromkeys(float(b) for b in (given if isinstance(given, list) else [given])))


def _rows(group: Sequence[Evaluation], world: World) -> list[dict[str, Any]]:
    """The rows of one budget; the first policy is the one to catch up with."""
    first = group[0]
    rows = []
    for each in group:
        row = each.row()
        row = {"policy": row.pop("policy"), "board": world.board, "source": world.source, **row}
        row["catches_up_at"] = None if each is first else catches_up(each, first)
        rows.append(row)
    return rows


def _curve(result: Evaluation) -> dict[str, Any]:
    return {
        "policy": result.policy,
        "budget": result.trial.budget,
        "regret": result.regret_by_window.tolist(),
    }


def _swept(rows: Sequence[dict[str, Any]]) -> dict[str, float | None]:
    """What the table that ends a sweep shows: the first policy's means over the budgets."""
    mine = [row for row in rows if row["policy"] == rows[0]["policy"]]

    def mean(name: str) -> float | None:
        values = [row[name]["mean"] for row in mine]
        known = [value for value in values if value is not None]
        return sum(known) / len(known) if known else None

    return {name: mean(name) for name in ("saving", "gap", "violations")}


def _table(rows: Sequence[dict[str, Any]]) -> str:
    first = rows[0]["policy"]
    header = ("policy", "budget", *COLUMNS, "within 2 % at", f"passes {first} at")
    lines = []
    for row in rows:
        figures = [_percent(row[name]["mean"]) for name in COLUMNS.values()]
        arrived = row["windows_to_2pct"]["median"]
        caught = row["catches_up_at"]
        lines.append(
            (
                row["policy"],
                f"{row['budget']:.0%}",
                *figures,
                None if arrived is None else f"{arrived:.0f}",
                None if caught is None else f"{caught}",
            )
        )
    return table(header, lines)


def _percent(value: float | None) -> str | None:
    return None if value is None else f"{100 * value:.2f} %"
