"""Report one job, array or het job: each run with its GPUs, CPU and memory efficiency, and what to change."""

import argparse
import time
from typing import TYPE_CHECKING, Any, Final

from gpuwaste.cli.options import add, add_config, add_formats, config_of, emit, typed, wasted_share
from gpuwaste.cli.words import require_job

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpuwaste.ledger.reports.job_types import JobDocument

    Answer = tuple[dict[str, Any], JobDocument]

HELP = "GPU use and waste of one job"
EXAMPLES = (
    ("gpuwaste job 4711", "One job, GPU by GPU."),
    ("gpuwaste job 3_1 --json", "A task of an array, as JSON."),
)
_POLL_S: Final = 1.0


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("id", metavar="ID", help="job as Slurm prints it: 7, 3_1 (array task), 4+1 (het component)")
    add(parser, "clusters", shown="every cluster with such a job")
    add(parser, "starttime", "only the run that started at this time")
    parser.add_argument("--ended-since", metavar="TIME", help="only the last run, unless it ended before this time")
    parser.add_argument(
        "--as", dest="owner", metavar="NAME", help="show what this user may see as the owner (operators)"
    )
    parser.add_argument(
        "--wait", metavar="DURATION", help="wait for the figures of the ended job, at most 120s, 5m or 1h"
    )
    parser.add_argument("--energy", action="store_true", help="print energy and cost in detail")
    add_formats(parser)
    add_config(parser)


def run(options: argparse.Namespace) -> int:
    """Query the hub and print its answer."""
    from functools import partial

    from gpuwaste.cli.hub_access import ask_hub
    from gpuwaste.cli.time_options import parse_seconds
    from gpuwaste.core.errors import NoDataError
    from gpuwaste.ledger.reports.job_text import job_text
    from gpuwaste.ledger.reports.job_types import JobDocument

    require_job(options.id)
    config, wanted = config_of(options), _parameters(options)

    def asked() -> "Answer":
        raw = ask_hub(config, f"/v1/jobs/{options.id}", wanted)
        return raw, typed(raw, JobDocument, printed=options.form is None)

    try:
        raw, document = _awaited(asked, parse_seconds(options.wait)) if options.wait else asked()
    except NoDataError:
        raise NoDataError(f"job {options.id}: not found, or not visible to you") from None
    wasted = wasted_share(*(run.totals for run in document.runs if run.start is not None))
    return emit(raw, document, options, partial(job_text, energy=options.energy), empty=False, wasted=wasted)


def _parameters(options: argparse.Namespace) -> dict[str, str | int]:
    """Return the parameters that narrow the query. Raises UsageError."""
    from gpuwaste.cli.time_options import parse_time

    names = {"owner": options.owner, "cluster": options.clusters}
    times = {"start": options.starttime, "ended_since": options.ended_since}
    return {
        **{name: value for name, value in names.items() if value},
        **{name: parse_time(value) for name, value in times.items() if value},
    }


def _awaited(ask: "Callable[[], Answer]", wait_s: float) -> "Answer":
    """Return the document once all of the job has ended and was reported, or its state after `wait_s`."""
    from gpuwaste.core.errors import NoDataError

    until = time.monotonic() + wait_s
    while True:
        late = time.monotonic() >= until
        try:
            answer = ask()
            if late or _reported(answer[1]):
                return answer
        except NoDataError:
            if late:
                raise
        time.sleep(min(_POLL_S, max(0.0, until - time.monotonic())))


def _reported(document: "JobDocument") -> bool:
    """Return whether every run has ended, and its GPUs were reported to their end."""
    return all(
        run.end is not None and all(device.final for device in (*run.devices, *run.shared)) for run in document.runs
    )
