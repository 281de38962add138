"""What `gpuwaste simulate sweep` does: it runs the cases that are left, shows progress, and prints a summary of all."""

import argparse
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TextIO

from gpuwaste.cli.interrupts import Interrupted
from gpuwaste.cli.job_sources import need_sim
from gpuwaste.cli.options import terminal_look
from gpuwaste.core.config import Config
from gpuwaste.core.errors import NoDataError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpuwaste.sim.sweep_results import SweepFolder
    from gpuwaste.sim.sweep_study import SweepCase, SweepStudy

_SHOWN_ERRORS: Final = 5
_SHOWN_ROWS: Final = 200
_CASES_FAILED: Final = 1
_MOST_TASKS: Final = 1000  # MaxArraySize is 1001 by default
_EVERY_S: Final = {True: 0.2, False: 30.0}  # by whether it is a terminal


def sweep_and_tell(options: argparse.Namespace, config: Config) -> int:
    """Run the cases that are left and print the results of all; 1 where a case failed. Raises GpuwasteError."""
    try:
        from gpuwaste.sim.sweep_results import SweepFolder
        from gpuwaste.sim.sweep_study import read_study
    except ModuleNotFoundError as error:
        raise need_sim(error) from error
    study = read_study(options.study)
    folder = SweepFolder((options.output or Path(options.study.stem)).resolve())
    if folder.path == options.study.resolve():
        raise UsageError(f"{options.study}: has no .toml: name the directory of the results with -o")
    folder.make()
    if options.as_job and config.common.slurm_conf:
        os.environ.setdefault("SLURM_CONF", config.common.slurm_conf)  # of sbatch and sacct, which submitit runs
    failed = _run(study, folder, options)
    sys.stdout.write(_answer(study, folder, failed, as_json=options.json))
    return _CASES_FAILED if failed else 0


def _run(study: "SweepStudy", folder: "SweepFolder", options: argparse.Namespace) -> "list[tuple[SweepCase, str]]":
    """Run the cases that have no result; returns those that failed, with their errors."""
    from gpuwaste.sim.sweep_results import collect
    from gpuwaste.sim.sweep_runners import run_locally

    left = folder.left(study.cases)
    progress = CaseProgress(len(study.cases), done=len(study.cases) - len(left))
    failed: list[tuple[SweepCase, str]] = []

    def ended(case: "SweepCase", error: str) -> None:
        if error:
            failed.append((case, error))
        progress.ended(failed=bool(error))

    try:
        if options.as_job:
            from gpuwaste.sim.sweep_runners import ArrayRequest, run_on_slurm

            request = ArrayRequest(
                min(options.tasks, 1000),
                options.time,
                options.partition,
                options.accounts or "",
                max(options.threads, 1),
            )
            run_on_slurm(left, folder, request, study.timeout_s, ended)
        elif left:
            run_locally(left, folder, max(options.threads, 1), study.timeout_s, ended)
    except KeyboardInterrupt as stop:
        collect(study, folder)
        progress.end()
        raise Interrupted(
            f"{progress.done} of {len(study.cases)} cases are in {folder.path}: run the same command again to continue"
        ) from stop
    progress.end()
    return failed


def _answer(study: "SweepStudy", folder: "SweepFolder", failed: "list[tuple[SweepCase, str]]", *, as_json: bool) -> str:
    from gpuwaste.show.terminal_cells import one_line
    from gpuwaste.sim.sweep_results import PARQUET, collect, summary

    count = collect(study, folder)
    if not count:
        case, error = failed[0]
        raise NoDataError(f"every case of {study.title} failed, the first one ({case.text()}): {error}")
    headers, rows = summary(study, folder)
    results = folder.path / PARQUET
    if as_json:
        from gpuwaste.show.machine_formats import to_json

        told: dict[str, Any] = {"title": study.title, "cases": len(study.cases), "failed": len(failed), "rows": count}
        means = [dict(zip(headers, row, strict=True)) for row in rows]
        return to_json({**told, "results": str(results), "means": means})
    look = terminal_look()
    lines = look.title(one_line(study.title)[:70])
    lines += look.heading(f"Means over {len({case.seed for case in study.cases})} seeds")
    shown = [[_cell(value) for value in row] for row in rows[:_SHOWN_ROWS]]
    lines += look.table([name.upper().replace("_", " ") for name in headers], shown, frozenset({0}))
    lines += look.heading("Notes")
    lines += [f"  * {count:,} rows of {len(study.cases) - len(failed)} cases: {results}"]
    for case, error in failed[:_SHOWN_ERRORS]:
        lines += look.bullet(f"failed: {case.text()}: {one_line(error)}")
    if len(failed) > _SHOWN_ERRORS:
        lines += look.bullet(
            f"{len(failed) - _SHOWN_ERRORS} more cases failed; all are tried again by the same command."
        )
    return "\n".join(lines) + "\n"


def _cell(value: object) -> str:
    from gpuwaste.show.terminal_cells import one_line

    return f"{value:.4g}" if isinstance(value, float) else one_line(str(value))[:60]


class CaseProgress:
    """Counts cases and shows them: one line that is rewritten on a terminal, a line now and then elsewhere."""

    def __init__(
        self, total: int, *, done: int = 0, stream: TextIO | None = None, clock: "Callable[[], float]" = time.monotonic
    ) -> None:
        """Begin with `done` of `total` cases that an earlier run has ended."""
        self._stream = sys.stderr if stream is None else stream
        self._clock = clock
        self._total, self._before, self._done, self._failed = total, done, done, 0
        self._begin = clock()
        self._shown = self._begin

    @property
    def failed(self) -> int:
        """How many cases failed."""
        return self._failed

    @property
    def done(self) -> int:
        """How many cases have ended, earlier ones and failed ones included."""
        return self._done

    def ended(self, *, failed: bool) -> None:
        """Count a case."""
        self._done += 1
        self._failed += failed
        terminal = self._stream.isatty()
        if self._clock() - self._shown >= _EVERY_S[terminal] or self._done == self._total:
            self._shown = self._clock()
            self._stream.write(f"\r\x1b[K{self.line()}" if terminal else f"{self.line()}\n")
            self._stream.flush()

    def line(self) -> str:
        """Return the state in words."""
        took = max(self._clock() - self._begin, 1e-9)
        rate = (self._done - self._before) / took
        left = "" if not rate or self._done == self._total else f", {_span((self._total - self._done) / rate)} left"
        failed = f", {self._failed} failed" if self._failed else ""
        return f"gpuwaste: {self._done} of {self._total} cases, {rate:.3g}/s{left}{failed}"

    def end(self) -> None:
        """Leave the line as it is."""
        if self._stream.isatty():
            self._stream.write("\n")


def _span(seconds: float) -> str:
    from gpuwaste.show.terminal_cells import short

    return short(seconds)
