from __future__ import annotations

import json
import math
import resource
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise

import pytest

from rlgov.boards.base import AS_FOUND
from rlgov.boards.lease import LEASE_FILE
from rlgov.boards.twin.board import TwinBoard
from rlgov.envs.guard import GuardSpec
from rlgov.envs.simulated import WindowSpec
from rlgov.errors import BoardError, ConfigError
from rlgov.governor.emulated import EmulatedJob
from rlgov.governor.record import TRACE_FILE
from rlgov.governor.session import SessionSpec
from rlgov.governor.summary import caveats
from rlgov.jobs.base import JobEnd
from rlgov.traces.store import read_store
from tests.conformance.job_contract import JobContract
from tests.envs.world import SPEC
from tests.fakes.synthetic_job import SyntheticJob, fine_tuning
from tests.governor.runs import Choosing, WatchedBoard, govern

STEPS = 900
SLOWEST = (306.0, 729.6, 2133.0)
AUTO = (math.nan, math.nan, math.nan)


class TestTheSyntheticJob(JobContract):
    @pytest.fixture(params=[1, 3])
    def job(self, request):
        return SyntheticJob(20, pauses={6: 1.0}, together=request.param)


class TestTheEmulatedJob(JobContract):
    """On the emulated clock, whose time has nothing to do with the real one."""

    @pytest.fixture
    def job(self):
        return EmulatedJob(SyntheticJob(20, pauses={6: 1.0}), WatchedBoard())

    def test_time_moves_forward_by_what_each_event_says(self, job):
        events = self.events(job)[:-1]
        assert all(b.t_s > a.t_s for a, b in pairwise(events))


class TestWholeRuns:
    def test_as_found_saves_nothing(self, tmp_path):
        run = govern(tmp_path, SyntheticJob(STEPS))
        low, high = run.summary["saving_ci95"]
        assert low < 0 < high
        assert abs(run.summary["saving"]) < 0.02
        assert abs(run.summary["slowdown"]) < 0.01
        assert run.summary["settings_time_share"] == {"gpu auto cpu auto emc auto": 1.0}
        assert run.summary["status"] == "completed"
        assert set(run.board.applied) == {AS_FOUND}

    def test_the_oracle_saves_within_the_budget(self, tmp_path):
        run = govern(tmp_path, SyntheticJob(STEPS), "oracle", budget=0.1)
        assert run.summary["saving_ci95"][0] > 0.05
        assert run.summary["slowdown_ci95"][0] < 0.1  # on the edge: only the truth is within it
        assert run.summary["saving_with_reference"] < run.summary["saving"]

    def test_a_fixed_setting_is_held_but_for_audits(self, tmp_path):
        args = {"gpu_mhz": 816, "cpu_mhz": 1958.4}
        run = govern(tmp_path, SyntheticJob(STEPS), "fixed", args=args, budget=2.0)
        assert set(map(str, run.board.applied)) == {
            "gpu auto cpu auto emc auto",
            "gpu 816 cpu 1958.4 emc auto",
        }
        assert run.summary["windows_by_kind"]["audit"] > 0

    def test_the_pinned_maximum_is_not_as_found(self, tmp_path):
        run = govern(tmp_path, SyntheticJob(STEPS), "max")
        assert run.summary["saving_ci95"][1] < 0
        assert run.summary["slowdown"] <= 0.005

    def test_a_guarded_random_policy_keeps_near_the_budget_and_is_overruled(self, tmp_path):
        guarded = govern(tmp_path / "a", SyntheticJob(STEPS), "random", budget=0.1)
        bare = govern(
            tmp_path / "b",
            SyntheticJob(STEPS),
            "random",
            budget=0.1,
            guard=GuardSpec(enabled=False),
        )
        assert guarded.summary["interventions"]["budget"] > 0
        assert guarded.summary["slowdown"] < bare.summary["slowdown"] / 2
        assert bare.summary["interventions"] == {}

    def test_every_step_and_joule_of_a_run_is_somewhere(self, tmp_path):
        run = govern(tmp_path, SyntheticJob(STEPS, pauses={300: 20.0}), "oracle")
        ledger = run.result.ledger
        assert ledger.steps == STEPS - 1, "the first step only starts the clock"
        assert run.summary["energy_j"] == pytest.approx(sum(run.summary["rail_j"].values()))
        parts = [ledger.account("reference", "audit", "decided"), ledger.settling, ledger.tail]
        joules = sum(p.train_j for p in parts) + ledger.pause_j
        assert joules == pytest.approx(run.summary["energy_j"])
        seconds = sum(p.train_s for p in parts) + ledger.pause_s
        assert seconds == pytest.approx(run.board.now_s() - run_start(run), rel=1e-6)

    def test_the_same_seed_is_the_same_run(self, tmp_path):
        runs = [govern(tmp_path / name, SyntheticJob(300), "random").summary for name in ("a", "b")]
        for summary in runs:
            del summary["agent"]
        assert runs[0] == runs[1]

    def test_batches_of_varying_length_are_compared_at_equal_tokens(self, tmp_path):
        """Short batches after the reference look like a saving to whoever does not look."""

        def tokens(step: int) -> int:
            # Varying within windows, and half as long on the whole once the reference is done.
            return (1000, 2000)[step % 2] if step < 120 else (500, 1000, 1500)[step % 3]

        job = SyntheticJob(STEPS, tokens=tokens)
        summary = govern(tmp_path, job, audit_share=0.0).summary
        assert summary["normalised_by"] == "tokens"
        naive = 1 - summary["j_per_step"] / summary["reference_j_per_step"]
        assert naive > 0.2
        assert abs(summary["saving"]) < naive / 2


def run_start(run) -> float:
    """Emulated time of the first step's end."""
    board = WatchedBoard()
    return board.advance(run.job._load(fine_tuning()))


class TestPauses:
    def test_an_evaluation_is_not_a_slow_step(self, tmp_path):
        pauses = dict.fromkeys(range(100, STEPS, 100), 30.0)
        plain = govern(tmp_path / "a", SyntheticJob(STEPS))
        paused = govern(tmp_path / "b", SyntheticJob(STEPS, pauses=pauses))
        assert paused.summary["pause_s"] == pytest.approx(240.0)
        assert paused.result.ledger.pause_j == pytest.approx(240 * 10, rel=0.4)
        for key in ("s_per_step", "j_per_step"):
            assert paused.summary[key] == pytest.approx(plain.summary[key], rel=0.05)

    def test_one_event_may_cover_several_steps_and_a_pause(self, tmp_path):
        """The first step only starts the clock, with all that its event covers."""
        job = SyntheticJob(STEPS, together=4, pauses={400: 10.0})
        run = govern(tmp_path, job)
        assert run.summary["governed_steps"] == STEPS - 4
        assert run.summary["pause_s"] == pytest.approx(10.0)
        single = govern(tmp_path / "single", SyntheticJob(STEPS)).summary
        assert run.summary["j_per_step"] == pytest.approx(single["j_per_step"], rel=0.03)
        assert run.summary["s_per_step"] == pytest.approx(single["s_per_step"], rel=0.03)


class TestEarlyEnds:
    @pytest.mark.parametrize(
        ("steps", "ends", "status", "words"),
        [
            (0, (0, "completed"), "no_steps", "no optimizer step"),
            (4, (0, "completed"), "completed", "before the first decided window"),
            (30, (3, "failed"), "failed", "before the first decided window"),
            (4, (130, "interrupted"), "interrupted", "before the first decided window"),
        ],
    )
    def test_no_figures_but_words(self, tmp_path, steps, ends, status, words):
        run = govern(tmp_path, SyntheticJob(steps, ends=ends))
        summary = run.summary
        assert summary["status"] == status
        assert summary["job_exit_code"] == ends[0]
        assert words in summary["why_no_figures"]
        for name in ("j_per_step", "saving", "saving_ci95", "slowdown", "saving_with_reference"):
            assert summary[name] is None
        assert summary["windows"] == 0
        assert run.board.capture() == run.found

    def test_work_that_is_never_counted(self, tmp_path):
        summary = govern(tmp_path, SyntheticJob(50, work=None)).summary
        assert summary["uncounted_steps"] == 50
        assert "could be counted" in summary["why_no_figures"]

    def test_an_interrupted_run_keeps_what_it_saw(self, tmp_path):
        run = govern(tmp_path, SyntheticJob(500, ends=(130, "interrupted")), "oracle")
        assert run.summary["status"] == "interrupted"
        assert run.summary["saving"] > 0
        assert run.summary["why_no_figures"] is None

    def test_the_window_that_the_end_cut_short_is_in_the_ledger_and_in_no_mean(self, tmp_path):
        run = govern(tmp_path, SyntheticJob(STEPS - 9))
        ledger = run.result.ledger
        assert ledger.tail.steps > 0
        rows = read_store(tmp_path / TRACE_FILE).rows
        assert "cut_short" in rows[-1].quality
        assert len(rows) == sum(run.summary["windows_by_kind"].values()) + 1


class TestFaults:
    def test_a_policy_that_raises_hands_the_board_back_and_the_job_goes_on(self, tmp_path, caplog):
        def choose(decision: int):
            if decision == 4:
                raise ZeroDivisionError("policy bug")
            return (816.0, 1958.4, 3199.0)

        job = SyntheticJob(STEPS, ends=(7, "failed"))
        run = govern(tmp_path, job, Choosing(choose), budget=1.0)
        assert run.summary["status"] == "governor_failed"
        assert run.summary["failure"] == "ZeroDivisionError: policy bug"
        assert run.result.end == JobEnd(7, "failed", STEPS)
        assert job.taken == STEPS
        assert run.board.capture() == run.found
        assert json.loads((tmp_path / LEASE_FILE).read_text())["returned"] is True
        assert run.summary["windows"] == 3
        assert job.closed

    def test_readings_do_not_pile_up_when_nobody_meters(self, tmp_path, caplog):
        def fail(_decision: int):
            raise ValueError("no")

        run = govern(tmp_path, SyntheticJob(3 * STEPS), Choosing(fail))
        assert len(run.board.drain()) < 5
        assert "went on as found" in run.summary["why_no_figures"]

    def test_a_board_that_refuses_a_write(self, tmp_path, caplog):
        class Stubborn(WatchedBoard):
            def apply(self, setting):
                if setting != AS_FOUND:
                    raise BoardError("the kernel said no")
                return super().apply(setting)

        run = govern(tmp_path, SyntheticJob(300), "oracle", board=Stubborn())
        assert run.summary["failure"] == "BoardError: the kernel said no"
        assert run.board.capture() == run.found

    def test_an_interruption_from_outside_gives_the_board_back_and_goes_on(self, tmp_path):
        def interrupt(_decision: int):
            raise KeyboardInterrupt

        board, job = WatchedBoard(), SyntheticJob(300)
        found = board.capture()
        with pytest.raises(KeyboardInterrupt):
            govern(tmp_path, job, Choosing(interrupt), board=board)
        assert board.capture() == found
        assert job.closed

    def test_a_trace_on_a_full_disk_is_given_up_and_the_run_is_not(self, tmp_path, caplog):
        with file_size_limit(4096):
            run = govern(tmp_path, SyntheticJob(STEPS), "oracle")
        assert run.summary["status"] == "completed"
        assert run.summary["saving"] > 0.05
        assert caplog.text.count("no longer recorded") == 1
        stored = read_store(tmp_path / TRACE_FILE)
        assert 0 < len(stored.rows) < run.summary["windows"]
        assert stored.corrupt == ()

    def test_a_folder_that_takes_no_lease_leaves_the_board_alone(self, tmp_path, caplog):
        (tmp_path / LEASE_FILE).mkdir()
        run = govern(tmp_path, SyntheticJob(300), "oracle")
        assert run.board.applied == []
        assert run.summary["status"] == "governor_failed"
        assert run.result.end.steps == 300


@contextmanager
def file_size_limit(size: int):
    """As good as a disk that is full at ``size`` bytes a file."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


class TestSensors:
    def test_silent_sensors_give_null_never_zero_and_as_found(self, tmp_path):
        class Silent(WatchedBoard):
            def drain(self):
                return [replace(r, power_w={}, total_w=None) for r in super().drain()]

        run = govern(tmp_path, SyntheticJob(STEPS), "oracle", board=Silent())
        summary = run.summary
        for name in ("j_per_step", "reference_j_per_step", "saving", "energy_j"):
            assert summary[name] is None
        assert summary["unmetered"] == {"no reading": pytest.approx(4 * windows_and_settling(run))}
        assert set(run.board.applied) == {AS_FOUND}
        assert summary["interventions"]["sensor"] == summary["windows"] + 1
        assert (
            summary["why_no_figures"] == "the energy of no decided window was metered: no reading"
        )
        assert abs(summary["slowdown"]) < 0.01

    def test_sensors_that_fall_silent_take_the_figures_of_their_windows_only(self, tmp_path):
        class Failing(WatchedBoard):
            def drain(self):
                readings = super().drain()
                silent = [replace(r, power_w={}, total_w=None) for r in readings]
                return [s if 40 < r.t_s < 60 else r for r, s in zip(readings, silent, strict=True)]

        run = govern(tmp_path, SyntheticJob(STEPS), "oracle", board=Failing(), audit_share=0.0)
        assert run.summary["energy_j"] is None
        assert run.summary["saving"] > 0.05
        assert run.summary["interventions"]["sensor"] > 0
        assert all("(" not in cause for cause in run.summary["unmetered"])
        decided = run.result.ledger.windows["decided"]
        assert 0 < sum(e.train_j is None for e in decided) < len(decided) / 2


def windows_and_settling(run) -> int:
    """Stretches that the ledger was given: every window, its settling where clocks changed."""
    complete = sum(run.summary["windows_by_kind"].values())
    return complete + len(run.board.applied) + (run.result.ledger.tail.steps > 0)


class TestWhatIsRefused:
    @pytest.mark.parametrize(
        "spec",
        [
            {"objective": "enrgy"},
            {"budget": -0.1},
            {"objective": "power_cap"},
            {"audit_share": 0.6},
            {"guard": GuardSpec(max_drop=0.0)},
            {"window": WindowSpec(min_steps=0)},
            {"window": WindowSpec(min_seconds=-1.0)},
            {"window": WindowSpec(reference_windows=0)},
            {"settle_s": -1.0},
        ],
    )
    def test_before_any_job_is_started(self, spec):
        with pytest.raises(ConfigError):
            SessionSpec(**spec)


class TestAudits:
    def test_they_run_as_found_and_refresh_the_reference(self, tmp_path):
        args = {"gpu_mhz": 816}
        run = govern(tmp_path, SyntheticJob(STEPS), "fixed", args=args, budget=2.0)
        rows = read_store(tmp_path / TRACE_FILE).rows
        kinds = [row.extra["window_kind"] for row in rows]
        assert kinds[:3] == ["reference"] * 3
        for row, kind in zip(rows, kinds, strict=True):
            asked = row.values.get("gpu_mhz_set")
            assert asked == (816.0 if kind == "decided" else None)
        assert kinds.count("audit") >= 2
        assert run.summary["windows_by_kind"]["audit"] + (kinds[-1] == "audit") >= 2

    def test_none_where_none_are_wanted(self, tmp_path):
        run = govern(tmp_path, SyntheticJob(STEPS), audit_share=0.0)
        assert run.summary["windows_by_kind"]["audit"] == 0


def test_budget_interventions_are_counted_and_end_a_slow_setting(tmp_path):
    slow = Choosing(lambda _: SLOWEST)
    guard = GuardSpec(max_drop=1.0)
    run = govern(tmp_path, SyntheticJob(STEPS), slow, guard=guard, budget=0.1, audit_share=0.0)
    decided = run.summary["windows"]
    assert run.summary["interventions"]["budget"] == slow.decisions - 1
    rows = [
        r for r in read_store(tmp_path / TRACE_FILE).rows if r.extra["window_kind"] == "decided"
    ]
    assert [r.values.get("gpu_mhz_set") for r in rows[:4]] == [306.0, None, None, None]
    assert [("budget" in r.guard) for r in rows[:3]] == [False, True, True]
    assert decided > 10


def test_the_settings_shares_are_of_decided_time_and_sum_to_one(tmp_path):
    turns = Choosing(lambda n: SLOWEST if n % 2 else AUTO)
    run = govern(tmp_path, SyntheticJob(STEPS), turns, guard=GuardSpec(enabled=False))
    shares = run.summary["settings_time_share"]
    assert sum(shares.values()) == pytest.approx(1.0)
    assert list(shares.values()) == sorted(shares.values(), reverse=True)
    assert set(shares) == {"gpu 306 cpu 729.6 emc 2133", "gpu auto cpu auto emc auto"}


class TestCaveats:
    def test_windows_shorter_than_the_sensors_lag_are_called_doubtful(self, tmp_path):
        spec = {"settle_s": 0.01, "window": WindowSpec(4, 0.05, 2)}
        short = govern(tmp_path, SyntheticJob(STEPS), **spec)
        assert [c.split("=")[0] for c in short.summary["caveats"]] == [
            "settle_s",
            "window.min_seconds",
        ]

    def test_the_defaults_are_not(self, tmp_path):
        board = TwinBoard(SPEC)
        assert caveats(SessionSpec(), board) == []

    def test_the_first_window_is_not_read_low_by_an_idle_board(self, tmp_path):
        run = govern(tmp_path, SyntheticJob(STEPS), settle_s=1.0, window=WindowSpec(8, 2.0, 4))
        rows = read_store(tmp_path / TRACE_FILE).rows
        watts = [row.number("total_w") for row in rows if row.extra["window_kind"] == "reference"]
        assert run.summary["windows"] > 0
        assert watts[0] == pytest.approx(sum(watts) / len(watts), rel=0.015)
