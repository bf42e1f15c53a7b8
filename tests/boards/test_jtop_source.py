from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

import rlgov.boards.jtop_source as module
from rlgov.boards.jtop_source import JtopSource, sample_of
from rlgov.boards.sensors import Collected
from rlgov.errors import NotSupportedError
from tests.fakes.jtop import JtopException, Service, sample

PATIENCE_S = 30.0


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FIRST_RETRY_S", 1e-4)
    monkeypatch.setattr(module, "LONGEST_RETRY_S", 1e-3)


class Clock:
    def __init__(self) -> None:
        self.t_s = 0.0

    def __call__(self) -> float:
        return self.t_s


@contextmanager
def following(service: Service, clock: Clock | None = None) -> Iterator[JtopSource]:
    source = JtopSource(service, max_age_s=5.0, now=clock or Clock())
    try:
        yield source
    finally:
        source.close()


def collected(source: JtopSource, t_s: float = 0.0) -> Collected:
    into = Collected(t_s)
    into.utilisation["gpu"] = None
    into.missing["gpu load"] = "no file"
    source.collect(into)
    return into


def test_units_become_ours_and_dead_zones_are_left_out() -> None:
    found = sample_of(SimpleNamespace(**sample()))
    assert found.power_w == {"VDD_GPU_SOC": 3.205, "VDD_IN": 12.377}
    assert found.gpu_load == pytest.approx(0.97)
    assert (found.emc_mhz, found.emc_load) == (3199.0, pytest.approx(0.42))
    assert found.temperature_c == {"tj": 53.0}


@pytest.mark.parametrize(
    "broken",
    [
        {"power": {}},
        {"power": None},
        {"gpu": {}},
        {"gpu": {"Thor": {"freq": {}}}},
        {"memory": {"RAM": {}}},
        {"memory": {"EMC": {"cur": 1, "val": 0}}},
        {"temperature": {"tj": {}}},
    ],
)
def test_case_t13_what_jtop_lacks_is_absent_and_no_key_error(broken: dict[str, Any]) -> None:
    """Case T13: ``jtop.power == {}`` on some releases and without the group."""
    found = sample_of(SimpleNamespace(**sample(**broken)))
    (name,) = broken
    if name == "power":
        assert found.power_w == {}
    if name == "gpu":
        assert found.gpu_load is None
    if name == "memory":
        assert found.emc_mhz is None
    if name == "temperature":
        assert found.temperature_c == {}


def test_it_fills_in_what_no_file_told_and_overwrites_nothing() -> None:
    service = Service([sample()])
    with following(service) as source:
        assert service.done.wait(PATIENCE_S)
        into = collected(source)
        assert into.utilisation["gpu"] == pytest.approx(0.97)
        assert "gpu load" not in into.missing
        again = Collected(0.0, utilisation={"gpu": 0.1}, temperature_c={"tj": 40.0})
        source.collect(again)
        assert (again.utilisation["gpu"], again.temperature_c["tj"]) == (0.1, 40.0)


def test_case_t15_a_service_that_repeats_itself_is_stale() -> None:
    """Case T15: only the uptime moves; the sample's age does not."""
    clock = Clock()
    service = Service([sample()] * 60)
    with following(service, clock) as source:
        assert service.done.wait(PATIENCE_S)
        assert collected(source, 4.0).utilisation["gpu"] is not None
        into = collected(source, 60.0)
        assert into.utilisation["gpu"] is None
        assert "stale" in into.missing["jtop"]


def test_case_t15_a_connection_that_hangs_holds_nobody_up() -> None:
    release = threading.Event()
    hanging = threading.Event()

    def connect() -> Any:
        hanging.set()
        release.wait()
        raise JtopException("Lost connection")

    source = JtopSource(connect, now=Clock())
    try:
        assert hanging.wait(PATIENCE_S)
        into = collected(source)
        assert into.utilisation["gpu"] is None
        assert "no sample yet" in into.missing["jtop"]
    finally:
        release.set()
        source.close()


def test_case_t17_a_service_that_dies_is_connected_to_again() -> None:
    """Case T17: what it would have told meanwhile is missing; then it goes on."""
    clock = Clock()
    other = sample(temperature={"tj": {"temp": 60.0}})
    service = Service([sample(), JtopException("Lost connection")], [], [OSError("gone")], [other])
    with following(service, clock) as source:
        assert service.done.wait(PATIENCE_S)
        assert source.reconnects >= 4
        assert collected(source).temperature_c["tj"] == 60.0


def test_without_a_service_the_reason_is_passed_on() -> None:
    service = Service()
    with following(service) as source:
        assert service.done.wait(PATIENCE_S)
        source.close()
        assert "not active" in collected(source).missing["jtop"]


def test_without_jtop_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jtop", None)
    with pytest.raises(NotSupportedError, match=r"rlgov\[jetson\]"):
        JtopSource()
