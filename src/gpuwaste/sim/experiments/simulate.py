"""Play one load through schedulers: a row for each, with what `gpuwaste simulate` prints."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from msgspec import to_builtins

from gpuwaste.core.errors import UsageError
from gpuwaste.jobs.history.job_table import JobTable
from gpuwaste.jobs.history.swf_table import swf_table
from gpuwaste.sim.generated_load import JobLog, generated, generator_parameters
from gpuwaste.sim.parameters import read_named
from gpuwaste.sim.simulation import RECENT, SCHEDULERS, TRUTH, USER, machine_of, simulate
from gpuwaste.sim.time_travel import read_steps, travelled

TITLE: Final = "one load through schedulers"
PARAMETERS: Final[Mapping[str, Any]] = {
    "generate": "",
    "swf": "",
    "steps": [],
    "schedulers": ["easy"],
    "walltime": USER,
    "processors": 0,
    "first": 0,
}
MEASURES: Final = ("mean_wait_s", "p95_wait_s", "mean_bounded_slowdown", "utilization", "makespan_s")


def rows(values: Mapping[str, Any], seed: int, folder: Path) -> list[dict[str, Any]]:
    """Simulate; the seed is that of the generator and of each step that has one. Raises GpuwasteError."""
    unknown = [name for name in values["schedulers"] if name not in SCHEDULERS]
    if unknown or not values["schedulers"]:
        raise UsageError(f"schedulers {unknown!r:.80}: schedulers are {', '.join(SCHEDULERS)}")
    if values["walltime"] not in {USER, TRUTH, RECENT}:
        raise UsageError(f"walltime {values['walltime']!r:.40}: expected {USER}, {TRUTH} or {RECENT}")
    table, header = _load(values, seed, folder)
    steps = [step.seeded(seed) for step in read_steps(values["steps"])]
    table = travelled(table, steps)
    machine = machine_of(table, values["processors"] or None, header)
    document, _, _ = simulate(
        table,
        values["generate"] or values["swf"],
        machine,
        tuple(values["schedulers"]),
        walltime=values["walltime"],
        first=values["first"] or None,
    )
    return [
        {"scheduler": name, **{key: value for key, value in to_builtins(found).items() if key != "title"}}
        for name, found in document.schedulers.items()
    ]


def _load(values: Mapping[str, Any], seed: int, folder: Path) -> tuple[JobTable, int | None]:
    log = None
    if values["swf"]:
        read = swf_table(folder / values["swf"])
        log = JobLog(read.table, read.facts.processors, values["swf"])
    if values["generate"]:
        load = generated(read_named(values["generate"], generator_parameters(), "generate").seeded(seed), log)
        return load.table(), load.processors
    if log is None:
        raise UsageError("neither generate nor swf is set: set one of them")
    return log.table, log.processors
