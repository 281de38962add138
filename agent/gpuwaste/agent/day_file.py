"""One UTC day of raw samples in one DuckDB file."""

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, chain, groupby
from pathlib import Path
from typing import Any, Final

from gpuwaste.core.errors import StoreError
from gpuwaste.core.files import sync_directory
from gpuwaste.ledger.gpu_sample import Confidence, MapSource, Sample
from gpuwaste.slurm.run_key import RunKey
from gpuwaste.store.database import Database

# 32 KiB is the smallest block in which DuckDB packs 4-byte columns by bits, and samples have no wider ones.
_OPTIONS: Final = {"default_block_size": "32768", "memory_limit": "32MB", "wal_autocheckpoint": "1GB"}
_CSV_B: Final = 1_000_000  # DuckDB would take 32 MB to read a CSV file
_READ_ROWS: Final = 16_384
_FOREVER_US: Final = 2**62
_KIB: Final = 1024
_MAX_STEP: Final = 2**31 - 1
_MAX_U32: Final = 2**32 - 1
_DICTIONARIES: Final = ("gpu", "label", "run")


class DayFile:
    """An open day, for one thread. Every method may raise StoreError."""

    def __init__(self, path: Path) -> None:
        self._path = path
        if not path.exists():  # a file of this name is complete even if we are killed
            blank = path.with_name(f"{path.name}.tmp")
            Database.open(blank, "node", _OPTIONS).close()
            blank.replace(path)
            sync_directory(path.parent)
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

    def fold(self, ticks: Iterable[Sequence[Sample]]) -> None:
        """Add the ticks of a segment, all or none; does nothing if the file already has the first of them."""
        ticks = iter(ticks)
        for first in ticks:
            if first and not self._has(first[0]):
                with self._database.transaction(), contextlib.ExitStack() as stack:
                    self._take(chain([first], ticks), stack)
            if first:
                return

    def _has(self, sample: Sample) -> bool:
        """Whether the sample's tick is here: a pair of wall clock and monotonic clock never occurs twice."""
        sql = "SELECT 1 FROM tick WHERE t_us = ? AND mono_us = ? LIMIT 1"
        return self._database.execute(sql, [sample.t_utc_us, sample.mono_us]).fetchone() is not None

    def _take(self, ticks: Iterable[Sequence[Sample]], stack: contextlib.ExitStack) -> None:
        """Write rows to CSV and COPY it: a tenth of the CPU time of VALUES, a hundredth of that of parameters."""
        paths = {table: self._path.with_name(f"{table}.csv.tmp") for table in ("tick", "sample")}
        for path in paths.values():
            stack.callback(path.unlink, missing_ok=True)
        with paths["tick"].open("w") as tick_rows, paths["sample"].open("w") as sample_rows:
            for samples in ticks:
                for instant, group in groupby(samples, key=lambda sample: (sample.t_utc_us, sample.mono_us)):
                    self._tick += 1
                    tick_rows.write(_csv((self._tick, *instant)))
                    sample_rows.writelines(_csv(self._values(self._tick, sample)) for sample in group)
        for table, path in paths.items():
            self._database.execute(
                f"COPY {table} FROM '{_quoted(path)}' "
                f"(HEADER false, AUTO_DETECT false, DELIMITER ',', BUFFER_SIZE {_CSV_B})"
            )

    def since(self, t_us: int) -> Iterator[Sample]:
        """Yield the samples after an instant, oldest first."""
        energy_mj = self._energy_until(t_us)
        jumps = self._database.execute("SELECT uuid, tick, sum(mj) FROM energy_jump GROUP BY uuid, tick").fetchall()
        jump_mj = {(uuid, tick): int(mj) for uuid, tick, mj in jumps}
        for until_us in self._stretches(t_us):
            rows = self._database.rows("samples_since", {"since_us": t_us, "until_us": until_us})
            t_us = until_us
            for row in rows:
                step, uuid = row["energy_step_mj"], row["uuid"]
                if step is not None:
                    step += jump_mj.pop((uuid, row["tick"]), 0)
                    energy_mj[uuid] = energy_mj.get(uuid, 0) + step
                yield _sample(row, None if step is None else energy_mj[uuid])

    def _stretches(self, t_us: int) -> list[int]:
        """Return the ends of stretches after an instant that can be sorted in the available memory."""
        counts = self._database.execute(
            "SELECT t_us, count(*) FROM tick JOIN sample ON id = tick WHERE t_us > ? GROUP BY ALL ORDER BY ALL", [t_us]
        ).fetchall()
        sums = accumulate(count for _, count in counts)
        ends = {total // _READ_ROWS: instant for (instant, _), total in zip(counts, sums, strict=True)}
        return list(ends.values())

    def _energy_until(self, t_us: int) -> dict[str, int]:
        rows = self._database.rows("energy_until", {"until_us": t_us})
        return {row["uuid"]: int(row["energy_mj"]) for row in rows}

    @property
    def compacted(self) -> bool:
        """Whether the file was rewritten after its day."""
        return self._database.execute("SELECT bool_or(compacted) FROM day").fetchone() == (True,)

    def compact_into(self, path: Path, *, over: bool) -> None:
        """Rewrite the day, ordered by GPU and time, so that similar values are adjacent; `over`: the day has ended.

        Afterwards this file has no WAL, so that the other one can replace it.
        """
        self._database.execute("CHECKPOINT")
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
        """Close the file, with its WAL merged into it where possible."""
        with contextlib.suppress(StoreError):
            self._database.execute("CHECKPOINT")
        self._database.close()

    def _values(self, tick: int, sample: Sample) -> tuple[float | None, ...]:
        """Return the row of a sample, in the order of the table's columns."""
        gpu = self._id("gpu", (sample.gpu_uuid, sample.instance, sample.mem_total_b, sample.power_limit_mw))
        label = self._id("label", (sample.source, str(sample.map_source), str(sample.confidence), sample.reason))
        run: int | None = None
        if sample.job_id is not None:
            key = sample.run_key
            run = self._id("run", (sample.job_id, key.cluster if key else None, key.start if key else None))
        memory_kib = None if sample.mem_used_b is None else -(-sample.mem_used_b // _KIB)
        return (
            tick,
            gpu,
            label,
            run,
            _rounded(sample.util_pct, 2, 999),
            _fitting(memory_kib),
            _fitting(sample.power_mw),
            self._energy_step(tick, sample),
            _rounded(sample.sm_ratio, 4, 9),
            _fitting(sample.procs),
        )

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


def _csv(row: Sequence[float | None]) -> str:
    return ",".join("" if value is None else str(value) for value in row) + "\n"


def _fitting(value: int | None) -> int | None:
    """Return a count that fits its column; an impossible one is None."""
    return value if value is not None and 0 <= value <= _MAX_U32 else None


def _rounded(value: float | None, places: int, most: int) -> float | None:
    """Round for storage; a value above 0 stays above 0, since only 0 is idle; one that does not fit is None."""
    if value is None or not 0 <= value <= most:
        return None
    least: float = 10.0**-places
    return round(max(value, least), places) if value > 0 else 0.0


def _quoted(path: Path) -> str:
    return str(path).replace("'", "''")


def _sample(row: dict[str, Any], energy_mj: int | None) -> Sample:
    start = row["start"]
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
