"""List the verdicts at submission and how the jobs ended; or score them: precision, recall and calibration."""

import argparse
from typing import TYPE_CHECKING

from gpuwaste.cli.options import add, add_config, add_formats, add_window, config_of, emit, typed

if TYPE_CHECKING:
    from gpuwaste.advice.verdicts.verdict_score import ScoreDocument

HELP = "verdicts at sbatch, and how good they were"
EXAMPLES = (("gpuwaste policy verdicts --score", "How good the verdicts of each policy were."),)
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
    """Query the hub and print its answer."""
    from gpuwaste.advice.verdicts.verdict_score import ScoreDocument
    from gpuwaste.advice.verdicts.verdict_text import score_text, verdicts_text
    from gpuwaste.advice.verdicts.verdict_types import VerdictsDocument
    from gpuwaste.cli.hub_access import ask_hub
    from gpuwaste.cli.time_options import window_of
    from gpuwaste.core.errors import NoDataError, UsageError

    since = options.starttime or ("now-30days" if options.score else "now-7days")
    start, end = window_of(since, options.endtime)
    if options.score:
        if options.user or options.policy or options.endtime != "now":
            raise UsageError("--score covers all users and policies until now: leave out -u, --policy and -E")
        raw = ask_hub(config_of(options), "/v1/verdicts/score", {"since": start})
        score = typed(raw, ScoreDocument, printed=options.form is None)
        if not score.weeks and not options.form:
            raise NoDataError("no verdicts found in this time: try another -S")
        return emit(raw, score, options, score_text, empty=not score.weeks, wasted=wrong_share(score))
    asked = {"user": options.user, "policy": options.policy}
    query = {name: value for name, value in asked.items() if value is not None}
    limit = _ROWS if options.form else _TEXT_ROWS
    window = {"start": start, "end": end + 1, "limit": limit}
    raw = ask_hub(config_of(options), "/v1/verdicts", {**query, **window})
    document = typed(raw, VerdictsDocument, printed=options.form is None)
    if not document.verdicts and not options.form:
        raise NoDataError("no verdicts found in this time: try another -S, -E or -u")
    return emit(raw, document, options, verdicts_text, empty=not document.verdicts, wasted=None)


def wrong_share(score: "ScoreDocument") -> float | None:
    """Return the share of scored warnings and rejects that were wrong; None where none has an outcome."""
    judged = sum(row.judged for row in score.policies)
    return 1 - sum(row.hits for row in score.policies) / judged if judged else None
