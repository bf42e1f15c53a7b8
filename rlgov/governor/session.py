"""One governed run: the environment driven by a policy beside a live job, without a learner."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rlgov.boards.base import Board, Reading
from rlgov.boards.lease import Lease
from rlgov.envs.batched import BatchedGovernorEnv, JobOverError
from rlgov.envs.guard import GuardSpec
from rlgov.envs.simulated import WindowSpec
from rlgov.envs.spaces import ActionGrid
from rlgov.errors import ConfigError
from rlgov.governor.audit import AuditPlan
from rlgov.governor.cost import AgentCost
from rlgov.governor.ledger import Kind, Ledger
from rlgov.governor.live import LivePlant, LiveWindow
from rlgov.governor.record import WindowLog
from rlgov.jobs.base import Job, JobEnd
from rlgov.policies.base import Policy
from rlgov.reward import Preference, RewardSpec

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class SessionSpec:
    """How a run is governed.

    Attributes:
        objective: See `rlgov.reward.OBJECTIVES`.
        budget: Allowed slowdown.
        power_cap: For ``objective=power_cap``: share of the reference's power.
        window: How long a window is.
        guard: Which rules stand.
        reward: How hard the limits bite (enters the observation through the best so far).
        settle_s: Seconds after a change that are left to settle.
        max_gap_s: Longest distance between readings that the meter bridges.
        audit_share: Share of windows that run as found.
        seed: Seed of the audit and of random policies.
    """

    objective: str = "energy"
    budget: float = 0.1
    power_cap: float | None = None
    window: WindowSpec = field(default_factory=WindowSpec)
    guard: GuardSpec = field(default_factory=GuardSpec)
    reward: RewardSpec = field(default_factory=RewardSpec)
    settle_s: float = 1.0
    max_gap_s: float = 2.0
    audit_share: float = 0.05
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse what cannot be, before a job is started for it.

        Raises:
            ConfigError: A value that cannot be.
        """
        self._check_times()
        self.preference()
        self.guard.rules(1, ())
        AuditPlan(self.audit_share, self.seed)

    def _check_times(self) -> None:
        least: dict[str, tuple[float, float]] = {
            "window.min_steps": (self.window.min_steps, 1),
            "window.min_seconds": (self.window.min_seconds, 0),
            "window.reference_windows": (self.window.reference_windows, 1),
            "settle_s": (self.settle_s, 0),
        }
        for name, (value, limit) in least.items():
            if not value >= limit:
                raise ConfigError(f"{name}={value} must be {limit} or more")

    def preference(self) -> Preference:
        """What the user wants."""
        return Preference.of(self.objective, self.budget, 1, self.power_cap)


@dataclass
class SessionResult:
    """What a run left.

    Attributes:
        end: How the job ended.
        ledger: What it cost and saved.
        cost: What the governor cost.
        interventions: Guard rule -> number of acts.
        failure: What stopped the governor before the job's end; ``None`` if nothing did.
    """

    end: JobEnd
    ledger: Ledger
    cost: AgentCost
    interventions: Mapping[str, int]
    failure: str | None = None


class Session:
    """Governs one job to its end.

    Args:
        spec: How.
        board: The board, on whose clock the job's events are stamped.
        job: The job.
        policy: Picks settings.
        roles: Rail -> what it mostly feeds.
        drain: Hands over the board's readings since the last call.
        folder: Where the lease and the windows' log go.

    Attributes:
        ledger: What the run has cost and saved so far.
    """

    def __init__(
        self,
        spec: SessionSpec,
        board: Board,
        job: Job,
        policy: Policy,
        roles: Mapping[str, str],
        drain: Callable[[], Sequence[Reading]],
        folder: Path,
    ) -> None:
        self.spec = spec
        self._board, self._job, self._policy, self._folder = board, job, policy, folder
        self._drain = drain
        self._log = WindowLog(folder, board, job.name)
        self.ledger = Ledger()
        self._cost = AgentCost()
        self._kind: Kind = "reference"
        self._plant = LivePlant(
            board, job, drain, roles, spec.window, spec.settle_s, spec.max_gap_s, self._on_window
        )
        self.ledger.size = self._plant.size
        preference = spec.preference()
        self._env = BatchedGovernorEnv(
            self._plant,
            ActionGrid.of_tables(board.knobs),
            lambda _n, _rng: preference,
            spec.guard,
            spec.reward,
            spec.window.reference_windows,
        )
        self._audit = AuditPlan(spec.audit_share, spec.seed)

    def run(self) -> SessionResult:
        """Follow the job to its end; the board is given back whatever happens.

        A fault of the governor never ends the job: the board is given back, the job runs on
        as found, and the result says what failed.
        """
        try:
            failure = self._govern_under_lease()
            end = self._wait_for_end()
        finally:
            self._log.close()
            self._plant.close()
        return SessionResult(
            end, self.ledger, self._cost, dict(self._env.episodes.guard.counts), failure
        )

    def _govern_under_lease(self) -> str | None:
        """Govern to the job's end; what failed, or ``None``."""
        try:
            with Lease(self._board, self._folder):
                self._govern()
        except Exception as error:
            # The daemon's boundary: the job must outlive any fault of ours.
            log.exception("the governor failed; the job goes on as found")
            return f"{type(error).__name__}: {error}"
        return None

    def _govern(self) -> None:
        try:
            self._env.reset(self.spec.seed)
        except JobOverError:
            return
        self._policy.begin(1)
        while self._plant.end is None:
            if self._audit.due():
                self._kind = "audit"
                self._env.audit()
            else:
                self._kind = "decided"
                self._decide()

    def _decide(self) -> None:
        with self._cost.decision():
            observation = self._env.observe()
            targets = self._policy.act(observation)
        self._env.step_targets(targets)

    def _on_window(self, window: LiveWindow) -> None:
        complete = self._plant.end is None and window.metered is not None
        self.ledger.add(self._kind, window, complete)
        self._log.add(self._kind, window, complete, self._env.last_acts)

    def _wait_for_end(self) -> JobEnd:
        """Follow the job, without governing it, to its end."""
        while True:
            event = self._job.next_event()
            self._drain()  # nobody meters any more, and readings must not pile up
            if isinstance(event, JobEnd):
                return event
