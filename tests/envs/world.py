"""A small world of twins for tests: a real board, real jobs, few of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import yaml

from rlgov.boards.base import Knob
from rlgov.boards.twin import Silicon, TwinSpec, load_of
from rlgov.boards.twin.noise import job_seeds
from rlgov.envs.batched import BatchedGovernorEnv
from rlgov.envs.guard import GuardSpec
from rlgov.envs.plant import WindowData
from rlgov.envs.simulated import SimulatedPlant, Spread, WindowSpec
from rlgov.envs.spaces import ActionGrid
from rlgov.jobs.jobbatch import JobBatch
from rlgov.jobs.population import LoaderRegime, Population
from rlgov.reward import Preference

CONF = Path(__file__).parents[2] / "conf"
BOARD = "jetson_agx_orin_64gb"
SPEC = TwinSpec.from_dict(yaml.safe_load((CONF / "board" / f"{BOARD}.yaml").read_text()))
LOADERS = [LoaderRegime("tokenised", 1.0, (0.05, 0.6), (0.1, 1.0))]
POPULATION = Population("validation", 7, ["bert", "pythia"], LOADERS)
WINDOW = WindowSpec(min_steps=5, min_seconds=2.0)


def make_plant(n: int, window: WindowSpec = WINDOW, spread: Spread | None = None) -> SimulatedPlant:
    return SimulatedPlant(SPEC, POPULATION.draw, n, window, spread or Spread())


class Placed(SimulatedPlant):
    """The jobs ``rows`` of a batch of eight: the same ones whatever the size of the plant."""

    def __init__(self, rows: np.ndarray, seed: int) -> None:
        super().__init__(SPEC, POPULATION.draw, len(rows), WINDOW, Spread())
        rng = np.random.default_rng(seed)
        self._rows = rows
        self._batch: JobBatch = POPULATION.draw(8, rng)
        self._silicon = Silicon.draw(8, 0.1, rng)
        self._seeds = job_seeds(8, rng)

    def reset(self, seed: int | None) -> None:
        super().reset(seed)
        jobs = self._batch.take(self._rows)
        load = load_of(jobs.work, SPEC)
        self.place(jobs, load, self._silicon.take(self._rows), self._seeds[self._rows], 0.5)


def wanting(objective: str = "energy", budget: float = 0.1):
    def draw(n: int, _: np.random.Generator) -> Preference:
        cap = 0.8 if objective == "power_cap" else None
        return Preference.of(objective, budget, n, cap)

    return draw


def make_env(n: int, guard: GuardSpec | None = None, budget: float = 0.1) -> BatchedGovernorEnv:
    plant = make_plant(n)
    grid = ActionGrid.of_tables(plant.knobs, {"cpu": 4})
    return BatchedGovernorEnv(plant, grid, wanting(budget=budget), guard)


def knobs(gpu: tuple[float, ...] = (300.0, 600.0, 900.0, 1200.0)) -> list[Knob]:
    return [Knob("gpu", gpu), Knob("cpu", (500.0, 1000.0, 2000.0)), Knob("emc", (800.0, 3200.0))]


def window(
    n: int = 1,
    time_s: float = 1.0,
    joules: float = 30.0,
    clocks: tuple[float, float, float] = (1200.0, 2000.0, 3200.0),
) -> WindowData:
    return WindowData(
        step_time_s=np.full(n, time_s),
        step_j=np.full(n, joules),
        role_w=np.tile([15.0, 5.0, 6.0, 4.0], (n, 1)),
        utilisation=np.tile([0.9, 0.3, 0.5], (n, 1)),
        clocks_mhz=np.tile(clocks, (n, 1)).astype(float),
        temperature_c=np.full(n, 60.0),
        steps=np.full(n, 10.0),
    )
