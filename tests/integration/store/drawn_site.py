"""A drawn site of three weeks that is told to a hub by agents, advisors and Slurm: early, late, wrong."""

import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from tests.integration.hub.rig import Rig, running_hub
from tests.integration.hub.test_verdicts import body
from tests.unit.advisor.verdicts import verdict

from gpuwaste.core.units import DAY_S, HOUR_S
from gpuwaste.jobs.importers.accounting_importer import Importer
from gpuwaste.ledger.hour import AllocationHour
from gpuwaste.ledger.judging import Judging
from gpuwaste.ledger.rollup import Roller
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.slurm.accounting.sacct_rows import BadRow
from gpuwaste.slurm.site.cluster_model import Node, Partition
from gpuwaste.store.hub.hub_store import Aside
from gpuwaste.testing.clocks import StandingClock
from gpuwaste.testing.fake_slurm import FakeSlurm
from gpuwaste.testing.hub_rows import batch

BEGIN: Final = 1_700_006_400  # midnight, UTC
END: Final = BEGIN + 21 * DAY_S
_STATES: Final = ("COMPLETED", "COMPLETED", "FAILED", "TIMEOUT", "OUT_OF_MEMORY", "CANCELLED")
_HOSTILE: Final = ("train", "a\0b", "x'; DROP TABLE jobs; --", "\udcff\u202e名", "", "$rows ;\n;\n")
_NODES: Final = ("gpu1", "gpu2")


@dataclass
class DrawnSite:
    """The runs and hours of a seed."""

    seed: int
    runs: list[JobRecord] = field(default_factory=list)
    hours: list[AllocationHour] = field(default_factory=list)

    def __post_init__(self) -> None:
        rng = random.Random(self.seed)
        for job in range(1, 41):
            submit = BEGIN + rng.randrange(20 * DAY_S)
            start = submit + rng.randrange(HOUR_S)
            end = start + rng.choice((600, 5000, 30_000, 90_000))
            gpus = rng.choice((0, 1, 1, 2))
            self.runs.append(
                JobRecord(
                    "gw", job, submit, printed_id=str(job), user=rng.choice(("alice", "bob", "carol")),
                    account=rng.choice(("proj1", "proj2")), partition=rng.choice(("gpu", "whole")),
                    name=rng.choice(_HOSTILE), qos="normal", time_limit_s=90_000, start=start,
                    end=end if end < END else None, elapsed_s=end - start,
                    state=rng.choice(_STATES) if end < END else "RUNNING", gpus=gpus,
                    nodes=rng.choice(_NODES), n_nodes=1, cpus=4, alloc_tres=f"cpu=4,gres/gpu={gpus}", exit_code=0,
                    interactive=rng.random() < 0.2, verdict_id=f"{job:016d}" if job % 3 == 0 else "",
                )
            )  # fmt: skip
            self.hours += self._hours(rng, self.runs[-1], min(end, END))

    @staticmethod
    def _hours(rng: random.Random, run: JobRecord, end: int) -> Iterator[AllocationHour]:
        assert run.start is not None
        for gpu in range(run.gpus or 0):
            for at in range(run.start - run.start % HOUR_S, end, HOUR_S):
                begin_ms, end_ms = 1000 * max(at, run.start), 1000 * min(at + HOUR_S, end)
                busy = rng.randrange(0, end_ms - begin_ms + 1)
                yield AllocationHour(
                    run.run_key, run.nodes, f"GPU-{run.job_id}-{gpu}", at, 1, begin_ms, end_ms,
                    util_ms={0: end_ms - begin_ms - busy, rng.randrange(1, 101): busy}, idle_run_ms=0,
                    final=at + HOUR_S < end or rng.random() < 0.9, share=rng.choice((1.0, 1.0, 1.0, 0.5)),
                    energy_j=rng.choice((None, 1000.0 * busy)),
                )  # fmt: skip


def tell(hub: Rig, site: DrawnSite, clock: StandingClock) -> None:
    """Tell a hub of a site, in the order in which a real one would learn of it."""
    slurm, never = hub.slurm, threading.Event()
    middle = BEGIN + 10 * DAY_S
    slurm.partition_list = [Partition("gpu", whole_nodes=False), Partition("whole", whole_nodes=True)]
    for now, known in ((middle, [_as_of(run, middle) for run in site.runs if run.submit <= middle]), (END, site.runs)):
        clock.now_s = now
        slurm.records = [*known, BadRow(now, "no time", "a|b\0c")]
        hub.hub.get(Importer).step()
        _send_hours(hub, [row for row in site.hours if row.hour_utc <= now])
        rows = [
            verdict(
                run.job_id, at_utc_us=run.submit * 10**6, user=run.user, name=run.name, script="s",
                run_job_id=run.job_id,
            )
            for run in site.runs if run.verdict_id and run.submit <= now
        ]  # fmt: skip
        assert hub.post(body(*rows), target="/v1/verdicts").status == 200
        hub.hub.get(Judging).step(never)
        hub.hub.get(Roller).step(never)
    late = [replace(row, seq=2, util_ms={7: row.t1_ms - row.t0_ms}) for row in site.hours[::7]]
    _send_hours(hub, late)
    slurm.partition_list = [Partition("gpu", whole_nodes=True), Partition("whole", whole_nodes=True)]
    slurm.records = [replace(run, user="dora") if run.job_id % 10 == 0 else run for run in site.runs]
    hub.hub.get(Importer).step()
    hub.store.quarantine("agent:gpu1", [Aside(1, "no JSON", "{'"), Aside(1, "no JSON", "{'")])
    hub.hub.get(Judging).step(never)
    hub.hub.get(Roller).step(never)


def _as_of(run: JobRecord, now: int) -> JobRecord:
    """Return what accounting knew of a run then."""
    if run.start is not None and run.start > now:
        return replace(run, start=None, end=None, elapsed_s=None, state="PENDING", gpus=None, nodes="", n_nodes=None)
    return run if run.end is not None and run.end <= now else replace(run, end=None, elapsed_s=None, state="RUNNING")


def _send_hours(hub: Rig, rows: list[AllocationHour]) -> None:
    for node in _NODES:
        own = [row for row in rows if row.node == node]
        for at in range(0, len(own), 300):
            answer = hub.post(batch(*own[at : at + 300], node=node), origin=f"10.0.0.{node[-1]}")
            assert answer.status == 200, answer.body


@contextmanager
def hub_of(directory: Path, clock: StandingClock, **hub_keys: Any) -> Iterator[Rig]:
    """Run a hub at an instant that the test sets; `hub_keys` say which store it has."""
    slurm = FakeSlurm(
        node_list=[Node("gpu1", address="10.0.0.1"), Node("gpu2", address="10.0.0.2")],
        levels={"oper": "Operator", "alice": "None"},
        account_coordinators={"proj1": frozenset({"carol"})},
    )
    directory.mkdir(exist_ok=True)
    with running_hub(directory, slurm, clock=clock, hub_keys={"rollup_days": 3, **hub_keys}) as rig:
        yield rig
