"""Train models on the job history: writes a model with its card into the registry.

With --waits the model of waits, which `gpuwaste plan` uses; with --times the models of step times, which
`gpuwaste estimate` uses, from the directories of `gpuwaste model calibrate`.
"""

import argparse

from gpuwaste.cli.job_sources import add_sources
from gpuwaste.cli.options import add, add_as_job, add_config, add_learning, config_of
from gpuwaste.cli.words import count_word, path_word

HELP = "train a model on the job history"
EXAMPLES = (
    ("gpuwaste model train -S now-365days", "Train on a year of this site."),
    ("gpuwaste model train --challenge --time-budget 600", "What the weekly timer runs: the new model goes on trial."),
    ("gpuwaste model train --challenge --as-job --partition cpu", "The same as a job of this Slurm cluster."),
    ("gpuwaste model train --waits -S now-90days", "Train the model of waits that gpuwaste plan uses."),
    ("gpuwaste model train --times calibration-h100 calibration-a100-40gb", "Step times of two GPU types."),
)
_TRIALS = 5


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_sources(parser)
    add(parser, "starttime", "jobs submitted since then", shown="all jobs")
    add(parser, "targets", shown="all")
    add_learning(parser, trials=_TRIALS)
    parser.add_argument(
        "--time-budget",
        type=count_word,
        metavar="SECONDS",
        help="start no new trial after this time; the result is not reproducible",
    )
    other = parser.add_mutually_exclusive_group()
    other.add_argument("--waits", action="store_true", help="train the model of waits that gpuwaste plan uses")
    other.add_argument("--times", action="store_true", help="train the models of step times, on the calibrations DIR")
    parser.add_argument(
        "directories",
        nargs="*",
        type=path_word,
        metavar="DIR",
        help="with --times: directories that gpuwaste model calibrate wrote",
    )
    parser.add_argument("--name", default="", metavar="NAME", help="with --times: its name (default: times-TIME)")
    add(parser, "models-dir", shown="common.models_dir")
    use = parser.add_mutually_exclusive_group()
    use.add_argument("--promote", action="store_true", help="use the model at once (always done for the first one)")
    use.add_argument(
        "--challenge",
        action="store_true",
        help="put the model on trial, without using it; trains nothing while a new one is on trial",
    )
    add_as_job(parser, "models-dir must be shared with the nodes")
    add(parser, "json", "the model's card")
    add_config(parser)


def run(options: argparse.Namespace) -> int:
    """Train, and print the result."""
    from gpuwaste.core.errors import UsageError

    if options.as_job:
        from gpuwaste.cli.train_evaluate import train_as_job

        return train_as_job(options, config_of(options))
    if options.times != bool(options.directories):
        raise UsageError("model train: --times and directories of gpuwaste model calibrate belong together")
    if options.times:
        from gpuwaste.cli.step_time_models import train_times_and_tell

        return train_times_and_tell(options, config_of(options))
    if options.waits:
        from gpuwaste.cli.train_evaluate import train_waits_and_tell

        return train_waits_and_tell(options, config_of(options))
    from gpuwaste.cli.train_evaluate import train_and_tell

    return train_and_tell(options, config_of(options))
