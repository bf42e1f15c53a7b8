"""The table that ends a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from rlgov.boards.base import AS_FOUND

EMULATED_NOTICE = (
    "EMULATED: times and joules below are computed by a model of the board; "
    "no clock was changed and nothing was metered."
)
MOST_SETTINGS = 4


def print_run(summary: Mapping[str, Any], console: Console) -> None:
    """Print a run's summary (the content of ``summary.json``) as a table."""
    if summary["emulated"]:
        console.print(Text(EMULATED_NOTICE, style="bold"))
    for caveat in summary["caveats"]:
        console.print(Text(f"DOUBTFUL: {caveat}", style="bold"))
    table = Table(show_header=False, title=_title(summary), title_justify="left")
    table.add_column("figure", no_wrap=True)
    table.add_column("value", overflow="fold")
    for name, value in run_rows(summary):
        table.add_row(name, value)
    console.print(table)


def run_rows(summary: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Name and value of every line of the table."""
    mark = " (emulated)" if summary["emulated"] else ""
    rows = [
        ("job", _job(summary)),
        (f"energy per mini-batch{mark}", _per_step(summary)),
        (f"saving{mark}", _saving(summary)),
        (f"slowdown{mark}", _slowdown(summary)),
        (f"time per mini-batch{mark}", _times(summary)),
        (f"power{mark}", _power(summary)),
        ("windows", _windows(summary)),
        ("settings (share of time)", _settings(summary)),
        ("guard", _guard(summary)),
        ("governor's own cost", _agent(summary)),
    ]
    if summary["emulated"]:
        rows.append(("emulation", _emulation(summary)))
    rows.append(("files", summary["out"]))
    return [(name, value) for name, value in rows if value]


def _title(summary: Mapping[str, Any]) -> str:
    kind = "emulated board" if summary["emulated"] else "board"
    return f"{summary['policy']} on {kind} {summary['board']}, objective {summary['objective']}"


def _job(summary: Mapping[str, Any]) -> str:
    code = summary["job_exit_code"]
    ending = "" if code is None else f", exit code {code}"
    return f"{summary['job']}: {summary['status']}{ending}, {summary['steps']} mini-batches"


def _per_step(summary: Mapping[str, Any]) -> str:
    mine, reference = summary["j_per_step"], summary["reference_j_per_step"]
    if mine is None:
        return f"not known: {summary['why_no_figures']}"
    text = f"{mine:.3g} J"
    return text if reference is None else f"{text} (as found: {reference:.3g} J)"


def _saving(summary: Mapping[str, Any]) -> str:
    saving, interval = summary["saving"], summary["saving_ci95"]
    if saving is None:
        return "not yet known" if summary["j_per_step"] is not None else ""
    scope = f"; {summary['ci_scope']}" if summary["ci_scope"] else ""
    if summary["normalised_by"]:
        scope += f"; at equal {summary['normalised_by']} a step"
    low, high = interval
    return f"{saving:.1%} (95 % interval {low:.1%} to {high:.1%}{scope})"


def _slowdown(summary: Mapping[str, Any]) -> str:
    slowdown, budget = summary["slowdown"], summary["budget"]
    if slowdown is None:
        return ""
    held = "within" if slowdown <= budget else "OVER"
    return f"{slowdown:+.1%}, {held} the budget of {budget:.1%}"


def _times(summary: Mapping[str, Any]) -> str:
    mine, reference = summary["s_per_step"], summary["reference_s_per_step"]
    if mine is None or reference is None:
        return ""
    text = f"{mine * 1e3:.4g} ms (as found: {reference * 1e3:.4g} ms)"
    real = summary.get("real_s_per_step")
    return text if real is None else f"{text}; real time of the job here: {real * 1e3:.4g} ms"


def _power(summary: Mapping[str, Any]) -> str:
    mine, reference = summary["power_w"], summary["reference_power_w"]
    if mine is None or reference is None:
        return ""
    text = f"{mine:.3g} W (as found: {reference:.3g} W)"
    cap = summary["power_cap"]
    if cap is None or summary["objective"] != "power_cap":
        return text
    held = "within" if mine <= cap * reference * 1.005 else "OVER"
    return f"{text}, {held} the cap of {cap * reference:.3g} W"


def _windows(summary: Mapping[str, Any]) -> str:
    kinds = summary["windows_by_kind"]
    return f"{summary['windows']} decided, {kinds['reference']} reference, {kinds['audit']} audit"


def _settings(summary: Mapping[str, Any]) -> str:
    shares = list(summary["settings_time_share"].items())
    lines = [f"{share:5.1%}  {_setting(name)}" for name, share in shares[:MOST_SETTINGS]]
    if len(shares) > MOST_SETTINGS:
        rest = sum(share for _, share in shares[MOST_SETTINGS:])
        lines.append(f"{rest:5.1%}  {len(shares) - MOST_SETTINGS} others")
    return "\n".join(lines)


def _setting(name: str) -> str:
    return "as found" if name == str(AS_FOUND) else f"{name} MHz"


def _guard(summary: Mapping[str, Any]) -> str:
    acts = ", ".join(f"{name} {count}" for name, count in summary["interventions"].items())
    if acts:
        return f"interventions: {acts}"
    return "off" if summary["windows"] else ""  # before the first decision no rule was asked


def _agent(summary: Mapping[str, Any]) -> str:
    agent = summary["agent"]
    text = f"{agent['cpu_s']:.2f} s of CPU, {agent['rss_mb']:.0f} MB resident"
    if agent["decision_ms_p50"] is None:
        return text
    return (
        f"{text}, {agent['decision_ms_p50']:.2f} ms a decision "
        f"(p99 {agent['decision_ms_p99']:.2f} ms)"
    )


def _emulation(summary: Mapping[str, Any]) -> str:
    scale = summary["job_scale"]
    work = "the job's own work" if scale == 1 else f"{scale:g} times the job's device work"
    sources = ", ".join(f"{n} steps {source}" for source, n in summary["work_sources"].items())
    skipped = summary["uncounted_steps"]
    text = f"each step stands for {work}"
    if sources:
        text += f" ({sources})"
    return f"{text}; {skipped} first steps not emulated" if skipped else text
