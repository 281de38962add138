"""Train the models of step times on calibrations: writes a bundle with its card into the registry."""

import argparse

from gpuwaste.cli.options import add, add_config, config_of
from gpuwaste.cli.words import path_word

HELP = "train the models of step times on calibrations"
EXAMPLES = (
    ("gpuwaste estimate train calibration-h100 calibration-a100-40gb", "One bundle with two GPU types."),
    ("gpuwaste model rollback --times", "Use the previous bundle again."),
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "directories", nargs="+", type=path_word, metavar="DIR", help="directories of gpuwaste estimate calibrate"
    )
    parser.add_argument("--name", default="", metavar="NAME", help="name of the bundle (default: times-TIME)")
    parser.add_argument("--promote", action="store_true", help="use the bundle at once (always done for the first one)")
    add(parser, "seed", "for the folds", default=1)
    add(parser, "models-dir", shown="common.models_dir")
    add(parser, "json", "the bundle's card")
    add_config(parser)


def run(options: argparse.Namespace) -> int:
    """Train, and print the result."""
    from gpuwaste.cli.step_time_models import train_times_and_tell

    return train_times_and_tell(options, config_of(options))
