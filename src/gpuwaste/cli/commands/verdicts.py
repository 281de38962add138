"""List what was said at submission, with how the jobs ended; or score it: precision, recall and calibration."""

import argparse
from datetime import datetime

from gpuwaste.cli.options import add_config, add_formats, config_of, emit

HELP = "what was said at sbatch, and how good it was"
EXAMPLES = (("gpuwaste verdicts --score", "How good the policies' words were."),)
_TEXT_ROWS = 40
_ROWS = 10_000


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--score", action="store_true", help="how good it was, by policy and week (operators)")
    parser.add_argument("-u", "--user", metavar="U", help="of this user (default: all that you may see)")
    parser.add_argument("--policy", metavar="P", help="of this policy (operators)")
    parser.add_argument("-S", "--starttime", metavar="TIME", help="as sacct (default now-7days; of a score now-30days)")
    parser.add_argument("-E", "--endtime", default="now", metavar="TIME", help="as sacct (default now)")
    add_formats(parser, "more than PCT %% of the scored warnings and rejects were wrong")
    add_config(parser)


def run(options: argparse.Namespace) -> int:
    """Ask the hub and print its answer."""
    from gpuwaste.cli.hub_access import ask_hub
    from gpuwaste.cli.times import parse_time
    from gpuwaste.core.errors import NoDataError, UsageError
    from gpuwaste.report.verdict_text import score_text, verdicts_text

    now = datetime.now()  # noqa: DTZ005 the caller's own zone is meant
    start = parse_time(options.starttime or ("now-30days" if options.score else "now-7days"), now)
    if options.score:
        if options.user or options.policy or options.endtime != "now":
            raise UsageError("--score is of everybody, by policy, until now: leave out --user, --policy and -E")
        document = ask_hub(config_of(options), "/v1/verdicts/score", {"since": start})
        if not document["weeks"] and not options.form:
            raise NoDataError("no verdicts in that time: another -S?")
        return emit(document, options, score_text, empty=not document["weeks"], wasted=wrong_share(document))
    end = parse_time(options.endtime, now)
    if start >= end:
        raise UsageError(f"-S {options.starttime} is not before -E {options.endtime}")
    asked = {"user": options.user, "policy": options.policy}
    query = {name: value for name, value in asked.items() if value is not None}
    limit = _ROWS if options.form else _TEXT_ROWS
    window = {"start": start, "end": end + 1, "limit": limit}
    document = ask_hub(config_of(options), "/v1/verdicts", {**query, **window})
    if not document["verdicts"] and not options.form:
        raise NoDataError("nothing was said in that time: another -S, -E or --user?")
    return emit(document, options, verdicts_text, empty=not document["verdicts"], wasted=None)


def wrong_share(document: dict[str, list[dict[str, int]]]) -> float | None:
    """Return the share of the scored warnings and rejects that were wrong; None where none has an outcome."""
    judged = sum(row["judged"] for row in document["policies"])
    return 1 - sum(row["hits"] for row in document["policies"]) / judged if judged else None
