"""A proposal: the change of the first scheduler that shortens the mean wait for sure, or none."""

import pytest
from msgspec.structs import replace

from gpuwaste.show.layout import Look
from gpuwaste.sim.counterfactual import with_proposal
from gpuwaste.sim.document import Delta, Difference, SchedulerResult, SimulationDocument
from gpuwaste.sim.simulation_text import simulation_text

HELD = Delta(base=10.0, changed=10.0, difference=0.0)
RESULT = SchedulerResult(
    jobs=100, mean_wait_s=600.0, p50_wait_s=60.0, p95_wait_s=3000.0, max_wait_s=9000, mean_bounded_slowdown=4.0,
    utilization=0.8, makespan_s=864_000, title="EASY",
)  # fmt: skip
BASE = SimulationDocument(
    version="1", trace="log", trace_sha256="0", processors=8, processors_from="given", walltime="user",
    schedulers={"easy": RESULT, "fcfs": RESULT},
)  # fmt: skip


def change(name: str, low: float | None, high: float | None, scheduler: str = "easy", base: str = "easy") -> Difference:
    """Return a change of the mean wait by -60 s and its interval."""
    middle = -60.0 if low is None or high is None else (low + high) / 2
    return Difference(
        base=base, change=name, scheduler=scheduler, title=name, processors=8, jobs=100, blocks="12 weeks",
        figures={
            "mean_wait_s": Delta(base=600.0, changed=600.0 + middle, difference=middle, low=low, high=high),
            "held_h": HELD,
        },
        later=0.25,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "chosen"),
    [
        ([change("limits=0.9", -90, -10), change("wrap", -300, -100)], "wrap"),
        ([change("limits=0.9", -90, 10), change("wrap", 20, 50)], None),
        ([change("limits=0.9", None, None)], None),
        ([change("fcfs", -90, -10, "fcfs"), change("limits=0.9", -900, -800, "fcfs", "fcfs")], None),
        ([], None),
    ],
    ids=["the best", "none is sure", "no interval", "another scheduler", "nothing"],
)
def test_only_what_is_sure_is_proposed(changes: list[Difference], chosen: str | None) -> None:
    """The interval lies below 0, and the change is one of the first scheduler's settings."""
    found = with_proposal(replace(BASE, differences=changes)).proposal
    assert (found.change if found else None) == chosen
    if found:
        assert (found.mean_wait_s, found.low_s, found.high_s, found.among) == (-200.0, -300, -100, 2)


def test_the_text_says_among_how_many() -> None:
    """The reader sees the interval, who starts later, and that it is the best of several."""
    document = with_proposal(replace(BASE, differences=[change("limits=0.9", -90, -10), change("wrap", -300, -100)]))
    text = " ".join(simulation_text(document, Look()).split())
    assert "Proposal" in text
    assert "chosen among 2 changes" in text
    assert "of 100 jobs start later" in text
