"""Job tables for tests and benches of history: made ones and real logs, and telling them to a state run by run."""

# ruff: noqa: PLR2004 shares and amounts of a made log mean nothing beyond it

import lzma
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from gpuwaste.advice.predict.vectors import vector_of
from gpuwaste.jobs.history.history_state import HistoryState
from gpuwaste.jobs.history.job_table import ABSENT, Categories, GpuUse, JobTable, table_of
from gpuwaste.jobs.history.outcome import Outcome
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.slurm.submit.job_request import JobRequest
from gpuwaste.testing.plain_history import PlainHistory

_STATES = {1: "COMPLETED", 0: "FAILED", 5: "CANCELLED"}
_SUBMIT = 5  # the rank of a submission at equal seconds


class AnyHistory(Protocol):
    """What can be told a history: HistoryState, and the plain history that it is compared with."""

    def submitted(self, request: JobRequest, job_id: int) -> None:
        """Tell of a submission."""

    def started(self, job_id: int, submit: int, at: int) -> bool:
        """Tell of a start."""

    def ended(  # noqa: PLR0917 the facts of an end
        self, job_id: int, submit: int, at: int, run_s: float | None, outcome: Outcome, max_rss_b: float | None = None
    ) -> bool:
        """Tell of an end."""

    def gpu_use(self, job_id: int, submit: int, use: GpuUse) -> bool:
        """Tell what the ledger says."""


class HistoryStep(NamedTuple):
    """One event: its place in the order (time, rank, job id, submission), the row, and what to do."""

    order: tuple[int, int, int, int]
    row: int
    tell: Callable[[AnyHistory], object]


def read_swf(path: Path, limit: int | None = None) -> JobTable:
    """Return the table of a log in Standard Workload Format (SWF 2.2, 18 columns): a reader for tests."""
    jobs = []
    with lzma.open(path, "rt", encoding="ascii", errors="replace") as lines:
        for line in lines:
            if line.startswith(";") or not line.strip():
                continue
            v = [int(float(text)) for text in line.split()]
            start = v[1] + max(v[2], 0)
            jobs.append(
                JobRecord(
                    "swf", v[0], v[1], user=str(v[11]), account=str(v[12]), name=str(v[13]), partition=str(v[15]),
                    time_limit_s=v[8] if v[8] > 0 else None, req_tres=f"cpu={v[7]}" if v[7] > 0 else "", start=start,
                    end=start + max(v[3], 0), elapsed_s=max(v[3], 0), state=_STATES.get(v[10], ""),
                )
            )  # fmt: skip
            if len(jobs) == limit:
                break
    return table_of(jobs)


def made_table(count: int, *, users: int = 20, seed: int = 1, gap_s: float = 20.0, burst: float = 0.3) -> JobTable:
    """Return a table with waits, GPUs, arrays, bursts, equal seconds, and every kind of end; some never end."""
    rng = np.random.default_rng(seed)
    user = np.minimum(rng.zipf(1.5, count) - 1, users - 1)
    gaps = np.where(rng.random(count) < burst, 0, rng.integers(0, max(int(2 * gap_s), 1), count))
    submit = 1_700_000_000 + np.cumsum(gaps)
    limit = rng.choice([np.nan, 60.0, 600.0, 3600.0, 86400.0], count)
    run = np.floor(np.minimum(rng.exponential(900.0, count), np.where(np.isnan(limit), np.inf, limit)))
    run[rng.random(count) < 0.05] = 0.0
    start = submit + rng.choice([0, 0, 1, 30, 900], count)
    end = start + run.astype(np.int64)
    outcome = rng.choice(np.array([0, 1, 1, 1, 2, 2, 3, 5, 6, 7], dtype=np.uint8), count)
    outcome = np.where(run == limit, Outcome.TIMEOUT, outcome).astype(np.uint8)
    never, lost = outcome == Outcome.NEVER_STARTED, rng.random(count) < 0.02
    gpus = rng.choice([0.0, 0.0, 1.0, 4.0], count)
    judged = (gpus > 0) & (rng.random(count) < 0.8)
    names = tuple(f"{what}_{n}" for what in ("train", "Test", "run", "") for n in range(users))
    return JobTable(
        job_id=np.arange(count, dtype=np.int64) + 1,
        submit=submit,
        user=_texts(user, [f"u{n}" for n in range(users)]),
        account=_texts(user % 5, [f"a{n}" for n in range(5)]),
        partition=_texts(rng.integers(0, 3, count), ["cpu", "gpu", ""]),
        qos=_texts(rng.integers(0, 2, count), ["normal", ""]),
        name=_texts(user + users * rng.integers(0, 4, count), names),
        gpu_type=_texts(np.zeros(count, dtype=np.int64), [""]),
        limit_s=limit,
        nodes=rng.choice([np.nan, 1.0, 2.0], count),
        cpus=rng.choice([np.nan, 1.0, 8.0, 3000.0], count),
        mem_b=rng.choice([np.nan, 0.0, 1e9, 64e9], count),
        gpus=gpus,
        is_array=rng.random(count) < 0.2,
        interactive=rng.random(count) < 0.1,
        start=np.where(never, ABSENT, start),
        end=np.where(lost, ABSENT, end),
        run_s=np.where(lost | never, np.nan, run),
        alloc_cpus=np.where(never, np.nan, 8.0),
        outcome=np.where(lost, Outcome.UNKNOWN, outcome).astype(np.uint8),
        max_rss_b=np.where(lost | (rng.random(count) < 0.5), np.nan, np.floor(rng.lognormal(20.0, 2.0, count))),
        used_ratio=np.where(judged, rng.random(count), np.nan),
        gpus_active=np.where(judged, np.floor(rng.random(count) * (gpus + 1)), np.nan),
        gpu_coverage=np.where(judged, rng.choice((1.0, 0.9, 0.5), count), np.nan),
        ledger_at=np.where(judged, end + rng.choice([0, 60, 7200], count), ABSENT),
    )


def requests(table: JobTable) -> list[JobRequest]:
    """Return the request of each row: what a submission would show."""
    return [
        JobRequest(
            user=table.user.values[table.user.codes[row]],
            submit=int(table.submit[row]),
            account=table.account.values[table.account.codes[row]],
            partition=table.partition.values[table.partition.codes[row]],
            qos=table.qos.values[table.qos.codes[row]],
            name=table.name.values[table.name.codes[row]],
            time_limit_s=_whole(table.limit_s[row]),
            nodes=_whole(table.nodes[row]),
            cpus=_whole(table.cpus[row]),
            mem_b=_whole(table.mem_b[row]),
            gpus=int(table.gpus[row]),
            is_array=bool(table.is_array[row]),
            interactive=bool(table.interactive[row]),
        )
        for row in range(len(table))
    ]


def tell(
    table: JobTable, told: HistoryState | PlainHistory, until: tuple[int, int] | None = None
) -> NDArray[np.float32]:
    """Tell the events one by one and return the vectors [n, F], NaN for rows not reached; `until` is (time, rank)."""
    result: dict[int, NDArray[np.float32]] = {}
    asked = requests(table)
    for step in steps(table):
        if until is not None and step.order[:2] >= until:
            break
        if step.order[1] == _SUBMIT:
            result[step.row] = vector_told(told, asked[step.row])
            told.submitted(asked[step.row], int(table.job_id[step.row]))
        else:
            step.tell(told)
    width = len(next(iter(result.values()), ()))
    nothing = np.full(width, np.nan, dtype=np.float32)
    return np.array([result.get(row, nothing) for row in range(len(table))], dtype=np.float32)


def vector_told(told: HistoryState | PlainHistory, request: JobRequest) -> NDArray[np.float32]:
    """Return the features of a request, from either history."""
    return told.vector(request) if isinstance(told, PlainHistory) else vector_of(told, request)


def steps(table: JobTable) -> list[HistoryStep]:
    """Return the events in order: written for tests, apart from history.events."""
    return sorted(step for row in range(len(table)) for step in _steps(table, row))


def _steps(table: JobTable, row: int) -> Iterator[HistoryStep]:
    job, submit = int(table.job_id[row]), int(table.submit[row])
    start, end, judged = int(table.start[row]), int(table.end[row]), int(table.ledger_at[row])
    outcome = Outcome(int(table.outcome[row]))
    begun = submit
    yield HistoryStep((submit, _SUBMIT, job, submit), row, lambda _: None)
    if start != ABSENT:
        begun = max(start, submit)
        yield HistoryStep(
            (begun, 6 if begun == submit else 2, job, submit), row, lambda t: t.started(job, submit, start)
        )
    if end == ABSENT:
        return
    done = max(end, begun)
    same = 3 if done == begun and outcome != Outcome.NEVER_STARTED else 0
    yield HistoryStep(
        (done, 7 if done == submit else same, job, submit), row,
        lambda t: t.ended(job, submit, end, _known(table.run_s[row]), outcome, max_rss_b=_known(table.max_rss_b[row])),
    )  # fmt: skip
    if judged == ABSENT or not table.gpus[row] > 0:
        return
    use = GpuUse(float(table.used_ratio[row]), int(table.gpus_active[row]), float(table.gpu_coverage[row]), judged)
    at = max(judged, done)
    rank = 8 if at == submit else 4 if at == begun else 1
    yield HistoryStep((at, rank, job, submit), row, lambda t: t.gpu_use(job, submit, use))


def _texts(codes: NDArray[np.int64], values: list[str] | tuple[str, ...]) -> Categories:
    return Categories(codes.astype(np.int32), tuple(values))


def _whole(value: float) -> int | None:
    return None if np.isnan(value) else int(value)


def _known(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def made_jobs(count: int, *, seed: int = 1) -> list[JobRecord]:
    """Return records with waits, GPUs and every state; submissions are a second apart at least."""
    rng = np.random.default_rng(seed)
    states = ["COMPLETED", "FAILED", "OUT_OF_MEMORY", "TIMEOUT", "CANCELLED", "NODE_FAIL"]
    jobs, submit = [], 1_700_000_000
    for number in range(count):
        submit += 1 + int(rng.exponential(60.0))
        start = submit + int(rng.exponential(120.0))
        run = int(rng.exponential(600.0))
        gpus = int(rng.choice([0, 1, 4]))
        tres = "cpu=8,mem=1G,node=1" + (f",gres/gpu={gpus}" if gpus else "")
        jobs.append(
            JobRecord(
                "made", number + 1, submit, user=f"u{rng.integers(0, 4)}", account="a", name=f"train{number % 3}",
                partition="p", qos="q", time_limit_s=3600, req_tres=tres, start=start, n_nodes=1, cpus=8, gpus=gpus,
                alloc_tres=tres, mem_req_b=1 << 30, end=start + run, elapsed_s=run, state=str(rng.choice(states)),
                exit_code=0, exit_signal=0, total_cpu_s=run * 4.0, max_rss_b=int(rng.exponential(1e9)) + 1,
            )
        )  # fmt: skip
    return jobs
