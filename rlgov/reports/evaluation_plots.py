"""Pictures of an evaluation: saving over budget, regret over windows, energy over time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

Summary = Mapping[str, Any]

PICTURES = ("saving.png", "regret.png", "pareto.png")


def plot_evaluation(summary: Summary, folder: Path) -> str:
    """Draw all `PICTURES` into ``folder``; says what was done, or why nothing was."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return "no pictures, since matplotlib is missing: pip install 'rlgov[report]'"
    draws: Sequence[Callable[[Any, Summary], None]] = (_saving, _regret, _pareto)
    for name, draw in zip(PICTURES, draws, strict=True):
        figure = Figure(figsize=(7.5, 5), layout="constrained")
        draw(figure, summary)
        figure.suptitle(_title(summary), fontsize="small")
        figure.savefig(folder / name, dpi=120)
    return f"pictures: {', '.join(str(folder / name) for name in PICTURES)}"


def _saving(figure: Any, summary: Summary) -> None:
    """Mean saving over budget with its interval; the oracle's as a dashed line."""
    axes = figure.subplots()
    for policy, rows in _by_policy(summary).items():
        budgets = [100 * row["budget"] for row in rows]
        axes.plot(budgets, _means(rows, "saving"), "o-", ms=4, label=policy)
        if all(row["saving"]["ci95"] for row in rows):
            low, high = zip(*(row["saving"]["ci95"] for row in rows), strict=True)
            axes.fill_between(budgets, [100 * v for v in low], [100 * v for v in high], alpha=0.15)
    rows = next(iter(_by_policy(summary).values()))
    budgets = [100 * row["budget"] for row in rows]
    axes.plot(budgets, _means(rows, "oracle_saving"), "k--", lw=1, label="best static setting")
    axes.set_xlabel("budget: allowed slowdown, %")
    axes.set_ylabel("saving against the board as found, %")
    _finish(axes)


def _regret(figure: Any, summary: Summary) -> None:
    """Joules over the oracle's, window by window, one panel a budget."""
    budgets = sorted({curve["budget"] for curve in summary["curves"]})
    figure.set_size_inches(max(7.5, 2.6 * len(budgets) + 1.6), 4.5)
    panels = figure.subplots(1, len(budgets), sharey=True, squeeze=False)[0]
    for axes, budget in zip(panels, budgets, strict=True):
        for curve in summary["curves"]:
            if curve["budget"] == budget:
                shown = [100 * value for value in curve["regret"]]
                axes.plot(range(1, len(shown) + 1), shown, lw=1.2, label=curve["policy"])
        axes.set_title(f"budget {budget:.0%}", fontsize="small")
        axes.set_xlabel("decided window")
        axes.grid(alpha=0.3)
    panels[0].set_ylabel("energy above the best static setting's, %")
    lines, names = panels[0].get_legend_handles_labels()
    figure.legend(lines, names, loc="outside right upper", fontsize="small")


def _pareto(figure: Any, summary: Summary) -> None:
    """Energy over time, both relative to the board as found; one point a policy and budget."""
    axes = figure.subplots()
    for policy, rows in _by_policy(summary).items():
        timed = [row for row in rows if row["slowdown"]["mean"] is not None]
        time = [1 + row["slowdown"]["mean"] for row in timed]
        energy = [1 - row["saving"]["mean"] for row in timed]
        axes.plot(time, energy, "o-", ms=4, lw=0.8, label=policy)
    axes.plot([1], [1], "k+", ms=10, label="as found")
    axes.set_xlabel("time a step, as found = 1")
    axes.set_ylabel("energy a step, as found = 1")
    _finish(axes)


def _by_policy(summary: Summary) -> dict[str, list[Any]]:
    rows: dict[str, list[Any]] = {}
    for row in sorted(summary["rows"], key=lambda row: float(row["budget"])):
        rows.setdefault(row["policy"], []).append(row)
    return {policy: rows[policy] for policy in dict.fromkeys(r["policy"] for r in summary["rows"])}


def _means(rows: Sequence[Any], name: str) -> list[float]:
    means = [row[name]["mean"] for row in rows]
    return [float("nan") if mean is None else 100 * mean for mean in means]


def _finish(axes: Any) -> None:
    axes.grid(alpha=0.3)
    axes.legend(fontsize="small")


def _title(summary: Summary) -> str:
    row = summary["rows"][0]
    return (
        f"{summary['board']}, {Path(summary['source']).name}: {row['n_jobs']} jobs, "
        f"{row['windows']} windows (emulated)"
    )
