"""Which GPUs are known to be unusable, and the file for the prolog's health gate (docs/how-to/health-gate.md).

RUN_DIR/health: a line `gpuwaste-health 1 WRITTEN`, then for each GPU `UUID MINOR POSITIONS STATE SINCE REASON`. Times
are UTC seconds. POSITIONS are those of Slurm's list on this node, of a MIG parent those of all its instances, "-" where
none is certain. STATE is ok, lost (NVML reports that the GPU is lost or waits for a reset), or xid (an error of the
configured list occurred). The file is replaced at each tick at which the driver was read; otherwise the file becomes
outdated, and an outdated file blocks no job.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal, Self

from gpuwaste.agent.facts.gpu_identities import Identities, PositionTable
from gpuwaste.agent.node_map import NodeMap
from gpuwaste.agent.observation import Observation, SinkPart
from gpuwaste.agent.readings import GpuIdentity
from gpuwaste.core.config import Config
from gpuwaste.core.errors import ConfigError
from gpuwaste.core.parts import Parts, Reloads
from gpuwaste.ledger.gpu_sample import UnknownReason

FILE_NAME: Final = "health"
_VERSION: Final = 1
_READ: Final = frozenset(
    {
        UnknownReason.NONE,
        UnknownReason.MIG,
        UnknownReason.PARTITION,
        UnknownReason.NOT_SUPPORTED,
        UnknownReason.GPU_LOST,
    }
)  # reasons of a reading that the driver answered
_MAX_XID: Final = 99_999
State = Literal["ok", "lost", "xid"]


@dataclass(frozen=True, slots=True)
class GpuHealth:
    """One GPU's state; `since_us` is when it was first seen so, UTC microseconds, 0 for ok."""

    uuid: str
    minor: int | None
    state: State = "ok"
    since_us: int = 0
    reason: str = ""
    positions: tuple[int, ...] = ()


def health_xids(words: Iterable[str]) -> frozenset[int]:
    """Return the Xid numbers of [agent] health_xids. Raises ConfigError."""
    found = set()
    for word in words:
        if not (word.isascii() and word.isdigit() and int(word) <= _MAX_XID):
            raise ConfigError(f"[agent] health_xids: {word[:40]!r} is not an Xid number")
        found.add(int(word))
    return frozenset(found)


class HealthSink(SinkPart):
    """Keeps each GPU's state and writes the file. An Xid counts until the GPUs are released, which a reset needs."""

    name = "health file"

    def __init__(self, run_dir: Path, positions: PositionTable, xids: frozenset[int]) -> None:
        self._path = run_dir / FILE_NAME
        self._positions = positions
        self._xids = xids
        self._identities = Identities()
        self._forgiven: Mapping[tuple[str, int], int] = {}  # Xid counts at the last release
        self.states: tuple[GpuHealth, ...] = ()

    @classmethod
    def part_of(cls, parts: Parts) -> Self:
        """Return the part of an agent. Raises ConfigError."""
        config = parts.get(Config)
        positions = parts.get(NodeMap).positions
        return cls(Path(config.common.run_dir), positions, health_xids(config.agent.health_xids))

    @property
    def reloads(self) -> Reloads:
        """Which Xids are critical."""
        return {("agent.health_xids",): lambda c: self.heed(health_xids(c.agent.health_xids))}

    def heed(self, xids: frozenset[int]) -> None:
        """Treat these Xids as critical from the next observation on. Thread-safe."""
        self._xids = xids

    def accept(self, seen: Observation) -> None:
        """Process one observation. Raises OSError where the file cannot be written: it becomes outdated then."""
        reasons = {reading.reason for reading in seen.readings.values()}
        if UnknownReason.RELEASED in reasons:
            self._forgiven = dict(seen.xids)
            self.states = ()
        if not reasons & _READ:
            return
        self._identities.update(seen.gpus)
        before = {state.uuid: state for state in self.states}
        places = self._places(seen.gpus)
        self.states = tuple(
            replace(self._state(seen, gpu, before.get(gpu.uuid)), positions=places.get(gpu.uuid, ()))
            for gpu in seen.gpus
            if not gpu.parent_uuid
        )
        self._write(seen.t_utc_us // 1_000_000)

    def _state(self, seen: Observation, gpu: GpuIdentity, before: GpuHealth | None) -> GpuHealth:
        reading = seen.readings.get(gpu.uuid)
        state: State = "ok"
        reason = ""
        if reading is not None and reading.reason is UnknownReason.GPU_LOST:
            state, reason = "lost", UnknownReason.GPU_LOST
        elif codes := self._codes(seen, gpu.uuid):
            state, reason = "xid", f"xid_{min(codes)}"
        if before is not None and before.state == state:
            return replace(before, minor=gpu.minor)
        return GpuHealth(gpu.uuid, gpu.minor, state, seen.t_utc_us if reason else 0, reason)

    def _codes(self, seen: Observation, uuid: str) -> list[int]:
        """Return the listed Xids of a GPU that were counted since the last release."""
        found = ((key, count) for key, count in seen.xids.items() if key[0] == uuid and key[1] in self._xids)
        return [key[1] for key, count in found if count > self._forgiven.get(key, 0)]

    def _places(self, gpus: tuple[GpuIdentity, ...]) -> dict[str, tuple[int, ...]]:
        """Return the positions by UUID of the full GPU; doubtful ones are left out."""
        parents = {gpu.uuid: gpu.parent_uuid or gpu.uuid for gpu in gpus}
        places: dict[str, tuple[int, ...]] = {}
        for position in range(self._positions.size):
            device = self._positions.device(position)
            if device is None or self._positions.is_doubtful(position):
                continue
            uuid = parents.get(self._identities.of_device(device) or "")
            if uuid is not None:
                places[uuid] = (*places.get(uuid, ()), position)
        return places

    def _write(self, now_s: int) -> None:
        lines = [f"gpuwaste-health {_VERSION} {now_s}", *(_line(state) for state in self.states)]
        new = self._path.with_name(f".{FILE_NAME}.new")
        new.unlink(missing_ok=True)
        new.write_text("".join(f"{line}\n" for line in lines), encoding="ascii", errors="replace")
        new.chmod(0o644)
        new.replace(self._path)


def _line(state: GpuHealth) -> str:
    minor = "-" if state.minor is None else str(state.minor)
    positions = ",".join(map(str, state.positions)) or "-"
    return f"{state.uuid} {minor} {positions} {state.state} {state.since_us // 1_000_000} {state.reason or '-'}"
