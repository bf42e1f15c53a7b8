from __future__ import annotations

import resource

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlgov.governor.cost import AgentCost, peak_rss_mb, percentile


@given(st.lists(st.floats(0, 1e3), min_size=1), st.floats(0, 1))
def test_a_percentile_is_a_value_that_so_many_do_not_exceed(values, share):
    found = percentile(values, share)
    assert found in values
    assert sum(v <= found for v in values) >= share * len(values)


def test_there_is_none_of_nothing():
    assert percentile([], 0.5) is None
    assert AgentCost().summary()["decision_ms_p50"] is None


def test_what_emulating_costs_is_not_the_governors(monkeypatch):
    monkeypatch.setattr("time.process_time", iter([10.0, 13.0, 13.0]).__next__)
    cost = AgentCost()
    assert cost.summary(emulation_s=2.0)["cpu_s"] == pytest.approx(1.0)


def test_resident_memory_is_this_programs(tmp_path):
    status = tmp_path / "status"
    status.write_text("Name:\tx\nVmHWM:\t   50000 kB\n")
    assert peak_rss_mb(status) == pytest.approx(51.2)
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
    assert peak_rss_mb(tmp_path / "none") == pytest.approx(most, rel=0.2)
    assert 10 < peak_rss_mb() <= most * 1.01
