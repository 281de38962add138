"""Batches that wait together are one commit; one that cannot be stored is its sender's own trouble."""

import threading
from collections.abc import Callable, Sequence

import pytest

from gpuwaste.core.errors import StoreError
from gpuwaste.hub.group_commit import MAX_ROWS, GroupCommit
from gpuwaste.ledger.hour import AllocationHour
from gpuwaste.testing.cluster_process import wait_until
from gpuwaste.testing.hub_rows import hour


class Store:
    """Keeps the job ids of each commit; the first commit waits until the test opens it."""

    def __init__(self, bad: int = 0, error: Exception | None = None) -> None:
        self.commits: list[list[int]] = []
        self.begun = threading.Event()
        self.go_on = threading.Event()
        self._bad, self._error = bad, error or StoreError("the disk says no")

    def upsert(self, rows: Sequence[AllocationHour]) -> int:
        """Take rows, unless the bad job is among them."""
        self.begun.set()
        assert self.go_on.wait(20)
        jobs = [row.run_key.job_id for row in rows]
        if self._bad in jobs:
            raise self._error
        self.commits.append(jobs)
        return len(rows)


class Senders:
    """Threads that put one batch each; `outcomes` has what each was told, by job."""

    def __init__(self, commits: GroupCommit[AllocationHour]) -> None:
        self._commits = commits
        self.outcomes: dict[int, int | Exception] = {}
        self._threads: list[threading.Thread] = []

    def put(self, job: int, rows: int = 1) -> None:
        """Put a batch of a job in a thread of its own."""

        def work() -> None:
            try:
                self.outcomes[job] = self._commits.put([hour(job)] * rows)
            except Exception as error:  # noqa: BLE001 what a sender is told is looked at
                self.outcomes[job] = error

        self._threads.append(threading.Thread(target=work))
        self._threads[-1].start()

    def join(self) -> None:
        """Wait for all."""
        for thread in self._threads:
            thread.join(20)


def waiting(commits: GroupCommit[AllocationHour], count: int) -> Callable[[], bool]:
    return lambda: commits.waiting == count


def run(store: Store, sizes: Sequence[int], told: list[int] | None = None) -> Senders:
    """Hold the first commit of job 1 until a batch of each further size waits behind it."""
    commits = GroupCommit(store.upsert, (told if told is not None else []).append)
    senders = Senders(commits)
    senders.put(1)
    assert store.begun.wait(20)
    for place, size in enumerate(sizes, start=1):
        senders.put(place + 1, size)
        wait_until(waiting(commits, place), 60, "a batch to wait")
    store.go_on.set()
    senders.join()
    return senders


def test_what_waits_is_one_commit() -> None:
    """Three batches that came during a commit are the next one; the rows that it changed are told once."""
    store, told = Store(), list[int]()
    senders = run(store, [1, 1, 1], told)
    assert store.commits == [[1], [2, 3, 4]]
    assert sum(int(str(outcome)) for outcome in senders.outcomes.values()) == 4
    assert told == [1, 3]


def test_a_commit_is_bounded() -> None:
    """Batches that together are too large are several commits, in the order in which they came."""
    store = Store()
    senders = run(store, [MAX_ROWS - 1, 1, 1])
    assert [sorted(set(jobs)) for jobs in store.commits] == [[1], [2, 3], [4]]
    assert len(senders.outcomes) == 4


def test_a_batch_that_is_large_alone_is_taken() -> None:
    """A batch above the bound is a commit of its own."""
    store = Store()
    run(store, [MAX_ROWS + 5])
    assert [len(jobs) for jobs in store.commits] == [1, MAX_ROWS + 5]


def test_a_batch_that_cannot_be_stored_costs_no_other_its_commit() -> None:
    """Only the sender of the bad batch is told of the error; the others of its group are stored."""
    store = Store(bad=3)
    senders = run(store, [1, 1, 1])
    assert isinstance(senders.outcomes.pop(3), StoreError)
    assert senders.outcomes == {1: 1, 2: 1, 4: 1}
    assert store.commits == [[1], [2], [4]]


def test_a_defect_reaches_every_sender_of_the_group() -> None:
    """An error that is not the store's is told to all of the group: nobody waits for ever, nobody is acknowledged."""
    store = Store(bad=3, error=ValueError("defect"))
    senders = run(store, [1, 1])
    assert senders.outcomes.pop(1) == 1
    assert [type(outcome) for outcome in senders.outcomes.values()] == [ValueError, ValueError]


@pytest.mark.parametrize("count", [1, 50])
def test_many_senders_lose_nothing(count: int) -> None:
    """However the threads meet, each batch is in exactly one commit."""
    store = Store()
    store.go_on.set()
    senders = Senders(GroupCommit(store.upsert))
    for job in range(1, count + 1):
        senders.put(job)
    senders.join()
    assert sorted(job for jobs in store.commits for job in jobs) == list(range(1, count + 1))
    assert sum(int(str(outcome)) for outcome in senders.outcomes.values()) == count
