"""Days that are kept give the documents that counting anew gives, whatever changed of the runs since."""

from dataclasses import fields, replace
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.unit.views.sites import DAY, MONTH, NOW, fact, job, jobs

from gpuwaste.jobs.run_store import upsert_jobs
from gpuwaste.show.view_document import ViewDocument
from gpuwaste.slurm.accounting.job_record import AccountedRun, JobDetails, JobRecord
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.testing.clocks import FakeClock
from gpuwaste.views.view import all_views, look, view_named
from gpuwaste.views.view_query import ViewQuery, Window
from gpuwaste.views.view_reads import MIN_DAYS, KeptDays

BY_DAY = ("jobs", "kinds", "limits", "node_failures", "priority", "queue", "sizes", "states", "waits")
LONG = Window(MONTH - 40 * DAY, MONTH + 29 * DAY, NOW)
_DETAILS = st.builds(
    JobDetails,
    priority=st.sampled_from([None, 1, 5000]),
    flags=st.sampled_from([None, "SchedMain", "SchedBackfill"]),
)


class Site:
    """A store in memory and the days that are kept of it."""

    def __init__(self, store: HubStore) -> None:
        self.store = store
        with self.store.reader() as db:
            self.kept = KeptDays(db, self.store.touched)

    def both(self, name: str, window: Window) -> tuple[ViewDocument, ViewDocument]:
        """Return a view of what is kept, and of what is counted anew."""
        with self.store.reader() as db:
            kept, anew = (look(view_named(name), ViewQuery(db, window, kept=kept)) for kept in (self.kept, None))
        return kept.document, anew.document


def detailed(run: JobRecord, details: JobDetails) -> AccountedRun:
    """Return a run with details."""
    values: dict[str, Any] = {field.name: getattr(run, field.name) for field in fields(JobRecord)}
    return AccountedRun(**values, details=details)


@cache
def one_store() -> HubStore:
    """Return one store for all examples: opening one takes longer than a view."""
    return HubStore.open(":memory:", FakeClock(NOW))


def emptied() -> Site:
    """Return a site without runs, of which nothing is kept."""
    store = one_store()
    with store.writing() as db:
        db.execute("DELETE FROM jobs")
    return Site(store)


@pytest.mark.long
@settings(max_examples=examples(12, 2))
@given(data=st.data())
def test_changes_of_old_runs_are_seen(data: st.DataObject) -> None:
    """Runs of past days come, end, are requeued, told otherwise, get details: each view is as if nothing were kept."""
    site = emptied()
    for runs in data.draw(st.lists(jobs(), min_size=2, max_size=2)):
        upsert_jobs(site.store, [detailed(run, data.draw(_DETAILS)) for run in runs])
        for name in BY_DAY:
            kept, anew = site.both(name, LONG)
            assert kept == anew, name


@pytest.mark.long
@pytest.mark.parametrize(
    ("start", "end", "offset"),
    [(-40 * DAY, 29 * DAY, 0), (-40 * DAY + 3600, 9 * DAY + 77, 3600), (-40 * DAY + 900, 30 * DAY, -900)],
)
def test_days_begin_at_midnight_of_a_zone_and_the_last_ones_are_counted_anew(start: int, end: int, offset: int) -> None:
    """Windows of several zones, an end in the middle of a day and one that is now: the same documents."""
    site = emptied()
    upsert_jobs(
        site.store,
        [
            job(number, submit=MONTH + at, start=MONTH + at + 60, end=MONTH + at + 3660, state=state)
            for number, (at, state) in enumerate(
                [
                    (-39 * DAY, "FAILED"),
                    (0, "COMPLETED"),
                    (9 * DAY, "TIMEOUT"),
                    (28 * DAY, "NODE_FAIL"),
                    (30 * DAY - 60, "FAILED"),
                ],
                1,
            )
        ],
    )
    window = Window(MONTH + start, MONTH + end, NOW, (), offset)
    assert site.kept.until(window) > window.start
    for name in all_views():
        kept, anew = site.both(name, window)
        assert kept == anew, name


def test_days_are_counted_once_until_a_run_of_theirs_changes() -> None:
    """A run that is removed behind the store's back is still counted, and is not once another run ends on its day."""
    site = emptied()
    upsert_jobs(site.store, [job(1), job(2)])
    assert fact(site.both("states", LONG)[0], "ended") == 2
    with site.store.writing() as db:
        db.execute("DELETE FROM jobs WHERE job_id = 1")
    assert fact(site.both("states", LONG)[0], "ended") == 2
    upsert_jobs(site.store, [job(3)])
    assert fact(site.both("states", LONG)[0], "ended") == 2
    assert [row[2] for row in site.both("states", LONG)[0].rows] == [2]


@pytest.mark.parametrize(
    "window",
    [
        Window(LONG.start, LONG.start + (MIN_DAYS - 1) * DAY, NOW),
        Window(LONG.start + 1, LONG.end, NOW),
        Window(NOW - (MIN_DAYS + 1) * DAY, NOW, NOW),
    ],
)
def test_short_windows_and_those_of_no_zone_are_counted_anew(window: Window) -> None:
    """Nothing is kept of a short window, of days that begin at no quarter of an hour, or of the last days."""
    assert emptied().kept.until(window) == window.start


def test_only_some_kinds_of_days_are_kept() -> None:
    """After four kinds of midnight a fifth is counted anew, with the same document."""
    site = emptied()
    upsert_jobs(site.store, [job(1)])
    windows = [Window(LONG.start + place * 3600, LONG.end, NOW) for place in range(5)]
    assert [site.kept.until(window) > window.start for window in windows] == [True, True, True, True, False]
    kept, anew = site.both("kinds", windows[4])
    assert kept == anew


def test_days_that_nobody_asks_for_make_room() -> None:
    """An hour after four kinds were asked for, a fifth takes the place of one; its tables are dropped."""
    site = emptied()
    upsert_jobs(site.store, [job(1)])
    first, *others = [Window(LONG.start + place * 3600, LONG.end, NOW) for place in range(4)]
    for window in (first, *others):
        site.both("states", window)
    later = NOW + 3601
    assert site.kept.until(replace(first, now=later)) > first.start
    fifth = Window(LONG.start + 4 * 3600, LONG.end, later)
    assert site.kept.until(fifth) > fifth.start
    for name in ("states", "kinds"):
        kept, anew = site.both(name, fifth)
        assert kept == anew
    with site.store.reader() as db:
        tables = db.execute(
            "SELECT count(*) FROM duckdb_tables() WHERE database_name = ? AND table_name LIKE 'states_%'",
            [site.kept._name],
        ).fetchall()
    assert tables == [(4,)]
