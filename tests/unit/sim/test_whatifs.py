"""What-ifs against plain definitions: what a change does to each job, and what it may never do."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.unit.sim.tables import Ran, case_of, history

from gpuwaste.core.errors import NoDataError, UsageError
from gpuwaste.sim import believed_times
from gpuwaste.sim.whatif import WHATIFS, changed, parsed


@st.composite
def jobs(draw: st.DrawFn) -> list[Ran]:
    """Draw a history of two users with crowded instants."""
    found = []
    for _ in range(draw(st.integers(1, 60))):
        run = draw(st.integers(0, 4000))
        size = draw(st.integers(1, 8))
        limit = max(60, run + draw(st.sampled_from((0, 0, 600, 5000))))
        active = draw(st.none() | st.integers(0, 9))
        user = draw(st.sampled_from("ab"))
        wait, low = draw(st.integers(0, 500)), draw(st.sampled_from((0, 0, 1, 8)))
        found.append(Ran(draw(st.integers(0, 9000)), run, limit, size, user, active, wait, low))
    return sorted(found, key=lambda job: job.submit)


def ended_at(job: Ran) -> int:
    """Return when a job is known to have ended: at the earliest in the second after its submission."""
    return max(job.submit + job.wait + job.run, job.submit + 1)


def plain_quantile(drawn: Sequence[Ran], place: int, level: float) -> float | None:
    """Return the quantile of what the user's last jobs ran that had ended when this one was submitted."""
    job = drawn[place]
    ended = [
        (ended_at(other), index)
        for index, other in enumerate(drawn)
        if other.user == job.user and ended_at(other) <= job.submit
    ]
    ended.sort()
    lasts = [drawn[i].run if drawn[i].run < drawn[i].limit else math.inf for _, i in ended[-believed_times.LAST :]]
    if len(lasts) < believed_times.LEAST:
        return None
    return sorted(lasts)[math.ceil(level * len(lasts)) - 1]


FEW_AT_THE_LIMIT = [Ran(0, 60, 60)] * 2 + [Ran(0, 0, 60)] * 52 + [Ran(251, 0, 60)]
"""Two runs that their limit ended, just above the quantile of the others, which ended at once."""


@given(drawn=jobs(), level=st.sampled_from((0.5, 0.9, 0.95)))
@example(drawn=FEW_AT_THE_LIMIT, level=0.95)
@example(drawn=[*FEW_AT_THE_LIMIT[:40], Ran(251, 61, 61)], level=0.95)  # the 38th of 40 is the last of the quantile
@example(drawn=[*FEW_AT_THE_LIMIT[:39], Ran(251, 61, 61)], level=0.95)  # the 38th of 39 is one that its limit ended
@settings(max_examples=examples(60))
def test_limits_are_those_of_the_plain_definition(drawn: list[Ran], level: float) -> None:
    """Each new limit is the quantile of the user's ended jobs in whole minutes, or the user's own if less."""
    case = case_of(history(drawn))
    found = changed(case, "limits", str(level))
    for place, limit in zip(case.trace.row.tolist(), found.trace.limit_s.tolist(), strict=True):
        quantile = plain_quantile(drawn, place, level)
        own = drawn[place].limit
        short = own if quantile is None or math.isinf(quantile) else max(math.ceil(quantile / 60) * 60, 60)
        assert limit == min(own, short)


@given(drawn=jobs(), late=st.integers(0, 5000))
@settings(max_examples=examples(60))
def test_limits_never_look_ahead(drawn: list[Ran], late: int) -> None:
    """Jobs submitted until an instant have the same new limits, whatever jobs run that end after it."""
    cut = drawn[len(drawn) // 2].submit
    other = [job if ended_at(job) <= cut else longer(job, cut, late) for job in drawn]
    limits = [changed(case_of(history(each)), "limits", "").trace.limit_s for each in (drawn, other)]
    for place, job in enumerate(drawn):
        if job.submit <= cut:
            assert min(limits[1][place], job.limit) == limits[0][place]


def longer(job: Ran, cut: int, late: int) -> Ran:
    """Return a job that ends after an instant, after another run, with a limit that holds."""
    run = max(late, cut + 1 - job.submit - job.wait)
    return job._replace(run=run, limit=max(job.limit, run + 1))


def test_a_job_over_its_new_limit_is_killed_and_counted() -> None:
    """Ten short jobs give the eleventh a short limit, at which it ends: its run is cut, and told."""
    drawn = [Ran(200 * k, 100, 3600) for k in range(10)] + [Ran(5000, 3000, 3600, size=2)]
    found = changed(case_of(history(drawn)), "limits", "")
    assert (found.trace.limit_s[-1], found.trace.run_s[-1]) == (120, 120)
    assert found.facts["jobs killed at the new limit"] == 1
    assert found.facts["hours held by killed jobs"] == pytest.approx(2 * 120 / 3600, abs=1e-3)


@given(drawn=jobs())
@settings(max_examples=examples(60))
def test_gpus_never_asks_for_more(drawn: list[Ran]) -> None:
    """No job has more GPUs than it asked for or than were used; unknown jobs keep theirs; unused ones leave."""
    case = case_of(history(drawn))
    try:
        found = changed(case, "gpus", "")
    except NoDataError:
        assert all(job.active == 0 == job.low for job in drawn)
        return
    sizes = dict(zip(found.trace.row.tolist(), found.trace.procs.tolist(), strict=True))
    for place, job in enumerate(drawn):
        judged = job.active is not None and job.run > case.table.under_use.min_s
        wanted = min((job.active or 0) + job.low, job.size) if judged else job.size
        assert sizes.get(place, 0) == wanted
    assert found.facts["jobs with known GPU use"] == sum(job.active is not None and job.run > 30 for job in drawn)


def test_gpus_takes_none_that_was_used() -> None:
    """Four GPUs at 3 %, and one busy beside one at 3 % and two at 0 %: used is used, whatever the rule of under-use."""
    drawn = [Ran(0, 600, 600, 4, active=0, low=4), Ran(0, 600, 600, 4, active=1, low=1), Ran(0, 600, 600, 4, active=0)]
    found = changed(case_of(history(drawn)), "gpus", "")
    assert found.trace.procs.tolist() == [4, 2]
    assert (found.facts["jobs that used no GPU"], found.facts["jobs with a smaller request"]) == (1, 1)
    assert "A job whose GPUs were all at 0 %" in " ".join(found.notes)


def test_gpus_needs_a_machine_of_gpus() -> None:
    """On a machine of processors the change is refused with what to give."""
    with pytest.raises(UsageError, match="--resource gpus"):
        changed(case_of(history([Ran(0, 10, 60)]), resource="processors"), "gpus", "")


def test_refused_jobs_are_gone() -> None:
    """The rows that the policies name leave the trace, their hours are told, and all of them is no trace."""
    case = case_of(history([Ran(0, 3600, 3600, size=2), Ran(5, 10, 60)]))
    refusing = replace(case, refused=lambda: np.array([True, False]))
    found = changed(refusing, "policy", "")
    assert found.trace.row.tolist() == [1]
    assert (found.facts["jobs rejected"], found.facts["hours held by rejected jobs"]) == (1, 2.0)
    every = replace(case, refused=lambda: np.array([True, True]))
    with pytest.raises(NoDataError, match="every job"):
        changed(every, "policy", "")
    with pytest.raises(UsageError, match="no policies"):
        changed(case, "policy", "")


@pytest.mark.parametrize(("value", "size"), [("2", 20), ("0.5", 5), ("+6", 16), ("-3", 7), ("1.26", 13)])
def test_the_machine_changes_by_a_factor_or_a_step(value: str, size: int) -> None:
    """A number is a factor, a number with a sign is a step."""
    assert changed(case_of(history([Ran(0, 10, 60)]), 10), "processors", value).processors == size


@pytest.mark.parametrize(
    "value", ["", "0", "-10", "-99", "1e9", "nan", "٣", "+", "1,5", "9999", "+9999999999", "x" * 99]
)
def test_other_sizes_are_refused_in_one_line(value: str) -> None:
    """A machine of nothing, and words that are no size, are refused with an example."""
    with pytest.raises(UsageError, match="expected a factor such as") as raised:
        changed(case_of(history([Ran(0, 10, 60)]), 10), "processors", value)
    assert "\n" not in str(raised.value)


def test_jobs_larger_than_the_changed_machine_are_counted() -> None:
    """A smaller machine leaves out what does not fit; one on which nothing fits is refused."""
    case = case_of(history([Ran(0, 10, 60, size=8), Ran(1, 10, 60)]), 10)
    found = changed(case, "processors", "0.5")
    assert (found.trace.row.tolist(), found.facts["jobs larger than the changed machine"]) == ([1], 1)
    with pytest.raises(NoDataError, match="no job would be left"):
        changed(case_of(history([Ran(0, 10, 60, size=8)]), 10), "processors", "0.5")


@pytest.mark.parametrize(
    "words", [("nope",), ("gpus=2",), ("",), ("policy=x",), tuple(f"processors={n}" for n in range(9))]
)
def test_unknown_changes_are_refused(words: tuple[str, ...]) -> None:
    """A name that is none, a value where none is taken, and more changes than a run may have are refused."""
    with pytest.raises(UsageError, match="what-if"):
        parsed(words)


def test_every_file_is_a_what_if() -> None:
    """Each file of whatifs/ is found by its name and says what it is."""
    names = {"gpus", "limits", "nodes", "partition", "policy", "priority", "processors", "wrap"}
    assert set(WHATIFS) == names
    assert all(found.TITLE and found.change for found in WHATIFS.values())
    assert parsed(("gpus", "limits=0.9", "gpus")) == (("gpus", ""), ("limits", "0.9"))


@pytest.mark.parametrize("value", ["1", "0.4", "x", "-1", "nan", "inf"])
def test_quantiles_out_of_range_are_refused(value: str) -> None:
    """A quantile of everything, or of less than half, is refused."""
    with pytest.raises(UsageError, match="expected a quantile"):
        changed(case_of(history([Ran(0, 10, 60)])), "limits", value)
