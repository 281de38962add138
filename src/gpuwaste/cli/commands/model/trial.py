"""Compare the model on trial with the one in use; or put a model on trial, or end the trial.

A model on trial is scored in shadow: its predictions are compared with what happened, and nobody sees them.
"""

import argparse
from typing import TYPE_CHECKING

from gpuwaste.cli.model_registry import add_registry, owned_registry, print_change
from gpuwaste.cli.options import config_of, print_own

if TYPE_CHECKING:
    from gpuwaste.core.config import Config

HELP = "compare the model on trial with the one in use; put a model on trial, end the trial"
EXAMPLES = (
    ("gpuwaste model trial", "How the model on trial compares, from the hub."),
    ("gpuwaste model trial night-2026-11-01", "Check this model and put it on trial."),
    ("gpuwaste model trial --end", "End the trial; the model in use stays in use."),
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    what = parser.add_mutually_exclusive_group()
    what.add_argument("name", metavar="NAME", nargs="?", help="model to put on trial, as list prints it")
    what.add_argument("--end", action="store_true", help="end the trial")
    add_registry(parser, of_others=False)


def run(options: argparse.Namespace) -> int:
    """Do it and print the result."""
    config = config_of(options)
    if not options.name and not options.end:
        return _compare(options, config)
    registry = owned_registry(options, config)
    if options.end:
        return print_change({"withdrawn": registry.withdraw() or "no model on trial"}, options)
    return print_change({"challenger": options.name, "hash": registry.challenge(options.name).hash}, options)


def _compare(options: argparse.Namespace, config: "Config") -> int:
    from gpuwaste.advice.renewal.models_text import trial_text
    from gpuwaste.advice.renewal.trial_types import TrialDocument
    from gpuwaste.cli.hub_access import hub_client
    from gpuwaste.core.codec import convert
    from gpuwaste.net.hub_client import TRIAL_PATH

    document = convert(hub_client(config).get(TRIAL_PATH), TrialDocument, "the hub's trial of models")
    print_own(document, trial_text, as_json=options.json)
    return 0
