"""A run's ``summary.json``: the figures that `rlgov.reports.terminal` prints and others read."""

from __future__ import annotations

from typing import Any

from rlgov.boards.base import Board
from rlgov.governor.emulated import EmulatedJob
from rlgov.governor.ledger import Account
from rlgov.governor.session import SessionResult, SessionSpec
from rlgov.governor.statistics import Interval

NO_STEPS = (
    "no optimizer step of a PyTorch process was seen; the hook needs PYTHONPATH, so it is blind "
    "under python -E, -I or -S, and where a script replaces PYTHONPATH"
)
SIMULATED_SCOPE = "covers simulated noise only"


def summarise(
    result: SessionResult,
    spec: SessionSpec,
    board: Board,
    policy: str,
    job: str,
    emulated: EmulatedJob | None,
) -> dict[str, Any]:
    """Every figure of a run, as plain values; what is not known is ``None``, never zero."""
    ledger = result.ledger
    decided = ledger.account("decided")
    as_found = ledger.account("reference", "audit")
    saving, slowdown = ledger.saving(), ledger.slowdown()
    summary: dict[str, Any] = {
        "status": _status(result),
        "board": board.name,
        "emulated": board.emulated,
        "policy": policy,
        "objective": spec.objective,
        "budget": spec.budget,
        "seed": spec.seed,
        "job": job,
        "job_exit_code": result.end.exit_code,
        "steps": result.end.steps,
        "governed_steps": ledger.steps,
        "j_per_step": decided.j_per_step,
        "reference_j_per_step": as_found.j_per_step,
        "saving": _value(saving),
        "saving_ci95": _ends(saving),
        "ci_scope": SIMULATED_SCOPE if board.emulated else None,
        "saving_with_reference": _saving_with_reference(result),
        "normalised_by": "tokens" if ledger.size.corrects else None,
        "slowdown": _value(slowdown),
        "slowdown_ci95": _ends(slowdown),
        "s_per_step": decided.s_per_step,
        "reference_s_per_step": as_found.s_per_step,
        "power_w": _watts(decided),
        "reference_power_w": _watts(as_found),
        "power_cap": spec.power_cap,
        "windows": len(ledger.windows["decided"]),
        "windows_by_kind": {kind: len(windows) for kind, windows in ledger.windows.items()},
        "settings_time_share": ledger.settings_time_share(),
        "interventions": dict(result.interventions),
        "settling_steps": ledger.settling.steps,
        "pause_s": ledger.pause_s,
        "energy_j": ledger.energy_j,
        "rail_j": dict(ledger.rail_j),
        "total_rule": board.total_rule,
        "unmetered": dict(ledger.unmetered),
        "failure": result.failure,
        "agent": result.cost.summary(emulated.emulation_s if emulated else 0.0),
    }
    if emulated is not None:
        summary |= _emulation(emulated)
    summary["caveats"] = caveats(spec, board)
    summary["why_no_figures"] = _why_no_figures(summary)
    return summary


LAGS_TO_SETTLE = 2.0
LAGS_IN_WINDOW = 4.0


def caveats(spec: SessionSpec, board: Board) -> list[str]:
    """What makes a run's figures doubtful, in words; empty when nothing does."""
    lag = board.sensor_lag_s
    found = []
    if spec.settle_s < LAGS_TO_SETTLE * lag:
        found.append(
            f"settle_s={spec.settle_s:g} is less than {LAGS_TO_SETTLE:g} time constants of the "
            f"board's sensors ({lag:g} s): a window still shows the power of the one before"
        )
    if spec.window.min_seconds < LAGS_IN_WINDOW * lag:
        found.append(
            f"window.min_seconds={spec.window.min_seconds:g} is less than {LAGS_IN_WINDOW:g} time "
            f"constants of the board's sensors ({lag:g} s): energies and savings are biased"
        )
    return found


def _watts(account: Account) -> float | None:
    """Mean power while training; ``None`` where not every step was metered."""
    if account.metered_steps < account.steps or account.train_s <= 0:
        return None
    return account.train_j / account.train_s


def _status(result: SessionResult) -> str:
    if result.failure is not None:
        return "governor_failed"
    return result.end.reason


def _value(interval: Interval | None) -> float | None:
    return None if interval is None else interval.value


def _ends(interval: Interval | None) -> list[float] | None:
    return None if interval is None else [interval.low, interval.high]


def _saving_with_reference(result: SessionResult) -> float | None:
    """Saving over every governed step, reference and audit windows and settling included."""
    ledger = result.ledger
    as_found = ledger.account("reference", "audit")
    parts = [as_found, ledger.account("decided"), ledger.settling]
    metered = sum(part.metered_steps for part in parts)
    if as_found.j_per_step is None or not ledger.windows["decided"] or not metered:
        return None
    mean_j = sum(part.train_j for part in parts) / metered
    return 1.0 - mean_j / as_found.j_per_step


def _emulation(job: EmulatedJob) -> dict[str, Any]:
    emulated_steps = sum(job.work_sources.values())
    return {
        "job_scale": job.scale,
        "work_sources": dict(job.work_sources),
        "uncounted_steps": job.uncounted_steps,
        "real_s_per_step": job.real_s / emulated_steps if emulated_steps else None,
    }


def _why_no_figures(summary: dict[str, Any]) -> str | None:
    """Words for a run without figures; ``None`` when it has some."""
    if summary["j_per_step"] is not None:
        return None
    if summary["failure"] is not None:
        return f"the governor failed ({summary['failure']}); the job went on as found"
    if not summary["steps"]:
        return NO_STEPS
    if not summary["governed_steps"]:
        return "the job ended before the work of its steps could be counted"
    if summary["windows"]:
        causes = ", ".join(summary["unmetered"])
        return f"the energy of no decided window was metered: {causes}"
    return "the job ended before the first decided window was complete"
