"""A site of two clusters and 70 days: a few runs of every kind that the ledger tells apart, the same at each run."""

import random
from dataclasses import replace
from typing import Any, Final

from tools.golden.world import AllocationHour, JobRecord

HOUR: Final = 3600
DAY: Final = 86400
GIB: Final = 1 << 30
FULL: Final = 97
IDLE_RUN_MS: Final = 60_000
AGAIN: Final = 2  # the task of each array that runs again
NOW: Final = 1_750_000_000 // HOUR * HOUR + 1234
FIRST: Final = NOW - 70 * DAY
USERS: Final = ("alice", "bob", "carol", "dave", "erin", "frank", "grace")
ACCOUNTS: Final = ("physics", "chemistry", "biology")
_PLAIN: Final = str.maketrans("", "", "[,]")
Segment = tuple[int, int, int | str]
"""From and to before when, UTC seconds, and the percent, the reason of unknown time, or "suspended"."""


class Site:
    """Runs and what was seen of them, made one by one."""

    def __init__(self) -> None:
        self.random = random.Random(1)  # noqa: S311 no secret
        self.jobs: list[JobRecord] = []
        self.hours: list[AllocationHour] = []
        self._next = 1000

    def job(self, start: int, seconds: int, **changes: Any) -> JobRecord:
        """Return a run; one that would end after NOW is open."""
        self._next += 1
        end = start + seconds
        user = self.random.choice(USERS)
        given: dict[str, Any] = {
            "cluster": "gw", "job_id": self._next, "submit": start - 90, "name": f"train{self._next % 5}", "user": user,
            "account": ACCOUNTS[USERS.index(user) % 3], "group": "users", "partition": "gpu", "qos": "normal",
            "time_limit_s": 4 * DAY, "req_tres": "cpu=8,gres/gpu=1", "submit_line": "sbatch --gres=gpu:a100:1 t.sh",
            "start": start, "restarts": 0, "nodes": f"gpu{self.random.randrange(1, 6)}", "n_nodes": 1, "cpus": 8,
            "gpus": 1, "gpu_type": "a100", "alloc_tres": "cpu=8,gres/gpu=1", "mem_req_b": 64 * GIB,
            "state": "COMPLETED",
        } | changes  # fmt: skip
        given.setdefault("printed_id", str(given["job_id"]))
        if end < NOW:
            given |= {"end": end, "elapsed_s": seconds, "total_cpu_s": 2.5 * seconds, "max_rss_b": 16 * GIB}
            given |= {key: changes[key] for key in ("total_cpu_s", "max_rss_b") if key in changes}
        else:
            given |= {"end": None, "elapsed_s": NOW - start, "state": "RUNNING"}
        record = JobRecord(**given)
        self.jobs.append(record)
        return record

    def see(self, job: JobRecord, gpu: int, segments: list[Segment], **changes: Any) -> None:
        """Add the hours of one GPU of a run."""
        first, last = segments[0][0], segments[-1][1]
        for hour in range(first - first % HOUR, last, HOUR):
            inside = [(max(a, hour), min(b, hour + HOUR), w) for a, b, w in segments if a < hour + HOUR and b > hour]
            if inside:
                self.hours.append(replace(self._hour(job, gpu, hour, inside), **changes))

    def _hour(self, job: JobRecord, gpu: int, hour: int, segments: list[Segment]) -> AllocationHour:
        util: dict[int, int] = {}
        unknown: dict[str, int] = {}
        suspended = idle_run = 0
        for begin, end, what in segments:
            ms = (end - begin) * 1000
            if what == "suspended":
                suspended += ms
            elif isinstance(what, str):
                unknown[what] = unknown.get(what, 0) + ms
            else:
                util[what] = util.get(what, 0) + ms
                idle_run += ms if what == 0 and ms >= IDLE_RUN_MS else 0
        active = [end for _, end, what in segments if isinstance(what, int) and what]
        span = (segments[-1][1] - segments[0][0]) * 1000
        return AllocationHour(
            run_key=job.run_key, node=job.nodes.split(",")[0], hour_utc=hour,
            gpu_uuid=f"GPU-{job.nodes.translate(_PLAIN)}-{gpu}", seq=1 + hour // HOUR % 3,
            t0_ms=segments[0][0] * 1000, t1_ms=segments[-1][1] * 1000,
            final=job.end is not None or hour < NOW - 2 * HOUR, util_ms=util, idle_run_ms=idle_run,
            unknown_ms=unknown, suspended_ms=suspended, proc_seen=bool(active),
            mem_max_b=(4 + gpu) * GIB if active else 0, mem_total_b=40 * GIB, energy_j=span / 1000 * 80.5,
            last_active_ms=active[-1] * 1000 if active else None, power_w_at_full=301.5 if FULL in util else None,
            power_limit_w=400.0, sm_ratio_at_full=0.55 if FULL in util else None, cpu_s=span / 1000 * 2.25,
            host_mem_max_b=12 * GIB, map_source="prolog", confidence="confirmed",
        )  # fmt: skip

    def segments(self, job: JobRecord, kind: str) -> list[Segment]:
        """Return what a GPU of the run did."""
        begin, end = job.start or 0, job.end or NOW - 700
        length = end - begin
        cut = begin + self.random.randrange(length // 4 + 1, length // 2 + 2)
        tail = end - length // 3
        kinds: dict[str, list[Segment]] = {
            "busy": [(begin, cut, 97), (cut, cut + 20, 0), (cut + 20, end, 71)],
            "idle": [(begin, end, 0)],
            "small": [(begin, cut, 3), (cut, end, 1)],
            "low": [(begin, cut, 20), (cut, end, 32)],
            "moderate": [(begin, cut, 0), (cut, end, 66)],
            "tail": [(begin, cut, 80), (cut, tail, 97), (tail, end, 0)],
            "gap": [(begin, cut, 50), (cut, end, "gap")],
            "late": [(cut, end, 40)],
            "mig": [(begin, end, "mig")],
            "suspended": [(begin, cut, 90), (cut, tail, "suspended"), (tail, end, 12)],
        }
        return [segment for segment in kinds[kind] if segment[0] < segment[1]]


def fill(site: Site) -> None:
    """Make the runs."""
    plain = ("busy", "idle", "small", "low", "moderate", "tail", "gap", "late", "mig")
    for number in range(150):
        start = FIRST + number * 69 * DAY // 150 + site.random.randrange(5 * HOUR)
        long = number % 11 == 0
        gpus = site.random.choice((1, 1, 1, 2, 4))
        state = site.random.choice(("COMPLETED",) * 5 + ("FAILED", "TIMEOUT", "CANCELLED", "OUT_OF_MEMORY"))
        job = site.job(start, site.random.randrange(1200, (80 if long else 9) * HOUR), gpus=gpus, state=state,
                       partition="whole" if number % 13 == 0 else "gpu", interactive=number % 9 == 0,
                       cluster="gx" if number % 17 == 0 else "gw")  # fmt: skip
        for gpu in range(gpus):
            if number % 19 == 0 and gpu == gpus - 1:
                continue  # no agent
            site.see(job, gpu, site.segments(job, plain[(number + gpu) % len(plain)]))
    for day in (3, 8, 33):
        odd(site, NOW - day * DAY)
    for number in range(7):  # they are open, the first for days
        job = site.job(NOW - 1900 - number * 31 * HOUR, 20 * DAY, gpus=1 + number % 2)
        for gpu in range(job.gpus or 0):
            site.see(job, gpu, site.segments(job, plain[(number + gpu) % 5]))
    for seconds in (900, 5000):  # they have just ended, and rows are on their way
        job = site.job(NOW - seconds - 60, seconds)
        site.see(job, 0, [(job.start or 0, NOW - 500, 0)], final=False)
    one = replace(site.jobs[0], cluster="gw")
    site.jobs.append(replace(one, job_id=9001, printed_id="9001", submit=NOW - 500, start=None, end=None,
                             state="PENDING", elapsed_s=None, gpus=None, nodes=""))  # fmt: skip
    unheard = replace(one, job_id=9002, start=NOW - 3 * DAY, end=NOW - 2 * DAY)
    site.see(unheard, 0, [(NOW - 3 * DAY, NOW - 2 * DAY, 0)])  # accounting does not have it


def odd(site: Site, begin: int) -> None:
    """Make a run of each odd kind."""
    alice = {"user": "alice", "account": "physics"}
    for task in range(5):
        array = {"array_job_id": 500 + begin % 97, "array_task_id": task, "printed_id": f"{500 + begin % 97}_{task}"}
        job = site.job(begin + task * 700, 2 * HOUR, **array, **alice)
        site.see(job, 0, site.segments(job, ("idle", "busy", "tail", "small", "low")[task]))
        if task == AGAIN:
            again = site.job(begin + 5 * HOUR, HOUR, **array, **alice, restarts=1)
            again_job = replace(again, job_id=job.job_id, submit=job.submit)
            site.jobs[-1] = again_job
            site.see(again_job, 0, site.segments(again_job, "idle"))
    for state in ("REQUEUED", "COMPLETED"):
        requeued = site.job(begin + (0 if state == "REQUEUED" else 3 * HOUR), 2 * HOUR, job_id=700 + begin % 89,
                            printed_id=str(700 + begin % 89), state=state, **alice)  # fmt: skip
        site.see(requeued, 0, site.segments(requeued, "moderate"))
    for number in range(4):  # many small ones at once
        small = site.job(begin + number * 60, 3 * HOUR, user="bob", account="chemistry")
        site.see(small, number, site.segments(small, "small"))
    held = site.job(begin, 5 * HOUR, **alice)
    site.see(held, 0, [*site.segments(held, "tail")], mem_max_b=35 * GIB, proc_seen=True)
    shell = site.job(begin, 9 * HOUR, interactive=True, user="carol", account="biology")
    site.see(shell, 0, [(begin, begin + HOUR, 30), (begin + HOUR, begin + 9 * HOUR, 0)])
    shard = site.job(begin, 3 * HOUR, gpus=0, alloc_tres="cpu=1,gres/shard=4", user="dave", account="physics")
    site.see(shard, 0, site.segments(shard, "low"), share=0.25)
    hidden = site.job(begin, 3 * HOUR, gpus=0, alloc_tres="cpu=1", user="dave", account="physics")
    site.see(hidden, 0, site.segments(hidden, "idle"), share=0.5)
    site.job(begin, 3 * HOUR, gpus=0, alloc_tres="cpu=1")
    mixed = site.job(begin, 4 * HOUR, gpus=1, alloc_tres="cpu=1,gres/gpu=1,gres/shard=2")
    site.see(mixed, 0, site.segments(mixed, "busy"))
    site.see(mixed, 1, site.segments(mixed, "low"), share=0.5)
    paused = site.job(begin, 6 * HOUR, suspended_s=2 * HOUR)
    site.see(paused, 0, site.segments(paused, "suspended"))
    more = site.job(begin, 2 * HOUR)  # agents name more GPUs than accounting gave, and one sees more time
    for gpu in range(3):
        site.see(more, gpu, [(begin, begin + 2 * HOUR + 900, 10 * gpu)], map_source="environ" if gpu == 1 else "cgroup")
    clash = site.job(begin, 2 * HOUR, gpus=2)
    for gpu in range(2):
        site.see(clash, gpu, [(begin, begin + 2 * HOUR, "conflict")], confidence="conflict")
    unsaid = site.job(begin, 2 * HOUR, gpus=None, alloc_tres="")
    site.see(unsaid, 0, site.segments(unsaid, "busy"))
    hung = site.job(begin, 4 * HOUR)
    site.see(hung, 0, [(begin, begin + 4 * HOUR, 100)], power_w_at_full=70.0, sm_ratio_at_full=0.02)
    for offset in range(2):
        het = site.job(begin, 2 * HOUR, het_job_id=800 + begin % 83, het_offset=offset, user="erin",
                       account="chemistry", printed_id=f"{800 + begin % 83}+{offset}", nodes="gpu[4-5]",
                       n_nodes=2, gpus=2)  # fmt: skip
        for gpu, node in enumerate(("gpu4", "gpu5")):
            site.see(het, gpu, site.segments(het, ("busy", "idle")[gpu]), node=node)
    stranger = site.job(begin, HOUR)
    site.see(stranger, 0, site.segments(stranger, "idle"), node="gpu99")  # a node that the run was never on
