from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import yaml

from rlgov.boards.twin import Load, TwinSpec

CONF = Path(__file__).resolve().parents[3] / "conf"


def spec_of(name: str) -> TwinSpec:
    """The twin of a board that came with rlgov."""
    return TwinSpec.from_dict(yaml.safe_load((CONF / f"board/{name}.yaml").read_text()))


def board_names() -> list[str]:
    """Every board that came with rlgov and is a twin; a real one has a ``kind``."""
    paths = [path for path in (CONF / "board").glob("*.yaml") if path.stem != "replay"]
    return sorted(p.stem for p in paths if "kind" not in yaml.safe_load(p.read_text()))


def loads(n: int, seed: int = 0) -> Load:
    """Jobs of every kind: each cost drawn over two decades."""
    rng = np.random.default_rng(seed)

    def wide(centre: float, *shape: int) -> np.ndarray:
        return centre * np.exp(rng.uniform(-2.3, 2.3, (n, *shape)))

    return Load(
        gpu_gcycle=wide(0.1, 3),
        mem_gcycle=wide(0.1, 3),
        host_gcycle=wide(0.05, 3),
        gpu_j=wide(1.0, 3),
        soc_j=wide(1.0),
        mem_j=wide(0.5),
        loader_gcycle=wide(0.05),
        loader_workers=rng.integers(0, 4, n).astype(float),
        fixed_s=wide(0.01),
        spin=rng.random(n),
    )


@pytest.fixture(scope="session")
def orin() -> TwinSpec:
    return spec_of("jetson_agx_orin_64gb")
