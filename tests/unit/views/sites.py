"""Stores in memory with drawn jobs: over midnight and months' edges, never started, running, requeued."""

from functools import cache
from typing import Any

from hypothesis import strategies as st

from gpuwaste.jobs.run_store import upsert_jobs
from gpuwaste.show.view_document import ViewDocument
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.testing.clocks import FakeClock
from gpuwaste.views.view import Viewed, look, view_named
from gpuwaste.views.view_query import ViewQuery, Window

DAY = 86400
MONTH = 1_709_251_200  # 2024-03-01, the day after a leap day
NOW = MONTH + 30 * DAY
STATES = ("COMPLETED", "FAILED", "TIMEOUT", "OUT_OF_MEMORY", "CANCELLED", "NODE_FAIL", "PREEMPTED")


def job(number: int, **more: Any) -> JobRecord:
    """Return a run of one GPU and four CPUs."""
    values: dict[str, Any] = {
        "cluster": "one", "job_id": number, "submit": MONTH, "start": MONTH + 60, "end": MONTH + 3660,
        "state": "COMPLETED", "user": "alice", "account": "physics", "partition": "gpu", "gpus": 1, "cpus": 4,
        "n_nodes": 1, "nodes": "gpu1", "time_limit_s": 7200,
    }  # fmt: skip
    return JobRecord(**{**values, **more})


_TIMES = st.one_of(
    st.integers(MONTH - 3 * DAY, MONTH + 9 * DAY),
    st.builds(lambda day, off: MONTH + day * DAY + off, st.integers(-1, 8), st.sampled_from([-1, 0, 1])),
)


@st.composite
def jobs(draw: st.DrawFn) -> list[JobRecord]:
    """Draw runs; a requeued job has the same id and another start."""
    found = []
    for number in range(1, draw(st.integers(1, 12)) + 1):
        submit, wait, ran = draw(_TIMES), draw(st.integers(0, 2 * DAY)), draw(st.integers(0, 3 * DAY))
        kind = draw(st.sampled_from(["ended", "ended", "running", "pending", "never", "requeued"]))
        start = None if kind in {"pending", "never"} else submit + wait
        end = None if kind in {"running", "pending"} else submit + wait + ran
        state = {"running": "RUNNING", "pending": "PENDING", "never": "CANCELLED"}.get(kind)
        common = {
            "submit": submit,
            "gpus": draw(st.sampled_from([None, 0, 1, 4, 5])),
            "cpus": draw(st.sampled_from([None, 1, 64])),
            "user": draw(st.sampled_from(["alice", "bob"])),
            "time_limit_s": draw(st.sampled_from([None, 3600, 2 * DAY])),
        }
        found.append(job(number, start=start, end=end, state=state or draw(st.sampled_from(STATES)), **common))
        if kind == "requeued" and end is not None:
            again = end + draw(st.integers(1, DAY))
            found.append(job(number, start=again, end=again + ran, state="COMPLETED", **{**common, "submit": end}))
    return found


@cache
def _store() -> HubStore:
    """Return one store for all examples: opening one takes longer than a view."""
    return HubStore.open(":memory:", FakeClock(NOW))


def store_of(runs: list[JobRecord]) -> HubStore:
    """Return a store in memory with these runs alone."""
    store = _store()
    with store.writing() as db:
        db.execute("DELETE FROM jobs")
        db.execute("DELETE FROM steps")
    upsert_jobs(store, runs)
    return store


def viewed(runs: list[JobRecord], name: str, edges: tuple[int, int], **more: Any) -> Viewed:
    """Look at one view of these runs."""
    store = store_of(runs)
    with store.reader() as db:
        return look(view_named(name), ViewQuery(db, Window(*edges, NOW, **more)))


def document(runs: list[JobRecord], name: str, edges: tuple[int, int], **more: Any) -> ViewDocument:
    """Return the document of one view of these runs."""
    return viewed(runs, name, edges, **more).document


def fact(found: ViewDocument, name: str) -> Any:
    """Return the value of a fact."""
    return {entry.id: entry.value for entry in found.facts}[name]
