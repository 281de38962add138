"""Tell what to expect of a job before it is submitted: failure, run time, memory, GPUs, and what to change.

What follows FILE are the script's own arguments. What follows -- is read as sbatch would read it:
gpuwaste predict -- --time=10 job.sbatch
"""

import argparse
import re
from pathlib import Path

from gpuwaste.cli.options import add_config, add_formats, config_of, emit

HELP = "what to expect of a job script before it is submitted"
EXAMPLES = (
    ("gpuwaste predict train.sh", "What to expect of a script, before sbatch."),
    ("gpuwaste predict --job 4711", "Of a job that waits or runs."),
)
_ID = re.compile(r"\d{1,10}(?:[_+]\d{1,10})?")


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "words", nargs="*", type=str, metavar="FILE", help="batch script, - for stdin; with --json - a request"
    )
    parser.add_argument("--job", metavar="ID", help="a job that was submitted, or runs: 7, 3_1, 4+1")
    parser.add_argument("--model", type=Path, metavar="DIR", help="use this bundle here, without asking the hub")
    parser.add_argument(
        "--history", type=Path, metavar="FILE", help="with --model: a snapshot of the history (the bundle's)"
    )
    add_formats(parser, "a failure is more likely than PCT %%")
    add_config(parser)


def run(options: argparse.Namespace) -> int:
    """Read the request, ask for its prediction, and print it."""
    from gpuwaste.cli import asking
    from gpuwaste.core.errors import UsageError
    from gpuwaste.report.predict_text import predict_text

    if bool(options.words) == bool(options.job):
        raise UsageError("predict: say a batch script, or --job ID")
    if options.job and not _ID.fullmatch(options.job):
        raise UsageError(f"job {options.job[:40]!r}: expected 7, 3_1 or 4+1")
    if options.history and not options.model:
        raise UsageError("--history goes with --model: the hub has a history of its own")
    config = config_of(options)
    if options.job:
        asked = asking.of_job(config, options.job, here=options.model is not None)
    else:
        asked = asking.of_words(config, options.words, as_json=options.form == "json")
    predictions = asking.answer(config, asked, options.model, options.history)
    risks = [t["p"] for p in predictions for t in p["targets"] if t["target"] == "failure" and t["p"] is not None]
    document = {"document": "predict", "recorded": False, "predictions": predictions, "notes": list(asked.notes)}
    return emit(document, options, predict_text, empty=False, wasted=max(risks, default=None))
