"""The follower of the history stream: what it knows is what a replay of the same jobs knows."""

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gpuwaste.advice.predict.vectors import replay_vectors, vector_of
from gpuwaste.core.clock import SystemClock
from gpuwaste.core.errors import ParseError, StoreError
from gpuwaste.core.underuse import UnderUse
from gpuwaste.jobs.history.from_store import TableSnapshot, read_table
from gpuwaste.jobs.history.history_follower import Follower
from gpuwaste.jobs.history.history_state import HistoryState
from gpuwaste.jobs.history.job_table import GpuUse, table_of
from gpuwaste.jobs.history.scored_runs import Scores
from gpuwaste.jobs.job_event import HistoryEvent, HistoryEventKind, RunUse, event_from_json
from gpuwaste.jobs.run_store import history_events, upsert_jobs
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.slurm.run_key import RunKey
from gpuwaste.slurm.submit.job_request import JobRequest
from gpuwaste.store.hub.hub_store import HubStore

T0 = 1_700_000_000
STATES = ("COMPLETED", "FAILED", "TIMEOUT", "OUT_OF_MEMORY", "CANCELLED", "NODE_FAIL")


class Notes:
    """Corrections that note what they are told."""

    def __init__(self) -> None:
        self.vectors: list[NDArray[np.float32]] = []
        self.learnt: list[tuple[str, int, float]] = []

    def score(self, state: HistoryState, request: JobRequest) -> Scores:
        self.vectors.append(vector_of(state, request))
        return {"failure": np.array([len(self.vectors)], dtype=np.float32)}

    def ended(self, scores: Scores, job: JobRecord) -> None:
        self.learnt.append(("ended", job.job_id, float(scores["failure"][0])))

    def gpu_use(self, scores: Scores, job: JobRecord, use: RunUse, under_use: UnderUse) -> None:
        assert use.coverage >= under_use.min_coverage
        self.learnt.append(("use", job.job_id, float(scores["failure"][0])))


def some_jobs(count: int, seed: int) -> tuple[list[JobRecord], list[GpuUse | None]]:
    """Draw runs whose every instant is another one, so that there is one order of events."""
    rng = random.Random(seed)
    times = rng.sample(range(T0, T0 + 90 * count), 4 * count)
    jobs, uses = [], []
    for number in range(count):
        submit, start, end, known_at = sorted(times[4 * number : 4 * number + 4])
        began, gpus = rng.random() < 0.9, rng.choice([0, 0, 1, 4])
        jobs.append(
            JobRecord(
                "gw", number + 1, submit, user=rng.choice("abc"), account=rng.choice("xy"), name=rng.choice("mn"),
                partition="gpu", time_limit_s=rng.choice([None, 600, 3600]),
                req_tres=f"cpu={rng.randint(1, 8)},mem=4G,node=1,gres/gpu={gpus}", gpus=gpus,
                start=start if began else None, end=end, elapsed_s=end - start if began else None,
                state=rng.choice(STATES) if began else "CANCELLED", max_rss_b=rng.choice([None, 10**9]),
            )
        )  # fmt: skip
        seen = began and gpus > 0 and rng.random() < 0.7
        uses.append(GpuUse(rng.random(), rng.randint(0, gpus), 0.9, known_at) if seen else None)
    return jobs, uses


def told(jobs: Sequence[JobRecord], uses: Sequence[GpuUse | None], after: int = 0) -> list[HistoryEvent]:
    """Return the stream of these runs in the order of time."""
    events: list[tuple[int, HistoryEventKind, JobRecord, RunUse | None]] = []
    for job, use in zip(jobs, uses, strict=True):
        events.append((job.submit, "submitted", job, None))
        if job.start is not None:
            events.append((job.start, "started", job, None))
        events.append((job.end or 0, "ended", job, None))
        if use is not None:
            events.append((use.known_at, "ledger", job, RunUse(use.used_ratio, use.gpus_active, use.coverage)))
    events.sort(key=lambda event: event[0])
    return [
        HistoryEvent(
            seq, kind, RunKey("gw", job.job_id, at if kind == "submitted" else job.run_key.start), at, job, use
        )
        for seq, (at, kind, job, use) in enumerate(events, after + 1)
    ]


def followed(events: Sequence[HistoryEvent], **limits: int) -> tuple[Follower, Notes]:
    follower, notes = Follower(HistoryState(), "gw", **limits), Notes()
    follower.correct_by(notes, "m1")
    follower.apply(events)
    return follower, notes


def probes(state: Any) -> NDArray[np.float32]:
    """Return what a state says of some requests."""
    asked = [
        JobRequest(user, T0 + 10**6, "x", "gpu", name=name, gpus=gpus)
        for user in "abc"
        for name in "mn"
        for gpus in (0, 1)
    ]
    return np.array([vector_of(state, request) for request in asked])


def test_a_follower_sees_what_a_replay_sees() -> None:
    """Every vector at its submission, and the state after all events, are bit for bit those of the replayed table."""
    jobs, uses = some_jobs(300, 1)
    follower, notes = followed(told(jobs, uses))
    table = table_of(jobs, use=uses)
    offline = replay_vectors(table)
    np.testing.assert_array_equal(np.array(notes.vectors), offline.vectors)
    np.testing.assert_array_equal(probes(follower.state), probes(offline.state))
    assert [n for what, n, _ in notes.learnt if what == "ended"] == [
        j.job_id for j in sorted(jobs, key=lambda j: j.end or 0)
    ]
    assert {n for what, n, _ in notes.learnt if what == "use"} == {
        j.job_id for j, u in zip(jobs, uses, strict=True) if u
    }
    assert follower.counts == {"taken": len(told(jobs, uses))}


def test_a_table_and_the_events_after_it() -> None:
    """A replay up to some instant and the stream from there on give what the whole stream gives; overlap is no harm."""
    jobs, uses = some_jobs(200, 2)
    events = told(jobs, uses)
    cut = len(events) // 2
    now = events[cut - 1].at_utc
    known = [
        (as_of(job, now), use if use and use.known_at <= now else None)
        for job, use in zip(jobs, uses, strict=True)
        if job.submit <= now
    ]
    table = table_of([job for job, _ in known], use=[use for _, use in known])
    follower = Follower(replay_vectors(table).state, "gw")
    follower.boot(TableSnapshot(table, cut))
    follower.apply(events[cut - 50 :])
    assert follower.counts["repeated"] == 50
    np.testing.assert_array_equal(probes(follower.state), probes(followed(events)[0].state))


def as_of(job: JobRecord, now: int) -> JobRecord:
    """Return the run as accounting told it then."""
    if job.end is not None and job.end > now:
        job = replace(job, end=None, elapsed_s=None, state="RUNNING", max_rss_b=None)
    return replace(job, start=None, state="PENDING") if job.start is not None and job.start > now else job


def test_events_told_again_change_nothing() -> None:
    """The same stream under new numbers, as after a lost place, counts no run twice."""
    jobs, uses = some_jobs(100, 3)
    events = told(jobs, uses)
    once, _ = followed(events)
    twice, notes = followed([*events, *told(jobs, uses, after=len(events))])
    np.testing.assert_array_equal(probes(twice.state), probes(once.state))
    assert twice.counts == {"taken": len(events), "repeated": len(events)}
    assert len(notes.learnt) == len(set(notes.learnt))


def test_a_run_whose_submission_was_never_told() -> None:
    """An end alone is submission, start and end; a start after it, and another cluster's, count for nothing."""
    jobs, uses = some_jobs(60, 4)
    events = told(jobs, uses)
    ends = [event for event in events if event.kind in {"ended", "ledger"}]
    late = [replace(event, seq=event.seq + 1000) for event in events if event.kind == "started"]
    other = replace(ends[0], seq=9000, run_key=RunKey("other", 1, 1))
    gone = replace(ends[0], seq=9001, job=None)
    follower, notes = followed([*ends, *late, other, gone])
    assert (follower.counts["repeated"], follower.counts["foreign"], follower.counts["untold"]) == (len(late), 1, 1)
    assert len(notes.vectors) == len(jobs)
    whole = followed(events)[0]
    counts = [np.nan_to_num(vector_of(f.state, JobRequest("a", T0 + 10**6, "x"))) for f in (follower, whole)]
    assert np.isclose(counts[0], counts[1], rtol=0.2, atol=2).mean() > 0.8


def test_memory_is_bounded() -> None:
    """Runs that never end, and runs that ended long ago, are let go; a ledger that comes too late is passed over."""
    jobs = [JobRecord("gw", n, T0 + n, user="a", state="PENDING") for n in range(1, 51)]
    waiting = [HistoryEvent(n, "submitted", RunKey("gw", n, T0 + n), T0 + n, job) for n, job in enumerate(jobs, 1)]
    follower, _ = followed(waiting, max_open=10)
    assert follower.counts == {"taken": 50, "lost": 40}
    ended, uses = some_jobs(80, 5)
    events = told(ended, uses)
    follower, _ = followed(events, max_ended=5)
    last, late = events[-1], follower.counts["untold"]
    use = RunUse(0.1, 0, 0.95)
    follower.apply([HistoryEvent(last.seq + 1, "ledger", ended[0].run_key, last.at_utc, ended[0], use)])
    assert follower.counts["untold"] == late + 1
    assert len(follower._ended) == 5


def test_use_is_taken_once_enough_is_known() -> None:
    """Half of the nodes is not enough to judge by; what comes after the first good answer changes nothing."""
    job = JobRecord(
        "gw", 7, T0, user="a", req_tres="gres/gpu=2", gpus=2, start=T0 + 5, end=T0 + 99, elapsed_s=94, state="COMPLETED"
    )
    key = job.run_key
    ended = HistoryEvent(1, "ended", key, T0 + 99, job, RunUse(0.9, 1, 0.5))
    follower, notes = followed([ended])
    assert notes.learnt == [("ended", 7, 1.0)]
    before = probes(follower.state)
    follower.apply([HistoryEvent(2, "ledger", key, T0 + 200, job, RunUse(0.2, 1, 1.0))])
    after = probes(follower.state)
    assert not np.array_equal(before, after, equal_nan=True)
    follower.apply([HistoryEvent(3, "ledger", key, T0 + 300, job, RunUse(0.7, 1, 1.0))])
    np.testing.assert_array_equal(probes(follower.state), after)
    assert notes.learnt == [("ended", 7, 1.0), ("use", 7, 1.0)]


def test_a_follower_goes_on_where_it_was_saved(tmp_path: Path) -> None:
    """State, place and the scores of the runs in the system come back; another model's scores do not."""
    jobs, uses = some_jobs(150, 6)
    events = told(jobs, uses)
    whole, all_notes = followed(events)
    half, notes = followed(events[:300])
    for _ in range(2):  # the second one replaces the first
        half.save(tmp_path / "history")
    again = Follower.load(tmp_path / "history", "gw", HistoryState.load)
    rest = Notes()
    rest.vectors = [*notes.vectors]
    again.correct_by(rest, "m1")
    again.apply(events)
    np.testing.assert_array_equal(probes(again.state), probes(whole.state))
    assert notes.learnt + rest.learnt == all_notes.learnt
    other = Follower.load(tmp_path / "history", "gw", HistoryState.load)
    other.correct_by(Notes(), "m2")
    assert not len(other._scored)


def test_a_model_on_trial_learns_beside_and_keeps_it_when_promoted() -> None:
    """It learns what the champion learns; promoted, it goes on with what it said of the runs in the system."""
    events = told(*some_jobs(150, 8))
    _, alone = followed(events)
    champion, challenger, later = Notes(), Notes(), Notes()
    follower = Follower(HistoryState(), "gw")
    follower.correct_by(champion, "m1")
    follower.correct_beside(challenger, "m2")
    follower.apply(events[:300])
    assert champion.learnt == challenger.learnt == alone.learnt[: len(champion.learnt)]
    later.vectors = [*challenger.vectors]
    follower.correct_by(later, "m2")
    follower.correct_beside(None, "")
    follower.apply(events[300:])
    assert challenger.learnt + later.learnt == alone.learnt


@pytest.mark.parametrize("damage", ["place", "state", "missing", "cluster", "garbage"])
def test_what_cannot_be_loaded_is_one_line(tmp_path: Path, damage: str) -> None:
    """A state that is cut, of another cluster, or not there is refused in one line, for the caller to replay."""
    path = tmp_path / "history"
    followed(told(*some_jobs(20, 7)))[0].save(path)
    if damage in {"place", "garbage"}:
        file = path / "place.npz"
        file.write_bytes(b"garbage" * 99 if damage == "garbage" else file.read_bytes()[:-40])
    elif damage == "state":
        file = path / "state"
        file.write_bytes(file.read_bytes()[:-5])
    with pytest.raises((ParseError, StoreError)) as caught:
        Follower.load(
            path if damage != "missing" else tmp_path / "none", "x" if damage == "cluster" else "gw", HistoryState.load
        )
    assert "\n" not in str(caught.value)


@pytest.mark.long
def test_the_hubs_stream_keeps_a_follower_up() -> None:
    """Runs as imports tell them, read as the API's JSON, leave nearly what a replay of the store leaves."""
    store, follower = HubStore.open(":memory:", SystemClock()), Follower(HistoryState(), "gw")
    jobs, _ = some_jobs(40, 8)
    for now in range(T0, T0 + 90 * 40 + 1, 120):
        upsert_jobs(store, [as_of(job, now) for job in jobs if job.submit <= now])
        follower.apply(event_from_json(event.to_json()) for event in history_events(store, follower.seq, 10_000))
    assert follower.counts["untold"] == 0
    assert not follower._open
    with store.reader() as db:
        offline = replay_vectors(read_table(db, "gw").table).state
    same = np.isclose(np.nan_to_num(probes(follower.state)), np.nan_to_num(probes(offline)), rtol=0.2, atol=2)
    assert same.mean() > 0.9
    store.close()
