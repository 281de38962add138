"""A report taken in by groups of users is the report of all at once."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.unit.store.test_rollup import NOW, PERIOD_OF_ALL, new_store, same, sites

from gpuwaste.core.hour import AllocationHour
from gpuwaste.core.job import JobRecord
from gpuwaste.documents.notices import staff_list
from gpuwaste.documents.report_sums import ReportSums, added
from gpuwaste.waste.ledger import JobLedger
from gpuwaste.waste.load import Selection, load_by_user, load_jobs
from gpuwaste.waste.settings import LedgerSettings

LEDGER = LedgerSettings()


def said(groups: list[list[JobLedger]], limit: int | None) -> dict[str, Any]:
    """Return all that a report takes from its sums."""
    sums = ReportSums(LEDGER, limit)
    for jobs in groups:
        sums.add(jobs)
    return {
        "totals": sums.totals.to_json(), "shared": sums.shared.to_json(), "levels": sums.levels,
        "under_used": sums.under_used, "job_count": sums.job_count, "users": sums.user_rows(), "jobs": sums.job_rows(),
        "left_out": sums.jobs_left_out, "findings": sums.findings(), "counts": sums.finding_counts,
        "notes": sums.notes.words(), "staff": staff_list(groups, PERIOD_OF_ALL, 0.5, 2),
    }  # fmt: skip


@settings(max_examples=examples(25, 5), deadline=None)
@given(sites(), st.integers(1, 5), st.sampled_from([None, 0, 1, 3]))
def test_groups_of_users_add_up_to_the_whole(
    site: tuple[list[JobRecord], list[AllocationHour]], group_runs: int, limit: int | None
) -> None:
    """Sums, tables, findings, notes and the staff's list are the same for groups of any size; no user is cut."""
    store = new_store()
    store.upsert_jobs(site[0])
    store.upsert_hours(site[1])
    with store.reader() as db:
        whole = load_jobs(db, Selection(), LEDGER, NOW)
        groups = list(load_by_user(db, Selection(), LEDGER, NOW, group_runs=group_runs))
    users = [{j.job.user for j in jobs} for jobs in groups]
    assert sum(map(len, users)) == len(set().union(*users))
    assert all(len(jobs) <= group_runs or len(own) == 1 for jobs, own in zip(groups, users, strict=True))
    same(said([whole], limit), said(groups, limit))
    store.close()


def test_one_users_runs_are_one_group() -> None:
    """A report of one user is asked for once, whatever he has, also where he has nothing."""
    store = new_store()
    with store.reader() as db:
        assert list(load_by_user(db, Selection(user="alice"), LEDGER, NOW)) == [[]]
        assert list(load_by_user(db, Selection(), LEDGER, NOW)) == []
    store.close()


@pytest.mark.parametrize(
    ("one", "other", "total"),
    [
        ({}, {}, {}),
        ({"a": 1, "b": {"c": 0.1}}, {"b": {"c": 0.2, "d": 2}}, {"a": 1, "b": {"c": 0.3, "d": 2}}),
        ({"a": 0.001}, {"a": 1e9}, {"a": 1e9 + 0.001}),
    ],
)
def test_objects_of_numbers_add_up(one: dict[str, Any], other: dict[str, Any], total: dict[str, Any]) -> None:
    """Members are added one by one, to the millisecond."""
    assert added(one, other) == total
