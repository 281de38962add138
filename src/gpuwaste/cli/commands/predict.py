"""Predict a job before it is submitted: failure, run time, memory, GPUs, and what to change.

Words after FILE are arguments of the script. Words after -- are read as sbatch reads them:
gpuwaste predict -- --time=10 job.sbatch
"""

import argparse

from gpuwaste.cli.options import add, add_config, add_formats, config_of, emit_own
from gpuwaste.cli.words import path_word, require_job

HELP = "predict failure, run time, memory and GPUs of a job before sbatch"
EXAMPLES = (
    ("gpuwaste predict train.sh", "Predict a batch script, before sbatch."),
    ("gpuwaste predict -j 4711", "Predict a job in the queue, or one that runs."),
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "words",
        nargs="*",
        type=str,
        metavar="FILE",
        help="batch script, - for stdin; with --json, - may be a request in JSON",
    )
    add(parser, "jobs")
    parser.add_argument(
        "--model", type=path_word, metavar="DIR", help="use this model on this host instead of the hub's"
    )
    parser.add_argument(
        "--history",
        type=path_word,
        metavar="FILE",
        help="with --model: snapshot of the job history (default: the model's)",
    )
    add_formats(parser, "probability of failure")
    add_config(parser)


def run(options: argparse.Namespace) -> int:
    """Read the request, request its prediction, and print it."""
    from gpuwaste.advice.predict.predict_text import predict_text
    from gpuwaste.advice.predict.prediction_types import PredictionsDocument
    from gpuwaste.cli import asking
    from gpuwaste.cli.own_program import with_programs
    from gpuwaste.core.errors import UsageError

    if bool(options.words) == bool(options.jobs):
        raise UsageError("predict: give a batch script or -j ID")
    if options.history and not options.model:
        raise UsageError("--history without --model: the hub uses its own job history")
    config = config_of(options)
    if options.jobs:
        require_job(options.jobs)
        asked = asking.of_job(config, options.jobs, here=options.model is not None)
    else:
        asked = asking.of_words(config, options.words, as_json=options.form == "json")
    predictions = asking.answer(config, asked, options.model, options.history)
    predictions, said = with_programs(config, asked, predictions)
    risks = [t.p for found in predictions for t in found.targets if t.target == "failure" and t.p is not None]
    document = PredictionsDocument(predictions=predictions, notes=[*asked.notes, *said])
    return emit_own(document, options, predict_text, empty=False, wasted=max(risks, default=None))
