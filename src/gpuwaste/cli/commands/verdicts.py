"""List the verdicts at submission and how the jobs ended; or score them: precision, recall and calibration."""

import argparse

from gpuwaste.cli.options import add, add_config, add_formats, add_window, config_of, emit

HELP = "verdicts at sbatch, and how good they were"
EXAMPLES = (("gpuwaste verdicts --score", "How good the verdicts of each policy were."),)
_TEXT_ROWS = 40
_ROWS = 10_000


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--score", action="store_true", help="score the verdicts by policy and week (operators)")
    add(parser, "user", shown="all that you may see")
    parser.add_argument("--policy", metavar="NAME", help="verdicts of this policy only (operators)")
    add_window(parser, None, shown="now-7days, with --score now-30days")
    add_formats(parser, "share of scored warnings and rejects that were wrong")
    add_config(parser)


def run(options: argparse.Namespace) -> int:
    """Ask the hub and print its answer."""
    from gpuwaste.cli.hub_access import ask_hub
    from gpuwaste.cli.times import window_of
    from gpuwaste.core.errors import NoDataError, UsageError
    from gpuwaste.report.verdict_text import score_text, verdicts_text

    since = options.starttime or ("now-30days" if options.score else "now-7days")
    start, end = window_of(since, options.endtime)
    if options.score:
        if options.user or options.policy or options.endtime != "now":
            raise UsageError("--score covers all users and policies until now: leave out -u, --policy and -E")
        document = ask_hub(config_of(options), "/v1/verdicts/score", {"since": start})
        if not document["weeks"] and not options.form:
            raise NoDataError("no verdicts found in this time: try another -S")
        return emit(document, options, score_text, empty=not document["weeks"], wasted=wrong_share(document))
    asked = {"user": options.user, "policy": options.policy}
    query = {name: value for name, value in asked.items() if value is not None}
    limit = _ROWS if options.form else _TEXT_ROWS
    window = {"start": start, "end": end + 1, "limit": limit}
    document = ask_hub(config_of(options), "/v1/verdicts", {**query, **window})
    if not document["verdicts"] and not options.form:
        raise NoDataError("no verdicts found in this time: try another -S, -E or -u")
    return emit(document, options, verdicts_text, empty=not document["verdicts"], wasted=None)


def wrong_share(document: dict[str, list[dict[str, int]]]) -> float | None:
    """Return the share of scored warnings and rejects that were wrong; None where none has an outcome."""
    judged = sum(row["judged"] for row in document["policies"])
    return 1 - sum(row["hits"] for row in document["policies"]) / judged if judged else None
