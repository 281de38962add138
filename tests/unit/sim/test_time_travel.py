"""Steps of time travel: what each does to a table, that order counts, and what is refused."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples

from gpuwaste.core.errors import NoDataError, UsageError
from gpuwaste.core.units import DAY_S
from gpuwaste.jobs.history.job_table import JobTable
from gpuwaste.sim.generated_load import Load
from gpuwaste.sim.time_travel import STEPS, read_steps, travelled

SMALL = {"stretch": "stretch=1.5", "thin": "thin=0.5", "repeat": "repeat=3,shuffle=1", "burst": "burst=7,at=0.2"}


def table(n: int = 40, every: int = 100) -> JobTable:
    """Return n jobs, one each `every` seconds, of which each has a size and a run time of its own."""
    number = np.arange(n, dtype=np.int64)
    return Load(1000 + number * every, number + 1, number + 5, number + 1, number % 3, number % 2, 64).table()


def after(words: str | list[str], jobs: JobTable | None = None) -> JobTable:
    return travelled(table() if jobs is None else jobs, read_steps([words] if isinstance(words, str) else words))


def columns(jobs: JobTable) -> list[list[float]]:
    return [np.asarray(getattr(jobs, name)).tolist() for name in ("job_id", "submit", "run_s", "cpus", "limit_s")]


def test_every_step_is_tried() -> None:
    """A new step gets its case."""
    assert set(SMALL) == set(STEPS)


@pytest.mark.parametrize("name", SMALL)
def test_a_step_is_repeatable_and_keeps_a_table_in_order(name: str) -> None:
    """Equal words give equal tables, sorted by submission, of distinct job ids, without waits."""
    first, again = after(SMALL[name]), after(SMALL[name])
    assert columns(first) == columns(again)
    keys = list(zip(first.submit.tolist(), first.job_id.tolist(), strict=True))
    assert keys == sorted(keys)
    assert len(set(first.job_id.tolist())) == len(first)
    assert not first.wait_known
    assert (first.start == first.submit).all()
    assert (first.end == first.start + first.run_s).all()


def test_stretch_multiplies_the_times_between_jobs() -> None:
    """The first job stays, every gap is half as long again, and run times and sizes stay."""
    found = after("stretch=1.5")
    assert found.submit.tolist() == [1000 + 150 * k for k in range(40)]
    assert found.run_s.tolist() == table().run_s.tolist()


@settings(max_examples=examples(40))
@given(share=st.sampled_from([0.2, 0.5, 0.8]), seed=st.integers(0, 50))
def test_thin_keeps_about_its_share(share: float, seed: int) -> None:
    """What stays is a part of the jobs, unchanged, within six standard deviations of its share."""
    before = table(2000, every=1)
    found = after(f"thin={share},seed={seed}", before)
    assert abs(len(found) - 2000 * share) < 6 * (2000 * share * (1 - share)) ** 0.5
    assert set(zip(*columns(found), strict=True)) <= set(zip(*columns(before), strict=True))


def test_repeat_plays_copies_a_whole_number_of_days_apart() -> None:
    """Three copies of a load of one hour come at the same time of three days; of one of 6.5 days, a week apart."""
    found = after("repeat=3")
    assert found.submit.reshape(3, 40).tolist() == [(table().submit + k * DAY_S).tolist() for k in range(3)]
    assert found.job_id[:40].tolist() == table().job_id.tolist()
    long = table(14, every=DAY_S // 2)
    assert (after("repeat=2", long).submit[14:] - long.submit).tolist() == [7 * DAY_S] * 14


def test_shuffled_copies_have_the_same_jobs_at_other_instants() -> None:
    """With shuffle the second copy has every size once, in another order; the first copy stays."""
    sizes = after("repeat=2,shuffle=1").cpus.reshape(2, 40)
    assert sizes[0].tolist() == table().cpus.tolist()
    assert sorted(sizes[1].tolist()) == sizes[0].tolist() != sizes[1].tolist()


def test_a_burst_comes_within_its_time() -> None:
    """The jobs that are added come within the seconds named, and look like jobs of the load."""
    found = after("burst=30,at=0.5,width=60,seed=3")
    added = found.submit[found.job_id > 40]
    begin = 1000 + 3900 // 2
    assert len(added) == 30
    assert begin <= added.min() <= added.max() < begin + 60
    assert set(found.run_s.tolist()) == set(table().run_s.tolist())


def test_steps_are_taken_in_their_order() -> None:
    """A burst before a stretch is stretched, one after it is not."""
    before, behind = (after(words).submit for words in (["burst=9", "stretch=10"], ["stretch=10", "burst=9"]))
    assert len(before) == len(behind) == 49
    assert np.diff(np.sort(before)).tolist() != np.diff(np.sort(behind)).tolist()


@pytest.mark.parametrize(
    ("words", "error", "said"),
    [
        ("thin=0", NoDataError, "leaves no job"),
        ("thin=2", UsageError, "thin='2': expected a number from 0 to 1"),
        ("stretch=0", UsageError, "expected a number from 0.001"),
        ("stretch", NoDataError, ""),
        ("faster=2", UsageError, "expected one of burst, repeat, stretch, thin"),
        ("repeat=2,width=3", UsageError, "expected repeat, shuffle, seed"),
        ("", UsageError, "expected one of"),
    ],
)
def test_what_cannot_be_done_is_one_line(words: str, error: type[Exception], said: str) -> None:
    """A wrong word or a step that leaves nothing is named; a step without its number changes nothing."""
    if not said:
        assert columns(after(words)) == columns(table())
        return
    with pytest.raises(error, match=said):
        after(words)


def test_too_many_jobs_are_refused_before_they_are_made() -> None:
    """A step that would make more jobs than a machine can hold is refused."""
    with pytest.raises(UsageError, match="expected at most 20,000,000"):
        after("repeat=1000", table(21_000, every=1))
