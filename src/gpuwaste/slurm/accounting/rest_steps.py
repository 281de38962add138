"""The steps of a job in slurmrestd's JSON, and the details that only analytics reads.

A detail that cannot be read is unknown, and costs the run nothing else.
"""

from collections.abc import Callable
from typing import Any, Final, TypeVar

from gpuwaste.core.errors import GpuwasteError, ParseError
from gpuwaste.core.units import HOUR_S
from gpuwaste.slurm.accounting import rest_value as value
from gpuwaste.slurm.accounting.accounted_run import JobDetails, StepRecord
from gpuwaste.slurm.accounting.run_details import StepSums, flag_text, own_text, program_of, short

_MICRO: Final = 1_000_000
_DISK: Final = "fs/disk"
_T = TypeVar("_T")


class RestSteps:
    """What a job's steps add up to; `unread` says which details cannot be read, and why."""

    def __init__(self, job: Any) -> None:
        """Read the steps. Raises ParseError where their time or memory cannot be read."""
        self.max_rss_b: int | None = None
        self._cpu_us = 0
        self.names: set[str] = set()
        self.sums = StepSums()
        self.unread: dict[str, str] = {}
        steps = value.at(job, "steps")
        if steps is not None and not isinstance(steps, list):
            raise ParseError("steps: expected a list")
        for step in steps or ():
            self._add(step)

    def total_cpu_s(self, job: Any, end: int | None) -> float | None:
        """Return seconds, as precise as sacct prints them; a running job has none yet."""
        best = max(self._cpu_us, _cpu_us(job))
        if not best and end is None:
            return None
        seconds = best // _MICRO
        return float(seconds) if seconds >= HOUR_S else best // 1000 / 1000

    def details(self, job: Any) -> JobDetails:
        """Return the details of the run."""
        own_j = self._noted("tres.allocated", lambda: dict(value.tres_items(job, "tres", "allocated")).get("energy"))
        sums = self.sums
        return JobDetails(
            eligible=self._noted("time.eligible", lambda: value.time_s(job, "time", "eligible")),
            priority=self._noted("priority", lambda: value.number(job, "priority")),
            flags=self._noted(
                "flags", lambda: flag_text(map(str, value.at(job, "flags"))) if _has(job, "flags") else None
            ),
            reason=self._noted("state.reason", lambda: _text(job, own_text, "state", "reason")),
            constraints=self._noted("constraints", lambda: _text(job, short, "constraints")),
            reservation=self._noted("reservation.name", lambda: _reservation(job)),
            n_steps=sums.n_steps,
            energy_j=own_j or sums.energy_j,
            disk_read_b=sums.disk_read_b,
            disk_write_b=sums.disk_write_b,
            program=self._noted("comment", lambda: _program(job)),
        )

    def _add(self, step: Any) -> None:
        name = _name(step)
        self.names.add("0" if name[:1].isdigit() else name)  # constant memory, however many there are
        self._cpu_us += _cpu_us(step)
        rss_b = None
        for kind, count in value.tres_items(step, "tres", "requested", "max"):
            if kind == "mem":  # bytes here, unlike in an allocation
                rss_b = count
        if rss_b is not None:
            self.max_rss_b = max(rss_b, self.max_rss_b or 0)
        self.sums.add(
            name,
            self._noted("steps", lambda: _record(step, name, rss_b)),
            self._noted("steps.energy", lambda: value.number(step, "statistics", "energy", "consumed")),
            self._noted("steps.tres", lambda: dict(value.tres_items(step, "tres", "requested", "total")).get(_DISK)),
            self._noted("steps.tres", lambda: dict(value.tres_items(step, "tres", "consumed", "total")).get(_DISK)),
        )

    def _noted(self, name: str, read: Callable[[], _T]) -> _T | None:
        try:
            return read()
        except GpuwasteError as error:
            self.unread.setdefault(name, str(error)[:200])
            return None


def _name(step: Any) -> str:
    """Return 0, 0+1, batch, extern, interactive: the text of v0.0.38, from 12.batch of v0.0.40 on.

    v0.0.39 has an object with the job's id and, for a component of a heterogeneous step, its number.
    """
    if not isinstance(value.at(step, "step", "id"), dict):
        return value.text(step, "step", "id").rpartition(".")[2]
    component = value.number(step, "step", "id", "step_het_component")
    return value.text(step, "step", "id", "step_id") + ("" if component is None else f"+{component}")


def _record(step: Any, name: str, rss_b: int | None) -> StepRecord | None:
    """Return a step; None where it has not ended."""
    if value.time_s(step, "time", "end") is None:
        return None
    state = value.state(step, "state")
    code, signal = value.exit_of(step, "exit_code")
    return StepRecord(
        step=name,
        name=short(value.text(step, "step", "name")),
        start=value.time_s(step, "time", "start"),
        elapsed_s=value.number(step, "time", "elapsed"),
        tasks=value.number(step, "tasks", "count"),
        max_rss_b=rss_b,
        state=state,
        exit_code=0 if code is None and state == "COMPLETED" else code,
        exit_signal=signal,
    )


def _reservation(job: Any) -> str | None:
    """Return the reservation's name; v0.0.38 has a number in its place."""
    found = value.at(job, "reservation", "name")
    return None if isinstance(found, int) else _text(job, short, "reservation", "name")


def _program(job: Any) -> str:
    """Return what ties the job to a program; a `comment` that is one text is the user's own."""
    path = ("comment", "job") if isinstance(value.at(job, "comment"), dict) else ("comment",)
    return program_of(value.text(job, *path), value.text(job, "submit_line"))


def _has(job: Any, name: str) -> bool:
    return isinstance(value.at(job, name), list)


def _text(job: Any, read: Callable[[str], str], *path: str) -> str | None:
    return None if value.at(job, *path) is None else read(value.text(job, *path))


def _cpu_us(found: Any) -> int:
    seconds = value.number(found, "time", "total", "seconds") or 0
    return seconds * _MICRO + (value.number(found, "time", "total", "microseconds") or 0)
