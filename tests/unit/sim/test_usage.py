"""Decayed usage and billing TRES against plain definitions."""

from datetime import datetime
from itertools import pairwise
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples

from gpuwaste.sim.assoc_limits import tres_names, tres_row
from gpuwaste.sim.fair_tree import billing, charge, decay, decay_per_second, resets
from gpuwaste.slurm.accounting.tres_amounts import parse_weights
from gpuwaste.slurm.site.cluster_model import ClusterModel, Node, Partition

pytestmark = pytest.mark.long

MODEL = ClusterModel("c", (Node("n1", 8, 2**34, {"a100": 4}),), (Partition("p", ("n1",)),))
NAMES = tres_names(MODEL)
PARENTS = [-1, 0, 0, 1, 1, 3]
Run = tuple[int, int, int, float]
"""Association, start, end, billing TRES."""


def by_definition(runs: list[Run], periods: list[int], half_life_s: int | None) -> list[float]:
    """Return usage after the last period, walked period by period as priority/multifactor does."""
    df = 1.0 if half_life_s is None else 1.0 - 0.693 / half_life_s
    used = [0.0] * len(PARENTS)
    ended: set[Run] = set()

    def add(run: Run, since: int, until: int) -> None:
        ran = max(0, until - max(since, run[1]))
        place = run[0]
        while place >= 0:
            used[place] += ran * df**ran * run[3]
            place = PARENTS[place]

    for since, until in pairwise(periods):
        for run in runs:
            if since < run[2] <= until:
                ended.add(run)
                add(run, since, run[2])
        used = [each * df ** (until - since) for each in used]
        for run in runs:
            if run[1] <= until and run not in ended:
                add(run, since, until)
    return used


@settings(max_examples=examples(200))
@given(
    runs=st.lists(
        st.builds(
            lambda place, start, length, rate: (place, start, start + length, rate),
            st.integers(0, 5),
            st.integers(1, 900),
            st.integers(1, 2000),
            st.sampled_from([0.0, 1.0, 2.5, 64.0]),
        ),
        max_size=8,
        unique=True,
    ),
    half_life_s=st.sampled_from([None, 600, 86400, 7 * 86400]),
)
def test_usage_is_the_definition_s(runs: list[Run], half_life_s: int | None) -> None:
    """What jobs used, charged each period and at their end, decays and is added up to root as defined."""
    periods = list(range(0, 3300, 300))
    parents, usage = np.array(PARENTS), np.zeros(len(PARENTS))
    df = decay_per_second(half_life_s)
    for since, until in pairwise(periods):
        for place, start, end, rate in runs:
            if since < end <= until:
                charge(parents, usage, place, rate, df, max(start, since), end)
        decay(usage, df, until - since)
        for place, start, end, rate in runs:
            if start <= until < end:
                charge(parents, usage, place, rate, df, max(start, since), until)
    assert usage.tolist() == pytest.approx(by_definition(runs, periods, half_life_s), rel=1e-12, abs=1e-300)


def test_half_of_it_is_left_after_a_half_life() -> None:
    """After its half-life a usage is a half, as near as slurmctld's 0.693 is to ln 2; without one it stays."""
    usage = np.array([1000.0, 0.0])
    decay(usage, decay_per_second(7 * 86400), 7 * 86400)
    assert usage.tolist() == pytest.approx([500.0, 0.0], abs=0.1)
    decay(usage, decay_per_second(None), 1e9)
    assert usage[0] == pytest.approx(500.0, abs=0.1)
    decay(usage, decay_per_second(60), 1e9)
    assert usage[0] >= 0.0


@pytest.mark.parametrize(
    ("weights", "max_tres", "expected"),
    [
        (None, False, [4.0, 1.0]),
        ("CPU=1.0,Mem=0.25G,GRES/gpu=2.0", False, [4 + 4 + 4, 1 + 2]),
        ("CPU=1.0,Mem=0.25G,GRES/gpu=2.5", True, [5.0, 2.0]),
        ("GRES/gpu:a100=10,billing=99", False, [20.0, 0.0]),
    ],
)
def test_billing_tres(weights: str | None, max_tres: bool, expected: list[float]) -> None:
    """Billing is the CPUs, or what TRESBillingWeights weigh: the sum, with MAX_TRES the largest of them."""
    gpu_job = tres_row(NAMES, {"cpu": 4, "mem": 16 * 2**30, "node": 1, "gres/gpu": 2, "gres/gpu:a100": 2})
    amounts = np.vstack([gpu_job, tres_row(NAMES, {"cpu": 1, "mem": 8 * 2**30, "node": 1})])
    row = None if weights is None else tres_row(NAMES, parse_weights(weights))
    assert billing(amounts, row, max_tres=max_tres).tolist() == expected


@pytest.mark.parametrize(
    ("period", "expected"),
    [
        ("NONE", []),
        ("DAILY", ["2026-03-28", "2026-03-29", "2026-03-30"]),
        ("WEEKLY", ["2026-03-29"]),
        ("MONTHLY", ["2026-04-01"]),
        ("QUARTERLY", ["2026-04-01", "2026-07-01", "2026-10-01", "2027-01-01"]),
        ("YEARLY", ["2027-01-01", "2028-01-01"]),
    ],
)
def test_usage_is_reset_at_local_midnight(period: str, expected: list[str]) -> None:
    """Each period begins at midnight of slurmctld's zone, also after the clocks changed (here on 29 March)."""
    zone = ZoneInfo("Europe/Berlin")
    since = int(datetime(2026, 3, 27, 12, tzinfo=zone).timestamp())
    days = [datetime.fromisoformat(text).replace(tzinfo=zone) for text in expected]
    until = int(days[-1].timestamp()) if days else since + 10**6
    assert resets(period, since, until, zone).tolist() == [int(day.timestamp()) for day in days]
    assert resets("NOW", since, until, zone).tolist() == [since]
