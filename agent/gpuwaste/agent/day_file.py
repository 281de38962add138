"""One UTC day of raw samples in one DuckDB file."""

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from gpuwaste.core.errors import StoreError
from gpuwaste.core.run import RunKey
from gpuwaste.core.sample import Confidence, MapSource, Sample
from gpuwaste.store.database import Database

# 32 KiB is the smallest block in which DuckDB packs 4-byte columns by bits, and samples have none that are wider.
_OPTIONS: Final = {"default_block_size": "32768", "memory_limit": "32MB", "wal_autocheckpoint": "1GB"}
_CHECKPOINT_ROWS: Final = 720  # 15 minutes of 8 GPUs at 10 s: a WAL of about 80 kB
_READ_ROWS: Final = 2048
_FOREVER_US: Final = 2**62
_COLUMNS: Final = "tick, gpu, label, run, util_pct, mem_used_kib, power_mw, energy_step_mj, sm_ratio, procs"
_KIB: Final = 1024
_MAX_STEP: Final = 2**31 - 1
_MAX_U32: Final = 2**32 - 1
_DICTIONARIES: Final = ("gpu", "label", "run")


class DayFile:
    """An open day, for one thread. Every method may raise StoreError."""

    def __init__(self, path: Path) -> None:
        self._database = Database.open(path, "node", _OPTIONS)
        self._known: dict[str, dict[tuple[Any, ...], int]] = {}
        try:
            for table in _DICTIONARIES:
                rows = self._database.execute(f"SELECT * FROM {table}").fetchall()  # noqa: S608 names from above
                self._known[table] = {tuple(row[1:]): row[0] for row in rows}
            self._energy_mj = self._energy_until(_FOREVER_US)
            found = self._database.execute("SELECT coalesce(max(id), 0) FROM tick").fetchone()
        except BaseException:
            self._database.close()
            raise
        self._tick = int(found[0]) if found else 0
        self._since_checkpoint = 0

    def append(self, samples: Sequence[Sample]) -> None:
        """Write samples of one tick; they are on the disk when this returns."""
        ticks = sorted({(s.t_utc_us, s.mono_us) for s in samples})
        number = {instant: self._tick + n for n, instant in enumerate(ticks, start=1)}
        with self._database.transaction():
            # Numbers are written into the statements: DuckDB takes seven times as long to bind them one by one.
            rows = ",".join(f"({n:d},{t:d},{mono:d})" for (t, mono), n in number.items())
            self._database.execute(f"INSERT INTO tick VALUES {rows}")  # noqa: S608 whole numbers
            values = ",".join(self._values(number[s.t_utc_us, s.mono_us], s) for s in samples)
            self._database.execute(f"INSERT INTO sample ({_COLUMNS}) VALUES {values}")  # noqa: S608 numbers and NULL
        self._tick += len(ticks)
        self._since_checkpoint += len(samples)
        if self._since_checkpoint >= _CHECKPOINT_ROWS:
            self.checkpoint()

    def checkpoint(self) -> None:
        """Move the WAL into the file."""
        self._database.execute("CHECKPOINT")
        self._since_checkpoint = 0

    def since(self, t_us: int) -> Iterator[Sample]:
        """Yield the samples after an instant, oldest first."""
        energy_mj = self._energy_until(t_us)
        jumps = self._database.execute("SELECT uuid, tick, sum(mj) FROM energy_jump GROUP BY uuid, tick").fetchall()
        jump_mj = {(uuid, tick): int(mj) for uuid, tick, mj in jumps}
        cursor = self._database.run("samples_since", {"since_us": t_us})
        names = [column[0] for column in cursor.description or ()]
        while rows := cursor.fetchmany(_READ_ROWS):
            for values in rows:
                row = dict(zip(names, values, strict=True))
                step, uuid = row["energy_step_mj"], row["uuid"]
                if step is not None:
                    step += jump_mj.pop((uuid, row["tick"]), 0)
                    energy_mj[uuid] = energy_mj.get(uuid, 0) + step
                yield _sample(row, None if step is None else energy_mj[uuid])

    def _energy_until(self, t_us: int) -> dict[str, int]:
        rows = self._database.rows("energy_until", {"until_us": t_us})
        return {row["uuid"]: int(row["energy_mj"]) for row in rows}

    @property
    def compacted(self) -> bool:
        """Whether the file was written anew after its day."""
        return self._database.execute("SELECT bool_or(compacted) FROM day").fetchone() == (True,)

    def compact_into(self, path: Path, *, over: bool) -> None:
        """Write the day anew, ordered by GPU and time, so that like values stand together; `over`: for good.

        Afterwards this file has no WAL, so that the other one may take its place.
        """
        self.checkpoint()
        Database.open(path, "node", _OPTIONS).close()
        self._database.execute(f"ATTACH '{_quoted(path)}' AS packed")
        try:
            with self._database.transaction():
                for table in (*_DICTIONARIES, "tick", "energy_jump"):
                    self._database.execute(f"INSERT INTO packed.{table} SELECT * FROM {table}")  # noqa: S608 names
                self._database.execute("INSERT INTO packed.sample SELECT * FROM sample ORDER BY gpu, tick")
                self._database.execute("UPDATE packed.day SET compacted = ?", [over])
            self._database.execute("CHECKPOINT packed")
        finally:
            self._database.execute("DETACH packed")

    def close(self) -> None:
        """Close the file, its WAL moved into it where that is possible."""
        with contextlib.suppress(StoreError):
            self._database.execute("CHECKPOINT")
        self._database.close()

    def _values(self, tick: int, sample: Sample) -> str:
        """Return the row of a sample as SQL, in the order of _COLUMNS."""
        gpu = self._id("gpu", (sample.gpu_uuid, sample.instance, sample.mem_total_b, sample.power_limit_mw))
        label = self._id("label", (sample.source, str(sample.map_source), str(sample.confidence), sample.reason))
        run: int | None = None
        if sample.job_id is not None:
            key = sample.run_key
            run = self._id("run", (sample.job_id, key.cluster if key else None, key.start if key else None))
        memory_kib = None if sample.mem_used_b is None else -(-sample.mem_used_b // _KIB)
        row = (
            tick,
            gpu,
            label,
            run,
            _rounded(sample.util_pct, 2),
            _fitting(memory_kib),
            _fitting(sample.power_mw),
            self._energy_step(tick, sample),
            _rounded(sample.sm_ratio, 4),
            _fitting(sample.procs),
        )
        return f"({','.join(map(_literal, row))})"

    def _energy_step(self, tick: int, sample: Sample) -> int | None:
        if sample.energy_mj is None:
            return None
        before = self._energy_mj.get(sample.gpu_uuid)
        step = sample.energy_mj - (before or 0)
        self._energy_mj[sample.gpu_uuid] = sample.energy_mj
        if before is not None and abs(step) <= _MAX_STEP:
            return step
        self._database.execute("INSERT INTO energy_jump VALUES (?, ?, ?)", [sample.gpu_uuid, tick, step])
        return 0

    def _id(self, table: str, key: tuple[Any, ...]) -> int:
        known = self._known[table]
        if key not in known:
            marks = ", ".join("?" * len(key))
            self._database.execute(
                f"INSERT INTO {table} VALUES ({len(known):d}, {marks})",  # noqa: S608 a name from this module
                list(key),
            )
            known[key] = len(known)
        return known[key]


def _literal(value: float | None) -> str:
    return "NULL" if value is None else str(value)


def _fitting(value: int | None) -> int | None:
    """Return a count as its column can hold it; what no device has is None."""
    return value if value is not None and 0 <= value <= _MAX_U32 else None


def _rounded(value: float | None, places: int) -> float | None:
    """Round as stored; what is above 0 stays above 0, since only a true 0 is idle."""
    if value is None:
        return None
    least: float = 10.0**-places
    return round(max(value, least), places) if value > 0 else 0.0


def _quoted(path: Path) -> str:
    return str(path).replace("'", "''")


def _sample(row: dict[str, Any], energy_mj: int | None) -> Sample:
    start = row["start_s"]
    return Sample(
        t_utc_us=row["t_us"],
        mono_us=row["mono_us"],
        gpu_uuid=row["uuid"],
        instance=row["instance"],
        source=row["source"],
        util_pct=row["util_pct"],
        mem_used_b=row["mem_used_b"],
        mem_total_b=row["mem_total_b"],
        power_mw=row["power_mw"],
        power_limit_mw=row["power_limit_mw"],
        energy_mj=energy_mj,
        sm_ratio=row["sm_ratio"],
        procs=row["procs"],
        job_id=row["job_id"],
        run_key=None if start is None else RunKey(row["cluster"], row["job_id"], start),
        map_source=MapSource(row["map_source"]),
        confidence=Confidence(row["confidence"]),
        reason=row["reason"],
    )
