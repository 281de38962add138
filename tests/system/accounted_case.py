"""What accounting knows of a live cluster, read with Slurm's own commands: the input of the balance."""

from dataclasses import replace
from typing import Final

from tests.system.slurmdbd_rows import STATES, at, query
from tests.unit.ledger.balance.happened import Amount, Case, Node, Outage, Reservation, Run

from gpuwaste.slurm.accounting.tres_amounts import tres_amounts
from gpuwaste.slurm.formats.hostlist import expand
from gpuwaste.slurm.formats.slurm_times import parse_time_s
from gpuwaste.testing.cluster import LoopbackCluster

_JOBS: Final = "JobIDRaw,Submit,Eligible,Start,End,NodeList,ReqTRES,AllocTRES,ReqNodes,Reservation"
_SPANS: Final = {
    "event": ("time_start", "time_end"),
    "resv": ("time_start", "time_end"),
    "suspend": ("time_start", "time_end"),
    "job": ("time_submit", "time_eligible", "time_start", "time_end"),
}


def set_back(cluster: LoopbackCluster, by_s: int) -> None:
    """Let all that accounting has be that much earlier: sreport has whole hours that are over."""
    for table, columns in _SPANS.items():
        changes = ", ".join(f"{column} = IF({column} = 0, 0, {column} - {by_s})" for column in columns)
        query(cluster, f"UPDATE gw_{table}_table SET {changes} ORDER BY time_start;")  # noqa: S608


def accounted(cluster: LoopbackCluster, start: int, end: int) -> Case:
    """Return the cluster as sacct and sacctmgr print it."""
    span = [f"start={at(start)}", f"end={at(end)}"]
    rows = _table(cluster, "sacctmgr", "show", "event", *span, "format=nodename,start,end,stateraw,tres")
    since = min(parse_time_s(row[1]) or end for row in rows if not row[0])
    reserved = _table(cluster, "sacctmgr", "show", "reservation", *span, "format=name,nodenames,start,end,flags")
    jobs = _table(cluster, "sacct", "-a", "-X", "-D", "-S", at(start), "-E", at(end), "-o", _JOBS)
    return Case(
        start,
        end,
        tuple(Node(name, since, end, 4, "a100", 16, 64000 << 20, ("gpu",)) for name in ("gpu1", "gpu2")),
        tuple(_outage(row) for row in rows if row[0].startswith("gpu")),
        tuple(_reservation(row) for row in reserved),
        tuple(_run(row) for row in jobs),
    )


def _table(cluster: LoopbackCluster, *argv: str) -> list[list[str]]:
    command, *words = argv
    done = cluster.run([command, "-n", "-P", *words], env={"TZ": "UTC"})
    return [line.split("|") for line in done.stdout.splitlines()]


def _must(text: str) -> int:
    found = parse_time_s(text)
    assert found is not None, text
    return found


def _outage(row: list[str]) -> Outage:
    name, start, end, state, _ = row
    number = int(state)
    base = [word for word, value in STATES.items() if value == number & 0xF]
    flags = [word for word, value in STATES.items() if value > 0xF and value & number]
    return Outage(name, _must(start), parse_time_s(end), "+".join((*base, *flags)))


def _reservation(row: list[str]) -> Reservation:
    name, nodes, start, end, flags = row
    return Reservation(name, tuple(expand(nodes)), _must(start), _must(end), frozenset(flags.split(",")))


def _run(row: list[str]) -> Run:
    job, submit, eligible, start, end, nodes, asked, allocated, count, reservation = row
    need, got = tres_amounts(asked), tres_amounts(allocated)
    run = Run(
        int(job),
        _must(submit),
        parse_time_s(eligible),
        parse_time_s(start) if got else None,
        parse_time_s(end),
        need.get("gres/gpu", 0),
        need.get("cpu", 0),
        need.get("mem", 0),
        int(count),
        partitions=("gpu",),
        reservation=reservation,
    )
    names = expand(nodes) if got else []
    each = Amount(*(got.get(key, 0) // len(names) for key in ("gres/gpu", "cpu", "mem"))) if names else None
    return replace(run, held=dict.fromkeys(names, each)) if each else run
