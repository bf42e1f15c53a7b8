"""The work of ``rlgov fit``, imported only when it is asked for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlgov.boards.twin import TwinSpec
from rlgov.cli.command import Invocation
from rlgov.cli.text import table
from rlgov.errors import ConfigError, TraceError
from rlgov.traces.fit import FittedTwin, SurfaceError, fit
from rlgov.traces.fit_files import fitted_name, save_fit
from rlgov.traces.fit_trace import profile_of_trace
from rlgov.traces.profile import Profile
from rlgov.traces.profiles import read_profile, read_profiles
from rlgov.traces.tables import read_trace

SETTINGS_TO_HOLD_OUT = 6
"""With fewer settings none is held out: they are needed for the fit itself."""


def run(invocation: Invocation) -> int:
    """Fit, print the errors, and write the twin's files."""
    config = invocation.config
    spec = TwinSpec.from_dict(config["board"])
    profiles, source = _profiles(config)
    held_out = _held_out(profiles, spec, config["hold_out"])
    fitted = fit(profiles, spec, ensemble=config["ensemble"], seed=config["seed"])
    files = save_fit(fitted, invocation.folder.path, source.name)
    warnings = _other_board(profiles, spec)
    print(_report(fitted, held_out, files))
    for warning in warnings:
        print(f"warning: {warning}")
    summary = _summary(fitted, held_out, files, source)
    invocation.folder.write_summary({**summary, "warnings": warnings})
    return 0


def _profiles(config: dict[str, Any]) -> tuple[list[Profile], Path]:
    given = [key for key in ("profile", "trace") if config[key] is not None]
    if len(given) != 1:
        raise ConfigError("give one of profile=FILE and trace=DIR")
    path = Path(config[given[0]])
    if given == ["trace"]:
        return [profile_of_trace(read_trace(path).rows, path.stem)], path
    if config["job"] is not None:
        return [read_profile(path, config["job"], config["device"])], path
    profiles = _of_device(read_profiles(path), config["device"], path)
    devices = {profile.device for profile in profiles}
    if len(devices) > 1:
        raise TraceError(f"{path}: choose one with device=; it holds {', '.join(sorted(devices))}")
    return profiles, path


def _of_device(profiles: list[Profile], device: str | None, path: Path) -> list[Profile]:
    if device is None:
        return profiles
    chosen = [p for p in profiles if _slug(device) in _slug(p.device or "")]
    if not chosen:
        known = ", ".join(sorted({p.device or "unnamed" for p in profiles}))
        raise TraceError(f"{path}: no device={device}; it holds {known}")
    return chosen


def _other_board(profiles: Sequence[Profile], spec: TwinSpec) -> list[str]:
    """A word for every device that the board's name does not speak of."""
    board = _slug(spec.name)
    named = sorted({p.device for p in profiles if p.device})
    return [
        f"the profile was measured on {device}, the board is {spec.name}: is it the right twin?"
        for device in named
        if _slug(device) not in board and board not in _slug(device)
    ]


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")


def _held_out(profiles: Sequence[Profile], spec: TwinSpec, every: int) -> tuple[SurfaceError, ...]:
    """Errors at every ``every``-th setting, of a fit without them."""
    train = np.concatenate([_train(len(profile.settings()), every) for profile in profiles])
    if train.all():
        return ()
    return fit(profiles, spec, train=train, ensemble=0).held_out


def _train(settings: int, every: int) -> NDArray[np.bool_]:
    if every < 2 or settings < SETTINGS_TO_HOLD_OUT:
        return np.ones(settings, bool)
    kept: NDArray[np.bool_] = np.arange(settings) % every != every // 2
    return kept


def _report(fitted: FittedTwin, held_out: Sequence[SurfaceError], files: Sequence[Path]) -> str:
    lines = [_error_table(fitted.errors, held_out)]
    free = [c.name for c in fitted.constraints if ": " not in c.name and not c.constrained]
    lines.append(
        f"\nOf what was varied, the measurements leave open: {', '.join(free) or 'nothing'}."
    )
    lines.append("Every other parameter of the twin is its prior's: see board.yaml.")
    surfaces = {e.surface for e in fitted.errors}
    if surfaces <= {"time"}:
        lines.append("Only times were measured: every watt and joule of this twin is its prior's.")
    if fitted.ignored:
        lines.append(f"Rails that this board's twin does not have: {', '.join(fitted.ignored)}.")
    lines.append(f"Twins that fit equally well: {len(fitted.members)}.")
    return "\n".join([*lines, *(f"  {path}" for path in files)])


def _error_table(errors: Sequence[SurfaceError], held_out: Sequence[SurfaceError]) -> str:
    apart = {(e.job, e.surface): e for e in held_out}
    rows = []
    for e in errors:
        other = apart.get((e.job, e.surface))
        kept = "-" if other is None else f"{100 * other.rms:.2f} % of {other.points}"
        rows.append((e.job, e.surface, str(e.points), f"{100 * e.rms:.2f} %", kept))
    return table(("job", "surface", "points", "rms error", "held out"), rows)


def _summary(
    fitted: FittedTwin, held_out: Sequence[SurfaceError], files: Sequence[Path], source: Path
) -> dict[str, Any]:
    return {
        "source": str(source),
        "board": fitted_name(fitted.spec.name),
        "emulated": True,
        "jobs": list(fitted.jobs),
        "errors": [asdict(e) for e in fitted.errors],
        "held_out": [asdict(e) for e in held_out],
        "worst_rms": max(e.rms for e in fitted.errors),
        "held_out_worst_rms": max((e.rms for e in held_out), default=None),
        "parameters": [asdict(c) | {"constrained": c.constrained} for c in fitted.constraints],
        "ignored_rails": list(fitted.ignored),
        "ensemble": len(fitted.members),
        "files": [str(path) for path in files],
    }
