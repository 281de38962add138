"""AllocationHour: what one allocation of one GPU did in one hour, and its line of JSON from agent to hub.

The wire form (CONTRACTS.md, "AllocationHour") has seconds with three decimals; in memory all durations are whole
milliseconds, so that the ledger adds up exactly. Each field is declared only here, with its bounds and its meaning; the
columns of the store, the wire's page and the hub's OpenAPI are generated from it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Annotated, Any, Final

from msgspec import Meta

from gpuwaste.core.codec import OPTIONAL, SPARSE, Codec, KeyColumn, Whole, Wire, in_seconds, map_in_seconds
from gpuwaste.core.errors import ParseError
from gpuwaste.core.units import HOUR_S
from gpuwaste.ledger.gpu_sample import Confidence, MapSource
from gpuwaste.net.batch import Batch, json_line, parse_rows
from gpuwaste.slurm.run_key import RunKey

SCHEMA: Final = 1
HOUR_MS: Final = HOUR_S * 1000
FULL_PCT: Final = 95  # from here on a GPU counts as fully busy
_SLACK_MS: Final = 1000  # rounding of t0 and t1 to milliseconds, twice, and a clock slewed by NTP
MISSING_PREFIX: Final = "missing:"  # of the uuid of a GPU that Slurm has and NVML does not list
MAX_SEQ: Final = 10**9  # an agent counts from 1, a few times an hour; a far greater value could never be corrected
_FAR_S: Final = 2**40
_HOUR: Final = HOUR_S + 1
_Name = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_.:\-/]{1,128}\Z")]
_Reason = Annotated[str, Meta(pattern=r"^[a-z0-9_:\-]{1,64}\Z")]
_Percent = Annotated[int, Meta(ge=0, le=100)]
_Watts = Annotated[float, Meta(ge=0, le=1e9)]
_Xid = Annotated[int, Meta(ge=0, le=99_999)]
_Share = Annotated[float, Meta(ge=0, le=1)]
_Count = Annotated[int, Meta(ge=1, le=2**31)]
_RUN: Final = Wire(
    {
        "cluster": Annotated[_Name, Meta(description="Slurm's ClusterName")],
        "jobid": Annotated[int, Meta(ge=1, le=2**32 - 1, description="the job's own number (JobIDRaw)")],
        "start": Annotated[
            int, Meta(ge=1, le=_FAR_S, description="start of this run, UTC seconds: a requeued job has several")
        ],
    },
    RunKey,
    attrgetter("cluster", "job_id", "start"),
)
RowKey = tuple[str, int, int, str, str, int]


def _about(text: str) -> Meta:
    return Meta(description=text)


@dataclass(slots=True)
class AllocationHour:
    """One allocated GPU in one UTC hour; upserted by (run_key, node, gpu_uuid, hour_utc), the highest seq wins.

    util_ms maps a utilization percent 0..100 to milliseconds; unknown_ms maps a reason to milliseconds.
    """

    run_key: Annotated[RunKey, _RUN]
    node: Annotated[_Name, _about("NodeName")]
    gpu_uuid: Annotated[
        _Name,
        _about(
            "UUID of the GPU or MIG instance; `missing:NODE:POSITION` for one that Slurm has but NVML does not report"
        ),
    ]
    hour_utc: Annotated[int, Meta(ge=0, le=_FAR_S, description="start of the hour, UTC seconds, a multiple of 3600")]
    seq: Annotated[int, Meta(ge=0, le=MAX_SEQ, description="version of the row: the highest wins")]
    t0_ms: Annotated[int, in_seconds("t0", _FAR_S, "start of the allocation in this hour, UTC seconds")]
    t1_ms: Annotated[int, in_seconds("t1", _FAR_S, "end of the allocation in this hour, UTC seconds")]
    share: Annotated[float, Meta(ge=0, le=1, description="1 for a whole GPU, less for shards and MPS")] = 1.0
    final: Annotated[bool, _about("the row is complete")] = False
    util_ms: Annotated[
        dict[int, int],
        map_in_seconds(
            "seconds",
            _Percent,
            _HOUR,
            "seconds by utilization percent 0..100, sparse; 0 only if exactly nothing ran",
        ),
        KeyColumn("pct"),
    ] = field(default_factory=dict)
    idle_run_ms: Annotated[
        int, in_seconds("idle_run_s", _HOUR, "the part of the seconds at 0 in runs of 60 s and more")
    ] = 0
    unknown_ms: Annotated[
        dict[str, int],
        map_in_seconds("unknown_s", _Reason, _HOUR, "unknown seconds, by reason"),
        KeyColumn("unknown_reason"),
    ] = field(default_factory=dict)
    suspended_ms: Annotated[int, in_seconds("suspended_s", _HOUR, "seconds in which the job was suspended")] = 0
    proc_seen: Annotated[bool, _about("a process of the job was on the GPU")] = False
    mem_max_b: Annotated[Whole | None, _about("maximum GPU memory in use, bytes")] = None
    mem_total_b: Annotated[Whole | None, _about("the GPU's memory, bytes")] = None
    energy_j: Annotated[Annotated[float, Meta(ge=0, le=1e15)] | None, _about("energy, joules")] = None
    last_active_ms: Annotated[
        int | None,
        in_seconds("last_active", _FAR_S, "last instant with a utilization above 0, UTC seconds", optional=True),
    ] = None
    power_w_at_full: Annotated[_Watts | None, _about("mean power while the utilization was 95 % and more, watts")] = (
        None
    )
    power_limit_w: Annotated[_Watts | None, _about("power limit in force, watts")] = None
    sm_ratio_at_full: Annotated[
        Annotated[float, Meta(ge=0, le=1)] | None,
        _about("mean share of multiprocessors that were busy in that time, 0 to 1"),
    ] = None
    cpu_s: Annotated[
        Annotated[float, Meta(ge=0, le=1e12)] | None,
        _about("CPU seconds of the job on this node, all processes; the same in the row of each of its GPUs"),
    ] = None
    host_mem_max_b: Annotated[Whole | None, _about("maximum memory of the job on this node, all processes, bytes")] = (
        None
    )
    map_source: Annotated[_Name, OPTIONAL, _about("source of the GPU's job: " + ", ".join(MapSource))] = "none"
    confidence: Annotated[_Name, OPTIONAL, _about(", ".join(Confidence))] = "none"
    xids: Annotated[
        dict[_Xid, _Count],
        OPTIONAL,
        SPARSE,
        KeyColumn("xid"),
        Meta(max_length=64, description="Xid errors of the GPU in this hour: how often, by number"),
    ] = field(default_factory=dict)

    profiled_ms: Annotated[
        int | None,
        in_seconds("profiled_s", _HOUR, "seconds at a known utilization in which profiling was read", optional=True),
        SPARSE,
    ] = None
    sm_active: Annotated[
        _Share | None, SPARSE, _about("mean share of multiprocessors with work in these seconds, 0 to 1")
    ] = None
    tensor_active: Annotated[
        _Share | None, SPARSE, _about("mean share of cycles in which the tensor cores were active, 0 to 1")
    ] = None
    dram_active: Annotated[
        _Share | None, SPARSE, _about("mean share of cycles in which GPU memory sent or received data, 0 to 1")
    ] = None
    nvlink_b: Annotated[Whole | None, SPARSE, _about("bytes over NVLink, sent and received, in these seconds")] = None
    pcie_b: Annotated[Whole | None, SPARSE, _about("bytes over PCIe, sent and received, in these seconds")] = None
    energy_ms: Annotated[
        int | None,
        in_seconds("energy_s", _HOUR, "seconds over which energy_j was measured", optional=True),
        SPARSE,
    ] = None
    idle_energy_j: Annotated[
        Annotated[float, Meta(ge=0, le=1e15)] | None, SPARSE, _about("the part of energy_j at 0 % utilization, joules")
    ] = None
    cpu_energy_ms: Annotated[
        int | None,
        in_seconds("cpu_energy_s", _HOUR, "seconds over which cpu_energy_j was measured", optional=True),
        SPARSE,
    ] = None
    cpu_energy_j: Annotated[
        Annotated[float, Meta(ge=0, le=1e15)] | None,
        SPARSE,
        _about("energy of the node's CPU packages by the job's CPU time, divided by its GPUs on the node, joules"),
    ] = None

    @property
    def key(self) -> tuple[str, int, int, str, str, int]:
        """The row's identity in the hub."""
        run = self.run_key
        return (run.cluster, run.job_id, run.start, self.node, self.gpu_uuid, self.hour_utc)

    @property
    def known_ms(self) -> int:
        """Milliseconds with a utilization."""
        return sum(self.util_ms.values())

    def to_wire(self) -> dict[str, Any]:
        """Return the row as one JSON object of schema 1."""
        return HOUR_CODEC.to_json(self)


HOUR_CODEC: Final = Codec(AllocationHour, "hours row", SCHEMA)


def hour_from_wire(row: object) -> AllocationHour:
    """Return the row of one JSON object from an agent.

    Raises ParseError naming the field that is missing, of the wrong type or impossible. Unknown fields are ignored:
    a newer agent may send more than this version reads.
    """
    return _checked(HOUR_CODEC.convert(row))


def hour_from_line(line: bytes) -> AllocationHour:
    """Return the row of one line of JSON, as `hour_from_wire` does."""
    return _checked(HOUR_CODEC.decode(line))


def _checked(hour: AllocationHour) -> AllocationHour:
    """Reject a row whose parts do not fit into its hour."""
    start_ms = hour.hour_utc * 1000
    if hour.hour_utc % HOUR_S or not start_ms <= hour.t0_ms <= hour.t1_ms <= start_ms + HOUR_MS:
        raise ParseError(f"hours row of {hour.run_key}: t0 or t1 is outside the hour {hour.hour_utc}")
    span = hour.t1_ms - hour.t0_ms
    total = hour.known_ms + sum(hour.unknown_ms.values()) + hour.suspended_ms
    if total > span + _SLACK_MS:
        raise ParseError(f"hours row of {hour.run_key}: its seconds add up to {total / 1000}, more than {span / 1000}")
    if (hour.profiled_ms or 0) > span + _SLACK_MS:
        raise ParseError(f"hours row of {hour.run_key}: profiled_s is more than its time")
    if (hour.energy_ms or 0) > span + _SLACK_MS:
        raise ParseError(f"hours row of {hour.run_key}: energy_s is more than its time")
    if (hour.cpu_energy_ms or 0) > span + _SLACK_MS:
        raise ParseError(f"hours row of {hour.run_key}: cpu_energy_s is more than its time")
    if (hour.idle_energy_j or 0.0) > (hour.energy_j or 0.0) * (1 + 1e-6):
        raise ParseError(f"hours row of {hour.run_key}: idle_energy_j is more than energy_j")
    if hour.idle_run_ms > hour.util_ms.get(0, 0):
        raise ParseError(f"hours row of {hour.run_key}: idle_run_s is more than the seconds at 0 %")
    return hour


@dataclass(frozen=True, slots=True)
class HourLine:
    """One hour of a batch: its key, its version and its line of JSON (no newline)."""

    key: RowKey
    seq: int
    final: bool
    line: bytes

    def __str__(self) -> str:
        """Return the row's name for a log."""
        return f"{self.key} seq {self.seq}"


HourBatch = Batch[HourLine]


def encode_hour(hour: AllocationHour) -> HourLine:
    """Return the row in wire form. Raises ParseError for a value that the wire form cannot hold (NaN)."""
    try:
        return HourLine(hour.key, hour.seq, hour.final, json_line(hour.to_wire()))
    except ValueError as error:
        raise ParseError(f"hours row of {hour.run_key}: {error}") from error


def parse_hours(body: bytes) -> Iterator[tuple[int, AllocationHour | ParseError]]:
    """Yield the line number of each row of a body, and the row or its error."""
    return parse_rows(body, hour_from_line)
