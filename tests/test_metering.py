from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlgov.boards.base import Reading
from rlgov.errors import MeterError
from rlgov.metering import Meter

GAP_S = 2.0
spans = st.floats(0.01, GAP_S)
watts = st.floats(0.0, 80.0)


def reading(t_s: float, total: float | None = None, **rails: float) -> Reading:
    return Reading(t_s, power_w=rails, total_w=total)


def meter_of(samples: list[tuple[float, float]]) -> Meter:
    meter = Meter(["gpu"], GAP_S)
    for t_s, power in samples:
        meter.add(reading(t_s, total=power, gpu=power / 2))
    return meter


@st.composite
def covered(draw: st.DrawFn) -> list[tuple[float, float]]:
    """Samples with no gap too long."""
    t_s, samples = draw(st.floats(-5.0, 5.0)), []
    for span, power in draw(st.lists(st.tuples(spans, watts), min_size=3, max_size=30)):
        samples.append((t_s, power))
        t_s += span * 0.999
    return samples


class TestSums:
    @given(covered(), st.lists(st.floats(0, 1), min_size=1, max_size=12))
    def test_steps_add_up_to_their_interval(self, samples, cuts):
        first, last = samples[0][0], samples[-1][0]
        edges = [first, *sorted(min(first + c * (last - first), last) for c in cuts), last]
        meter = meter_of(samples)
        whole = meter.energy(first, last)
        parts = [meter.energy(a, b) for a, b in pairwise(edges)]
        assert sum(p.total_j for p in parts) == pytest.approx(whole.total_j, rel=1e-9, abs=1e-9)
        rails = sum(p.rail_j["gpu"] for p in parts)
        assert rails == pytest.approx(whole.rail_j["gpu"], rel=1e-9, abs=1e-9)

    @given(covered(), st.lists(st.floats(0, 1), min_size=1, max_size=12))
    def test_windows_closed_as_the_run_goes_add_up_but_for_the_sample_awaited(self, samples, cuts):
        first, last = samples[0][0], samples[-1][0]
        edges = [first, *sorted(min(first + c * (last - first), last) for c in cuts), last]
        meter, waiting, parts = Meter([], GAP_S), list(samples), []
        for a, b in pairwise(edges):
            while waiting and waiting[0][0] <= b:
                meter.add(reading(*waiting.pop(0)))
            parts.append(meter.energy(a, b).total_j)
            meter.forget_before(a)
        whole = meter_of(samples).energy(first, last).total_j
        assert sum(parts) == pytest.approx(whole, abs=80.0 * GAP_S * len(parts))

    @given(st.floats(0, 60), st.floats(-3, 3), st.floats(0, 0.5), st.floats(0.05, 0.5))
    def test_phase_of_sampling_is_no_matter_where_power_is_a_line(self, base, slope, phase, period):
        def power(t_s: float) -> float:
            return base + 30.0 + slope * (t_s - 5.0)

        times = [phase * period - 1.0 + i * period for i in range(int(13 / period))]
        energy = meter_of([(t, power(t)) for t in times]).energy(1.0, 9.0)
        assert energy.total_j == pytest.approx(8.0 * (base + 30.0), rel=1e-9)

    @given(st.floats(0, 1), st.floats(0.02, 0.3), st.floats(0.1, 6.0))
    def test_otherwise_phase_matters_no_more_than_power_moves_between_samples(
        self, phase, period, speed
    ):
        times = [(phase - 1.0) * period + i * period for i in range(int(12 / period) + 2)]
        samples = [(t, 30.0 + 10.0 * math.sin(speed * t)) for t in times]
        exact = 300.0 - 10.0 / speed * (math.cos(speed * 10.0) - 1.0)
        bound = 10.0 * speed * period / 2 * 10.0
        assert abs(meter_of(samples).energy(0.0, 10.0).total_j - exact) <= bound + 1e-9

    def test_a_ramp_by_hand(self):
        energy = meter_of([(0.0, 10.0), (1.0, 20.0)]).energy(0.5, 1.0)
        assert energy.total_j == pytest.approx(0.5 * (15 + 20) / 2)
        assert energy.mean_w == pytest.approx(17.5)

    def test_steps_shorter_than_the_refresh_are_not_free(self):
        meter = meter_of([(i * 0.1, 40.0) for i in range(20)])
        assert meter.energy(0.51, 0.52).total_j == pytest.approx(0.4)


class TestMissingIsNeverZero:
    """Cases T05, T13, T14, T15 and T20 of what others' meters got wrong."""

    def test_no_reading_at_all(self):
        energy = Meter(["gpu"], GAP_S).energy(0.0, 1.0)
        assert energy.total_j is None
        assert energy.mean_w is None
        assert dict(energy.rail_j) == {}
        assert energy.quality == {"total": "no reading", "gpu": "no reading"}

    def test_readings_without_power(self):
        meter = Meter(["gpu"], GAP_S)
        for i in range(20):
            meter.add(Reading(i * 0.1, missing={"gpu": "needs root"}))
        assert meter.energy(0.0, 1.9).total_j is None

    def test_the_same_reading_again_and_again_grows_stale(self):
        meter = meter_of([(0.0, 30.0), *[(1.0, 30.0)] * 60])
        assert meter.repeated == 59
        energy = meter.energy(0.0, 60.0)
        assert energy.total_j is None
        assert "stale" in energy.quality["total"]
        assert meter.energy(0.0, 1.0).total_j == pytest.approx(30.0)

    def test_a_reading_from_the_past_is_left_out(self):
        meter = meter_of([(0.0, 30.0), (1.0, 30.0), (-3600.0, 99.0), (1.5, 30.0)])
        assert meter.repeated == 1
        assert meter.energy(0.0, 1.5).total_j == pytest.approx(45.0)

    def test_a_gap_as_after_a_suspend_voids_what_it_touches_and_nothing_else(self):
        meter = meter_of([(t / 10, 30.0) for t in range(50)] + [(170 + t, 30.0) for t in range(9)])
        assert "gap" in meter.energy(4.0, 171.0).quality["total"]
        assert meter.energy(60.0, 61.0).total_j is None
        assert meter.energy(1.0, 4.0).total_j == pytest.approx(90.0)
        assert meter.energy(171.0, 175.0).total_j == pytest.approx(120.0)

    def test_readings_that_begin_too_late(self):
        meter = meter_of([(10.0, 30.0), (11.0, 30.0)])
        assert "too late" in meter.energy(5.0, 11.0).quality["total"]
        assert meter.energy(9.0, 11.0).total_j == pytest.approx(60.0)

    def test_negative_power_is_counted_and_clamped(self):
        meter = meter_of([(0.0, -0.4), (1.0, -0.4), (2.0, 0.0)])
        energy = meter.energy(0.0, 2.0)
        assert energy.total_j == 0.0
        assert meter.negative == 4  # a rail and the total, in two readings

    @pytest.mark.parametrize("nothing", [None, math.nan, math.inf])
    def test_a_rail_misses_only_itself(self, nothing):
        meter = Meter(["gpu", "cpu"], GAP_S)
        for i in range(10):
            rails = {"cpu": 5.0} if nothing is None else {"cpu": 5.0, "gpu": nothing}
            meter.add(reading(i * 0.5, total=20.0, **({"gpu": 15.0} | rails if i < 2 else rails)))
        energy = meter.energy(0.0, 4.5)
        assert energy.total_j == pytest.approx(90.0)
        assert energy.rail_j == {"cpu": pytest.approx(22.5)}
        assert set(energy.quality) == {"gpu"}

    def test_one_reading_without_a_rail_is_bridged(self):
        meter = Meter(["gpu"], GAP_S)
        for i in range(9):
            meter.add(reading(i * 0.5, total=20.0, **({} if i == 4 else {"gpu": 8.0})))
        assert meter.energy(0.0, 4.0).rail_j["gpu"] == pytest.approx(32.0)

    def test_a_total_that_cannot_be_formed_leaves_the_rails(self):
        meter = Meter(["gpu"], GAP_S)
        for i in range(5):
            meter.add(reading(i * 0.5, gpu=8.0))
        energy = meter.energy(0.0, 2.0)
        assert energy.total_j is None
        assert energy.rail_j["gpu"] == pytest.approx(16.0)

    @given(covered(), st.integers(1, 28), st.floats(0, 1), st.floats(0, 1))
    def test_an_interval_over_a_hole_is_never_a_number(self, samples, at, before, after):
        at = min(at, len(samples) - 1)
        holed = samples[:at] + [(t + 2 * GAP_S, p) for t, p in samples[at:]]
        left, right = holed[at - 1][0], holed[at][0]
        t0 = left + before * (right - left) * 0.49
        t1 = right - after * (right - left) * 0.49
        assert meter_of(holed).energy(t0, t1).total_j is None


class TestMemory:
    @given(covered(), st.floats(0, 1), st.floats(0, 1), st.floats(0, 1))
    def test_forgetting_changes_nothing_later(self, samples, cut, a, b):
        first, last = samples[0][0], samples[-1][0]
        at = min(first + cut * (last - first), last)
        t0, t1 = sorted(min(at + share * (last - at), last) for share in (a, b))
        meter, whole = meter_of(samples), meter_of(samples)
        meter.forget_before(at)
        assert meter.energy(t0, t1) == whole.energy(t0, t1)

    def test_what_is_kept_does_not_grow(self):
        meter = Meter([], GAP_S)
        for i in range(20_000):
            meter.add(reading(i * 0.1, total=30.0))
            if i % 20 == 0:
                meter.forget_before(i * 0.1 - 3.0)
        assert sum(len(s.t_s) for s in meter._series.values()) < 60
        assert meter.energy(1_999.0, 1_999.9).total_j == pytest.approx(27.0)


def test_an_interval_that_runs_backwards_is_our_own_bug():
    with pytest.raises(MeterError, match="backwards"):
        meter_of([(0.0, 1.0)]).energy(1.0, 0.0)


@pytest.mark.parametrize("gap", [0.0, -1.0, math.nan])
def test_a_gap_that_bridges_nothing_is_refused(gap):
    with pytest.raises(MeterError, match="max_gap_s"):
        Meter([], gap)


@given(covered())
def test_an_interval_of_no_length_costs_nothing_and_has_no_power(samples):
    energy = meter_of(samples).energy(samples[1][0], samples[1][0])
    assert energy.total_j == 0.0
    assert energy.mean_w is None
