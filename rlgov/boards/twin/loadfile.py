"""A job's `Load` as plain values, and back: what a fitted job's YAML file holds.

The file has a ``name`` and a ``load`` (see `load_to_dict`), and whatever else its writer noted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from rlgov.boards.twin.physics import Load
from rlgov.errors import ConfigError

_PER_PHASE = ("gpu_gcycle", "mem_gcycle", "host_gcycle", "gpu_j")
_OPTIONAL = ("loader_gcycle", "loader_workers", "fixed_s", "spin")


def load_to_dict(load: Load, index: int = 0) -> dict[str, float | list[float]]:
    """Job ``index`` of a batch as numbers, per phase (forward, backward, optimizer) as lists."""
    values = {f.name: getattr(load, f.name)[index] for f in fields(Load)}
    return {
        name: [float(x) for x in value] if name in _PER_PHASE else float(value)
        for name, value in values.items()
    }


def load_from_dict(values: Mapping[str, Any]) -> Load:
    """A batch of one job from `load_to_dict`'s form; one number stands for a single phase.

    Raises:
        ConfigError: A key is unknown or missing, or a value is negative or no number.
    """
    known = [f.name for f in fields(Load)]
    unknown = sorted(set(values) - set(known))
    missing = sorted(set(known) - set(values) - set(_OPTIONAL))
    if unknown or missing:
        what = f"unknown key {unknown[0]!r}" if unknown else f"missing {', '.join(missing)}"
        raise ConfigError(f"load: {what}; it has {', '.join(known)}")
    arrays = {name: _array(name, values.get(name, 0.0)) for name in known}
    if arrays["spin"][0] > 1.0:
        raise ConfigError("load.spin is a share and must not exceed 1")
    return Load(**arrays)


def read_job(path: Path) -> tuple[str, Load]:
    """Name and load of a fitted job's file.

    Raises:
        ConfigError: It cannot be read, or holds no such job.
    """
    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read {path}: {error}") from error
    except yaml.YAMLError as error:
        raise ConfigError(f"{path} is not valid YAML: {error}") from error
    load = values.get("load") if isinstance(values, Mapping) else None
    if not isinstance(load, Mapping):
        raise ConfigError(f"{path} holds no fitted job: a mapping with `name` and `load`")
    try:
        return str(values.get("name", path.stem)), load_from_dict(load)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from error


def _array(name: str, value: Any) -> np.ndarray[Any, np.dtype[np.float64]]:
    numbers = list(value) if isinstance(value, list | tuple) else [value]
    if name in _PER_PHASE and len(numbers) == 1:
        numbers += [0.0, 0.0]
    wanted = 3 if name in _PER_PHASE else 1
    bad = [n for n in numbers if isinstance(n, bool) or not isinstance(n, int | float)]
    if bad or len(numbers) != wanted or not all(np.isfinite(n) and n >= 0 for n in numbers):
        raise ConfigError(f"load.{name} must be {wanted} number(s) of at least 0, not {value!r}")
    return np.array([numbers] if name in _PER_PHASE else numbers, float)
