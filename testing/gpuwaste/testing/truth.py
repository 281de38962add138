"""What a site's jobs really held and did, from Slurm and the load programs, and what the hub's rows say of it."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gpuwaste.slurm.accounting.tres_amounts import gpu_count, parse_tres
from gpuwaste.slurm.formats.hostlist import expand
from gpuwaste.store.duckdb_connection import connect
from gpuwaste.testing.cluster import ClusterError
from gpuwaste.testing.running_site import Site
from gpuwaste.testing.simnvml import OracleEvent, oracle_seconds

Key = tuple[int, int, str, str]
"""Raw job id, start (UTC seconds), node, GPU uuid."""


@dataclass(frozen=True, slots=True)
class TruthSpan:
    """A stretch of time, UTC seconds."""

    began: float
    ended: float

    @property
    def length_s(self) -> float:
        """Its length, 0 for an empty one."""
        return max(0.0, self.ended - self.began)

    def within(self, other: "TruthSpan") -> "TruthSpan":
        """Return the part of it that lies in another."""
        return TruthSpan(max(self.began, other.began), min(self.ended, other.ended))


@dataclass(slots=True)
class Row:
    """All hours of one allocation in the hub; seconds."""

    keys: list[int] = field(default_factory=list)  # its hours; each once
    final: bool = True
    t0: float = float("inf")
    t1: float = 0.0
    by_pct: dict[int, float] = field(default_factory=lambda: defaultdict(float))
    unknown: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    suspended_s: float = 0.0
    proc_seen: bool = False

    @property
    def known_s(self) -> float:
        """Seconds with a utilization."""
        return sum(self.by_pct.values())

    @property
    def sum_s(self) -> float:
        """All seconds that it accounts for."""
        return self.known_s + sum(self.unknown.values()) + self.suspended_s


def held_gpus(site: Site, since: float = 0) -> dict[Key, TruthSpan]:
    """Return every GPU that a run since then held: sacct's runs, with the devices that each node's prolog was given.

    ClusterError where sacct's nodes or counts and the prologs disagree.
    """
    held: dict[Key, TruthSpan] = {}
    prologs = {node: _prologs(site, node) for node in site.nodes}
    uuids = {node: sim.uuids() for node, sim in site.nodes.items()}
    for row in site.cluster.sacct("-D"):
        wanted = gpu_count(parse_tres(row["AllocTRES"])).total
        if not wanted or not row["Start"].isdigit() or int(row["Start"]) < since:
            continue
        job, span = (
            int(row["JobIDRaw"]),
            TruthSpan(int(row["Start"]), int(row["End"]) if row["End"].isdigit() else 2**40),
        )
        mine = {
            (job, int(span.began), node, uuids[node][minor]): span
            for node in expand(row["NodeList"])
            for minor in _minors(prologs.get(node, []), job, span)
        }
        if len(mine) != wanted:
            raise ClusterError(f"sacct gives job {job} {wanted} GPUs on {row['NodeList']}, its prologs {sorted(mine)}")
        held |= mine
    return held


def _prologs(site: Site, node: str) -> list[tuple[float, int, list[int]]]:
    """Return (time, job, minors) of each prolog on a node."""
    log = site.cluster.directory / "sim" / node / "gres.log"
    words = [line.split() for line in log.read_text().splitlines()] if log.exists() else []
    return [
        (float(at), int(job), [int(minor) for minor in rest[0].split(",")])
        for at, what, job, *rest in words
        if what == "prolog" and rest
    ]


def _minors(prologs: Iterable[tuple[float, int, list[int]]], job: int, span: TruthSpan) -> list[int]:
    """Return the devices of the prolog that belongs to a run: the last one of the job within it."""
    found = [minors for at, number, minors in prologs if number == job and span.began - 1 <= at <= span.ended + 1]
    return found[-1] if found else []


def hub_rows(store: Path) -> dict[Key, Row]:
    """Return the allocations in a hub's store; the hub must not run."""
    found: dict[Key, Row] = defaultdict(Row)
    columns = (
        "job_id, run_start, node, gpu_uuid, hour_utc, final, t0_ms, t1_ms, pct, util_ms, unknown_reason, unknown_ms,"
        " suspended_ms, proc_seen"
    )
    with connect(store, read_only=True) as db:
        rows = db.execute(f"SELECT {columns} FROM hours ORDER BY hour_utc").fetchall()  # noqa: S608 named above
    for job, start, node, uuid, hour, final, t0, t1, pct, util, reasons, unknown, suspended, proc_seen in rows:
        row = found[job, start, node, uuid]
        row.keys.append(hour)
        row.final = final
        row.t0, row.t1 = min(row.t0, t0 / 1000), max(row.t1, t1 / 1000)
        row.suspended_s += suspended / 1000
        row.proc_seen = row.proc_seen or proc_seen
        for level, ms in zip(pct, util, strict=True):
            row.by_pct[level] += ms / 1000
        for reason, ms in zip(reasons, unknown, strict=True):
            row.unknown[reason] += ms / 1000
    return dict(found)


def compare(
    key: Key,
    span: TruthSpan,
    row: Row,
    events: Sequence[OracleEvent],
    outages: Mapping[str, Sequence[TruthSpan]],
    *,
    edge_s: float,
) -> list[str]:
    """Hold a row against the load programs' logs, outside its node's outages; return what is wrong, in words.

    `edge_s` is the tolerance at each end of a stretch that was observed. Nothing may be counted twice, wherever it was.
    """
    job, _, node, uuid = key
    mine = [event for event in events if event.job_id == job and event.node == node]
    whole = oracle_seconds(mine, uuid, span.began, span.ended)
    seen = observed(span, outages.get(node, ()))
    truth: dict[float, float] = defaultdict(float)
    for part in seen:
        for pct, seconds in oracle_seconds(mine, uuid, part.began, part.ended).items():
            truth[pct] += seconds
    tolerance = edge_s * (2 * len(seen) + 1)  # accounting's own ends are whole seconds
    wrong = _sums(span, row, edge_s)
    for pct, most in whole.items():
        said = sum(seconds for level, seconds in row.by_pct.items() if abs(level - pct) <= 1)
        if not truth[pct] - tolerance <= said <= most + 2 * edge_s:
            wrong.append(f"{said:.1f} s at {pct:g} %, in truth {truth[pct]:.1f} to {most:.1f} s (±{tolerance:g} s)")
    known = sum(part.length_s for part in seen)
    if abs(row.known_s - known) > tolerance:
        wrong.append(f"{row.known_s:.1f} s are known, {known:.1f} s were observed (±{tolerance:g} s)")
    return [f"job {job} {node} {uuid}: {text}; {row}" for text in wrong]


def _sums(span: TruthSpan, row: Row, edge_s: float) -> list[str]:
    """Say where a row counts anything twice."""
    wrong = []
    if len(set(row.keys)) != len(row.keys):
        wrong.append(f"hours stand twice: {row.keys}")
    if abs(row.sum_s - (row.t1 - row.t0)) > 0.01 * len(row.keys):
        wrong.append(f"adds up to {row.sum_s:.3f} s of {row.t1 - row.t0:.3f} s")
    if row.sum_s > span.length_s + 2 * edge_s:
        wrong.append(f"has {row.sum_s:.1f} s, the run had {span.length_s:.1f} s")
    return wrong


def observed(span: TruthSpan, outages: Iterable[TruthSpan]) -> list[TruthSpan]:
    """Return the stretches of a run that lie outside the outages."""
    parts = [span]
    for outage in outages:
        parts = [
            piece
            for part in parts
            for piece in (
                part.within(TruthSpan(part.began, outage.began)),
                part.within(TruthSpan(outage.ended, part.ended)),
            )
            if piece.length_s > 0
        ]
    return parts
