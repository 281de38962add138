"""What `gpuwaste export` does: fetches runs from the hub, and writes them in the format of another tool, job by job."""

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from gpuwaste.cli.hub_access import LONG_PATIENCE_S, hub_client
from gpuwaste.cli.options import config_of, typed
from gpuwaste.cli.words import require_job
from gpuwaste.core.errors import NoDataError, UsageError
from gpuwaste.core.registry import ModuleRegistry
from gpuwaste.ledger import exports

if TYPE_CHECKING:
    from gpuwaste.ledger.reports.job_types import JobDocument, RunRow
    from gpuwaste.net.hub_client import HubClient

_DAY: Final = "now-1day"
_FORMATS: Final[ModuleRegistry[Any]] = ModuleRegistry(exports, "TITLE", "lines")


@dataclass(slots=True)
class _Counted:
    """What was left out, by its reason."""

    open: int = 0
    unwritten: int = 0
    beyond: int = 0
    written: int = 0
    missing: list[str] = field(default_factory=list)

    def words(self) -> Iterator[str]:
        """Yield a line for each reason."""
        if self.open:
            yield f"{self.open} runs left out: still running, or GPU reports incomplete: export again later"
        if self.unwritten:
            yield f"{self.unwritten} runs left out: figures that the format needs are unknown, or the job runs again"
        if self.beyond:
            yield f"{self.beyond} jobs left out: too many for one report: choose a shorter time with -S and -E"
        if self.missing:
            shown = ", ".join(self.missing[:5]) + (", ..." if len(self.missing) > 5 else "")  # noqa: PLR2004
            yield f"{len(self.missing)} jobs left out (not found, or not visible to you): {shown}"


def export(options: argparse.Namespace) -> int:
    """Write the runs that the options name, one line each; what is left out is counted on stderr.

    Raises UsageError, and NoDataError where nothing is written.
    """
    if options.format not in _FORMATS:
        raise UsageError(f"export {options.format[:40]}: expected one of {', '.join(_FORMATS)}")
    chosen = _FORMATS[options.format]
    for job in options.ids:
        require_job(job)
    counted = _Counted()
    hub = hub_client(config_of(options), LONG_PATIENCE_S)
    for document, runs in _documents(hub, options, counted):
        ready = [run for run in runs if _ended(run)]
        counted.open += len(runs) - len(ready)
        found = list(chosen.lines(ready, document))
        counted.written += len(found)
        counted.unwritten += len(ready) - len(found)
        if found and counted.written == len(found):
            sys.stdout.write(getattr(chosen, "HEADER", ""))
        sys.stdout.writelines(f"{line}\n" for line in found)
    for line in counted.words():
        sys.stderr.write(f"gpuwaste: {line}\n")
    if not counted.written:
        raise NoDataError("nothing to export: try another -S, -E, -u or job")
    return 0


def _documents(
    hub: "HubClient", options: argparse.Namespace, counted: _Counted
) -> "Iterator[tuple[JobDocument, Sequence[RunRow]]]":
    """Yield each job with its runs: of the jobs that are named all runs, else those that ended in the window."""
    from gpuwaste.cli.time_options import window_of
    from gpuwaste.ledger.reports.job_types import JobDocument

    if options.ids:
        jobs, window = [(options.clusters or "", job) for job in options.ids], None
    else:
        window = window_of(options.starttime or _DAY, options.endtime)
        jobs = _jobs(hub, options, window, counted)
    for cluster, job in jobs:
        parameters: Mapping[str, str] = {"cluster": cluster} if cluster else {}
        try:
            document = typed(hub.get(f"/v1/jobs/{job}", parameters), JobDocument, printed=False)
        except NoDataError:
            counted.missing.append(job)
            continue
        yield document, [run for run in document.runs if window is None or _within(run, window)]


def _jobs(
    hub: "HubClient", options: argparse.Namespace, window: tuple[int, int], counted: _Counted
) -> list[tuple[str, str]]:
    """Return cluster and id of each job of a report; an array or a het job is one, whatever its lines are."""
    from gpuwaste.cli.commands.report import scope_of
    from gpuwaste.ledger.reports.report_types import ReportDocument

    query = scope_of(options) | {"start": window[0], "end": window[1]}
    report = typed(hub.get("/v1/report", query), ReportDocument, printed=False)
    counted.beyond = report.jobs_left_out
    found = {(job.cluster, job.printed_id.partition("_")[0].partition("+")[0]) for job in report.jobs}
    return sorted(found)


def _within(run: "RunRow", window: tuple[int, int]) -> bool:
    """Return whether a run ended in a window; one that is open counts as well, to be counted as left out."""
    started = run.start is not None and run.start < window[1]
    return started and (run.end is None or window[0] <= run.end < window[1])


def _ended(run: "RunRow") -> bool:
    """Return whether a run has ended, and nothing may still be reported of its GPUs."""
    return run.end is not None and not run.running and run.totals.pending_s == 0
