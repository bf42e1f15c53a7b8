"""The work of ``rlgov run``, imported only when it is asked for."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from rlgov.boards.lease import refuse_if_held
from rlgov.boards.sampler import Sampler
from rlgov.boards.select import RealBoard
from rlgov.boards.twin import Load
from rlgov.boards.twin.board import TwinBoard
from rlgov.boards.twin.loadfile import read_job
from rlgov.cli.command import Invocation
from rlgov.cli.instantiate import instantiate_group
from rlgov.cli.run_board import choose_board
from rlgov.governor.emulated import EmulatedJob
from rlgov.governor.session import Session, SessionSpec
from rlgov.governor.summary import summarise
from rlgov.jobs.attach import AttachedJob
from rlgov.policies.base import Policy
from rlgov.policies.registry import load_policy
from rlgov.reports.terminal import print_run
from rlgov.work import FloatArray


def run(invocation: Invocation) -> int:
    """Govern the command after ``--`` and end with its exit code."""
    config = invocation.config
    console = Console(stderr=True, highlight=False)
    session = _session_spec(config)
    board = choose_board(config, invocation.config_dirs, console)
    try:
        summary = _govern(invocation, session, board, console)
    finally:
        board.close()
    try:
        invocation.folder.write_summary(summary)
    except OSError as error:
        # The job has ended as it has; a full disk must not make its exit code ours.
        console.print(f"rlgov: summary.json could not be written: {error.strerror}", markup=False)
    print_run(summary, console)
    return summary["job_exit_code"] or 0


def _govern(
    invocation: Invocation, session: SessionSpec, board: TwinBoard | RealBoard, console: Console
) -> dict[str, Any]:
    """Start the job, govern it to its end, and sum up."""
    config = invocation.config
    policy, best = _policy(config, board)
    if not isinstance(board, TwinBoard):
        refuse_if_held(board)
    console.print(_opening(config, board, policy))
    attached = AttachedJob(invocation.job, host_ghz=config["emulation"]["host_ghz"])
    folder = invocation.folder.path
    job = None
    if isinstance(board, TwinBoard):
        job = EmulatedJob(attached, board, config["emulation"]["scale"], fitted_load(config))
        best.source = partial(job.best_targets, budget=session.budget)
        roles, drain = board.spec.rail_roles, board.drain
        result = Session(session, board, job, policy, roles, drain, folder).run()
    else:
        with Sampler(board, config["board"]["period_s"]) as sampler:
            roles, drain = board.rail_roles, sampler.drain
            result = Session(session, board, attached, policy, roles, drain, folder).run()
    summary = summarise(result, session, board, policy.name, " ".join(invocation.job), job)
    summary["out"] = str(folder)
    if not isinstance(board, TwinBoard):
        summary["board_facts"] = {"kind": board.kind, **board.facts}
    return summary


def fitted_load(config: dict[str, Any]) -> Load | None:
    """The load of ``job=FILE``, as ``rlgov fit`` wrote it; ``None`` without one."""
    return None if config["job"] is None else read_job(Path(config["job"]))[1]


class _Best:
    """The oracle's source of truth, which exists only once the job has shown its work."""

    source: Any = None

    def __call__(self) -> FloatArray:
        targets: FloatArray = np.full((1, 3), np.nan) if self.source is None else self.source()
        return targets


def _policy(config: dict[str, Any], board: TwinBoard | RealBoard) -> tuple[Policy, _Best]:
    best = _Best()
    name = str(config["policy"])
    args = config["policy_args"].get(name, {})
    policy = load_policy(
        name,
        board.knobs,
        board=board.name,
        seed=config["seed"],
        args=args,
        best=best,
        modes=_modes(board),
    )
    return policy, best


def _modes(board: TwinBoard | RealBoard) -> dict[str, dict[str, float | None]]:
    """Power modes whose caps are known; a real board's are its own files' secret."""
    if not isinstance(board, TwinBoard):
        return {}
    return {mode: dict(board.spec.ceilings(mode)) for mode in board.spec.modes}


def _session_spec(config: dict[str, Any]) -> SessionSpec:
    return SessionSpec(
        objective=config["objective"],
        budget=config["budget"],
        power_cap=config["power_cap"],
        window=instantiate_group(config["window"], "window"),
        guard=instantiate_group(config["guard"], "guard"),
        settle_s=config["settle_s"],
        audit_share=config["audit_share"],
        seed=config["seed"],
    )


def _opening(config: dict[str, Any], board: TwinBoard | RealBoard, policy: Policy) -> str:
    how = "emulated: a model, no clock changes" if isinstance(board, TwinBoard) else _really(board)
    return (
        f"rlgov: {policy.name} governs {board.name} ({how}), "
        f"objective {config['objective']}, at most {config['budget']:.1%} slower, "
        f"seed {config['seed']}"
    )


def _really(board: RealBoard) -> str:
    knobs = ", ".join(knob.name for knob in board.knobs)
    what = f"sets {knobs}" if knobs else "only watches"
    where = board.facts.get("files below")
    return f"for real: {what}" if where is None else f"files below {where}: {what}"
