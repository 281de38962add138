"""Make the rules wait for a running job, and print for how long; without JOB list the jobs that are kept."""

import argparse
import sys

from gpuwaste.cli.options import config_of
from gpuwaste.cli.resource_commands import resource_commands

HELP = "make rules wait for a running job (owner, coordinator, operator)"
EXAMPLES = (
    ('gpuwaste keep 4711 --for 4h --reason "waits for data"', "No rule acts on the job for four hours."),
    ("gpuwaste keep --active yes", "Jobs that are kept now."),
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("id", metavar="JOB", nargs="?", help="the job, or a task of an array: 7, 3_1")
    parser.add_argument("--for", dest="duration", metavar="DURATION", help="for how long from now: 30m, 4h")
    parser.add_argument("--reason", metavar="TEXT", help="why the job is needed, at most 500 characters; staff see it")
    resource_commands()["keeps"].arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Send the order to the hub and print the answer, or print the list."""
    from gpuwaste.core.errors import UsageError

    if options.id is None:
        if options.duration is not None or options.reason is not None:
            raise UsageError('name the job: gpuwaste keep JOB --for 4h --reason "..."')
        return resource_commands()["keeps"].run(options)
    if options.duration is None or not options.reason:
        raise UsageError(f'a keep needs a duration and a reason: gpuwaste keep {options.id} --for 4h --reason "..."')
    return _keep(options)


def _keep(options: argparse.Namespace) -> int:
    """Keep a job. Raises as the hub's client does, and UsageError."""
    from gpuwaste.act.keeps.keep_text import keep_text
    from gpuwaste.act.keeps.keep_types import KeepAnswer
    from gpuwaste.cli.hub_access import hub_client
    from gpuwaste.cli.options import print_own, typed
    from gpuwaste.cli.time_options import parse_seconds
    from gpuwaste.cli.words import require_job
    from gpuwaste.core.errors import NoDataError

    require_job(options.id)
    order = {"seconds": int(parse_seconds(options.duration)), "reason": options.reason}
    try:
        raw = hub_client(config_of(options)).post(f"/v1/jobs/{options.id}/keep", order)
    except NoDataError:
        raise NoDataError(f"job {options.id}: not found, or not visible to you") from None
    as_json = options.form is not None
    answer = typed(raw, KeepAnswer, printed=not as_json)
    print_own(answer, keep_text, as_json=as_json)
    if answer.too_late:
        sys.stderr.write("gpuwaste: an action was sent before the keep: see above\n")
        return 1
    return 0
