"""``rlgov run`` through the real command, on real jobs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
SCRIPTS = HERE.parents[1] / "scripts"
TINY = [sys.executable, str(HERE / "jobs" / "tiny.py")]
RLGOV = [sys.executable, "-m", "rlgov", "run"]
QUICK = ["policy=random", "debug=quick", "settle_s=0", "audit_share=0.2", "emulation.scale=1000"]
PATIENCE_S = 300.0

REQUIRED = {
    "board", "emulated", "steps", "j_per_step", "reference_j_per_step", "saving", "saving_ci95",
    "slowdown", "budget", "windows", "settings_time_share", "interventions", "job_exit_code",
    "agent",
}  # fmt: skip
FIGURES = ("j_per_step", "reference_j_per_step", "saving", "saving_ci95", "slowdown")


@dataclass
class Done:
    code: int
    out: bytes
    err: str
    folder: Path

    @property
    def summary(self) -> dict[str, Any]:
        return json.loads((self.folder / "summary.json").read_text())

    @property
    def status(self) -> dict[str, Any]:
        return json.loads((self.folder / "status.json").read_text())


def environment() -> dict[str, str]:
    """One thread, so that two runs of a job add up in the same order."""
    one = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    return {**os.environ, **one, "PYTHONWARNINGS": "ignore", "COLUMNS": "200"}


def govern(folder: Path, *words: str, job: list[str]) -> Done:
    command = [*RLGOV, f"out={folder}", *words, "--", *job]
    done = subprocess.run(command, capture_output=True, env=environment(), timeout=PATIENCE_S)
    return Done(done.returncode, done.stdout, done.stderr.decode(), folder)


def alone(job: list[str]) -> subprocess.CompletedProcess[bytes]:
    """The job below a shell, since pytest itself may have loaded torch by now."""
    below = ["sh", "-c", '"$@"; exit $?', "sh", *job]
    return subprocess.run(below, capture_output=True, env=environment(), timeout=PATIENCE_S)


@pytest.fixture(scope="module")
def governed(tmp_path_factory) -> Done:
    """A job that looks at its governor at the end."""
    folder = tmp_path_factory.mktemp("runs") / "governed"
    return govern(folder, *QUICK, job=[*TINY, "parent", "120"])


@pytest.mark.slow
class TestAGovernedJob:
    def test_the_summary_has_every_figure(self, governed):
        assert governed.code == 0, governed.err
        summary = governed.summary
        assert set(summary) >= REQUIRED
        assert set(summary["agent"]) >= {"cpu_s", "rss_mb", "decision_ms_p50", "decision_ms_p99"}
        assert summary["board"] == "jetson_agx_orin_64gb"
        assert summary["emulated"] is True
        assert summary["steps"] == 120
        assert summary["status"] == "completed"
        assert all(summary[name] is not None for name in FIGURES)
        low, high = summary["saving_ci95"]
        assert low < summary["saving"] < high
        assert "simulated noise only" in summary["ci_scope"]
        assert sum(summary["settings_time_share"].values()) == pytest.approx(1.0)
        assert summary["work_sources"].keys() <= {"counted", "estimated"}

    def test_the_table_says_what_is_emulated_beneath_the_notice(self, governed):
        notice, table = governed.err.index("EMULATED: times and joules"), governed.err.index("┌")
        assert notice < table
        for name in ("energy per mini-batch", "saving", "slowdown", "time per mini-batch"):
            assert f"{name} (emulated)" in governed.err
        assert "1000 times the job's device work" in governed.err
        assert "real time of the job" in governed.err
        assert str(governed.folder) in governed.err

    def test_only_the_jobs_own_bytes_are_on_stdout(self, governed):
        expected = alone([*TINY, "parent", "120"]).stdout
        assert governed.out == expected
        assert b"weights" in expected

    def test_the_governor_is_small_and_has_no_torch_in_it(self, governed):
        assert b"parent has torch: False" in governed.out
        assert 20 < governed.summary["agent"]["rss_mb"] < 100

    def test_what_lies_in_the_folder(self, governed):
        assert governed.status["status"] == "completed"
        assert json.loads((governed.folder / "lease.json").read_text())["returned"] is True
        assert (governed.folder / "trace.jsonl").stat().st_size > 1000
        assert (governed.folder / "config.yaml").is_file()


@pytest.mark.slow
class TestEnds:
    def test_a_job_that_fails(self, tmp_path):
        done = govern(tmp_path / "run", *QUICK, job=[*TINY, "fail"])
        assert done.code == 3
        assert done.summary["status"] == "failed"
        assert done.summary["job_exit_code"] == 3
        assert "failed, exit code 3" in done.err
        assert done.status["exit_code"] == 3

    @pytest.mark.parametrize(
        ("number", "group", "code"),
        [
            (signal.SIGINT, True, 130),
            (signal.SIGINT, False, 130),
            (signal.SIGTERM, True, 143),
            (signal.SIGTERM, False, 143),
        ],
        ids=["int-group", "int-governor", "term-group", "term-governor"],
    )
    def test_an_interruption_ends_both_and_says_so(self, tmp_path, number, group, code):
        folder = tmp_path / "run"
        command = [*RLGOV, f"out={folder}", *QUICK, "--", *TINY, "wait"]
        governor = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(),
            start_new_session=True,
        )
        while governor.stdout.readline() not in (b"ready\n", b""):
            pass
        (os.killpg if group else os.kill)(governor.pid, number)
        _, err = governor.communicate(timeout=PATIENCE_S)
        done = Done(governor.returncode, b"", err.decode(), folder)
        assert done.code == code, done.err
        assert done.summary["status"] == "interrupted"
        assert done.summary["job_exit_code"] == code
        assert done.summary["steps"] == 60
        assert json.loads((folder / "lease.json").read_text())["returned"] is True
        assert "EMULATED" in done.err


class TestJobsWithoutSteps:
    @pytest.mark.parametrize("code", [0, 4])
    def test_a_job_without_torch(self, tmp_path, code):
        job = [sys.executable, "-c", f"import sys; sys.stdout.write('hi'); sys.exit({code})"]
        done = govern(tmp_path / "run", *QUICK, job=job)
        assert (done.code, done.out) == (code, b"hi")
        assert done.summary["status"] == ("failed" if code else "no_steps")
        assert done.summary["windows"] == done.summary["steps"] == 0
        assert all(done.summary[name] is None for name in FIGURES)
        assert done.summary["why_no_figures"] in " ".join(done.err.replace("│", " ").split())
        assert "Traceback" not in done.err

    def test_a_command_that_does_not_exist(self, tmp_path):
        done = govern(tmp_path / "run", *QUICK, job=["no-such-program"])
        assert done.code == 127
        assert "no-such-program" in done.err
        assert "Traceback" not in done.err

    @pytest.mark.parametrize(
        "words",
        [
            ["objective=power_cap"],
            ["audit_share=0.9"],
            ["window.min_steps=0"],
            ["guard.max_drop=0"],
            ["policy=fixed"],
        ],
    )
    def test_what_cannot_be_is_refused_before_the_job_starts(self, tmp_path, words):
        started = tmp_path / "started"
        done = govern(tmp_path / "run", *QUICK, *words, job=["touch", str(started)])
        assert done.code == 2, done.err
        assert not started.exists()
        assert "rlgov: error:" in done.err

    def test_the_governor_imports_no_torch(self, tmp_path):
        code = (
            "import sys; from rlgov.cli.main import main; "
            f"main(['run', 'out={tmp_path / 'run'}', 'policy=random', '--', 'true']); "
            "print(sorted({m.partition('.')[0] for m in sys.modules} & "
            "{'torch', 'stable_baselines3', 'transformers', 'pandas', 'scipy'}))"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert done.stdout == "[]\n", done.stderr

    def test_a_folder_that_is_lost_costs_the_summary_not_the_exit_code(self, tmp_path):
        """As good as a full disk: nothing can be written at the end."""
        folder = tmp_path / "run"
        governed = f"until [ -e {folder}/lease.json ]; do sleep 0.05; done"
        done = govern(folder, *QUICK, job=["sh", "-c", f"{governed}; rm -r {folder}; exit 5"])
        assert done.code == 5, done.err
        assert "summary.json could not be written" in " ".join(done.err.split())
        assert "failed, exit code 5" in done.err
        assert "Traceback" not in done.err


@pytest.mark.slow
def test_a_fine_tuning_job_ends_with_the_same_bits(tmp_path):
    """A Hugging Face Trainer job: the same weights and the same metric, governed or not."""
    job = [
        sys.executable,
        str(SCRIPTS / "finetune_encoder.py"),
        "--steps",
        "40",
        "--vocabulary",
        "600",
    ]
    done = govern(tmp_path / "run", *QUICK[:-1], "emulation.scale=60", job=job)
    assert done.code == 0, done.err
    plain = alone(job).stdout.decode()
    results = [line for line in plain.splitlines() if line.startswith(("weights", "accuracy"))]
    assert len(results) == 2
    assert results == [
        line for line in done.out.decode().splitlines() if line.startswith(("weights", "accuracy"))
    ]
    assert done.summary["steps"] == 40
    assert done.summary["windows"] >= 8
    assert done.summary["work_sources"] == {"counted": 40 - done.summary["uncounted_steps"]}
    assert done.summary["agent"]["rss_mb"] < 100
