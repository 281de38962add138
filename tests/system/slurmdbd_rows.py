"""A drawn day as rows in the database of a cluster's slurmdbd, rolled up by slurmdbd itself, and what sreport says."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import Final

from tests.system.sreport_columns import COLUMNS, Columns
from tests.unit.ledger.balance.happened import Case, Outage, Reservation, Run

from gpuwaste.slurm.formats.hostlist import compressed
from gpuwaste.testing.cluster import LoopbackCluster

NO_VAL: Final = 4294967294
STATES: Final = {
    "UNKNOWN": 0,
    "DOWN": 1,
    "IDLE": 2,
    "FUTURE": 6,
    "CLOUD": 0x80,
    "DRAIN": 0x200,
    "NOT_RESPONDING": 0x800,
    "POWERED_DOWN": 0x1000,
    "FAIL": 0x2000,
    "MAINT": 0x8000,
}
"""Slurm's numbers (slurm.h) of the words in a state such as IDLE+DRAIN."""
FLAGS: Final = {"MAINT": 1, "IGNORE_JOBS": 1 << 6, "SPEC_NODES": 1 << 15}
_FORMAT: Final = "Allocated,Down,PlannedDown,Idle,Reserved"
"""The columns as every release reads them: without a format 24.11 prints Planned twice and no PLND Down."""
_COMPLETED: Final = 3
_CONNECT: Final = ("mariadb", "--no-defaults", "-uroot", "-N", "-B")


def query(cluster: LoopbackCluster, statements: str) -> list[list[str]]:
    """Run SQL in the cluster's database and return its rows."""
    argv = [*_CONNECT, f"--socket={cluster.layout.mysql_socket}", "slurm_acct_db"]
    # A release has columns of its own that have no default: sql_mode lets the database fill them.
    done = cluster.run(argv, stdin=f"SET SESSION sql_mode='ANSI_QUOTES';\n{statements}")
    return [line.split("\t") for line in done.stdout.splitlines()]


def insert(cluster: LoopbackCluster, case: Case) -> None:
    """Write all that slurmctld would have reported: registrations, events, reservations and jobs."""
    tres = {row[0]: int(row[1]) for row in query(cluster, "SELECT concat(type, '/', name), id FROM tres_table")}
    assoc = query(cluster, "SELECT id_assoc FROM gw_assoc_table WHERE \"user\" = 'alice'")[0][0]
    rows = [*_registrations(case, tres["gres/gpu"])]
    rows += [_event(case, outage, tres["gres/gpu"]) for outage in case.outages]
    numbers = {one.name: k + 1 for k, one in enumerate(case.reservations)}
    rows += [_reservation(case, one, numbers[one.name]) for one in case.reservations]
    for run in case.runs:
        rows.append(_job(run, assoc, numbers.get(run.reservation, 0), tres["gres/gpu"]))
        rows += _suspension(run, assoc)
    query(cluster, "\n".join(rows))


def _insert(table: str, values: dict[str, int | str]) -> str:
    names = ", ".join(f'"{name}"' for name in values)
    texts = ", ".join(str(value) if isinstance(value, int) else f"'{value}'" for value in values.values())
    return f"INSERT INTO gw_{table}_table ({names}) VALUES ({texts});"  # noqa: S608 a test's own values


def _registrations(case: Case, gpu: int) -> Iterable[str]:
    """Yield the cluster's size for each time in which no node changes."""
    times = sorted(
        {case.start, case.end, *(t for n in case.nodes for t in (n.start, n.end) if case.start < t < case.end)}
    )
    for start, end in pairwise(times):
        there = [node for node in case.nodes if node.start <= start < node.end]
        amounts = f"1={sum(node.cpus for node in there)},{gpu}={sum(node.gpus for node in there)}"
        names = compressed(node.name for node in there)
        times_ = {"time_start": start, "time_end": end}
        yield _insert("event", {**times_, "node_name": "", "cluster_nodes": names, "reason": "x", "tres": amounts})


def _event(case: Case, outage: Outage, gpu: int) -> str:
    node = next(n for n in case.nodes if n.name == outage.node and n.start <= max(outage.start, case.start) < n.end)
    state = sum(STATES[word] for word in outage.state.split("+"))
    times = {"time_start": outage.start, "time_end": outage.end or 0}
    amounts = f"1={node.cpus},2={node.memory >> 20},{gpu}={node.gpus}"
    return _insert("event", {**times, "node_name": outage.node, "state": state, "reason": "x", "tres": amounts})


def _reservation(case: Case, one: Reservation, number: int) -> str:
    """Return the row of a reservation of entire nodes: it has all their CPUs."""
    flags = sum(FLAGS[word] for word in one.flags)
    cpus = sum({node.name: node.cpus for node in case.nodes}[name] for name in one.nodes)
    values: dict[str, int | str] = {
        "time_start": one.start,
        "time_end": one.end,
        "id_resv": number,
        "flags": flags,
        "nodelist": compressed(one.nodes),
        "resv_name": one.name,
        "tres": f"1={cpus}",
    }
    return _insert("resv", values)


def _job(run: Run, assoc: str, reservation: int, gpu: int) -> str:
    gpus = sum(amount.gpus for amount in run.held.values())
    times = {"time_submit": run.submit, "time_eligible": run.waits_from, "time_start": run.start or 0}
    names = compressed(run.held)
    values: dict[str, int | str] = {
        **times,
        "time_end": run.end or 0,
        "id_job": run.job_id,
        "id_assoc": assoc,
        "id_resv": reservation,
        "job_name": "drawn",
        "partition": "gpu",
        "account": "proj1",
        "state": _COMPLETED if run.start else 0,
        "nodelist": names,
        "nodes_alloc": len(run.held),
        "cpus_req": run.cpus or 1,
        "tres_req": f"1={run.cpus or 1},{gpu}={run.gpus}",
        "tres_alloc": f"1={run.cpus or 1},{gpu}={gpus}" if run.held else "",
        "het_job_offset": NO_VAL,
        "time_suspended": _suspended_s(run),
    }
    return _insert("job", values)


def _suspended_s(run: Run) -> int:
    """Return for how long a run is suspended: each third one for a third of its time; it keeps its GPUs."""
    is_one = run.job_id % 3 == 0 and run.start is not None and run.end is not None
    return (run.end - run.start) // 3 if is_one and run.end and run.start else 0


def _suspension(run: Run, assoc: str) -> list[str]:
    if not _suspended_s(run) or run.start is None:
        return []
    span: dict[str, int | str] = {"time_start": run.start, "time_end": run.start + _suspended_s(run), "id_assoc": assoc}
    row = _insert("suspend", {**span, "job_db_inx": "LAST"})
    return [row.replace("'LAST'", "LAST_INSERT_ID()")]


def at(t: int) -> str:
    """Return a time as Slurm's commands read it on a host in UTC."""
    return datetime.fromtimestamp(t, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def roll_up(cluster: LoopbackCluster, start: int, end: int) -> None:
    """Let slurmdbd add up whole hours, as it does at the end of each."""
    cluster.run(["sacctmgr", "-i", "rollup", at(start), at(end)], env={"TZ": "UTC"}, timeout_s=60)


def sreport(cluster: LoopbackCluster, start: int, end: int) -> Columns:
    """Return sreport's GPU-seconds by column."""
    words = ["cluster", "Utilization", f"start={at(start)}", f"end={at(end)}", f"format={_FORMAT}"]
    argv = ["sreport", "-n", "-P", "-t", "Seconds", "--tres", "gres/gpu", *words]
    fields: Sequence[str] = cluster.run(argv, env={"TZ": "UTC"}).stdout.strip().split("|")
    return Columns(dict(zip(COLUMNS, map(int, fields), strict=True)))
