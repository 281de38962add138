"""Show what a model contains and what it was trained on."""

import argparse

from gpuwaste.cli.model_registry import add_registry, bundle_named, owned_registry
from gpuwaste.cli.options import config_of, print_own

HELP = "what a model contains and what it was trained on"
EXAMPLES = (
    ("gpuwaste model show", "The model in use."),
    ("gpuwaste model show --times public", "The step times that are shipped: who measured what, and the errors."),
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("name", metavar="NAME", nargs="?", help="model, as list prints it (default: the one in use)")
    add_registry(parser)


def run(options: argparse.Namespace) -> int:
    """Print the model."""
    from gpuwaste.advice.renewal.model_types import ModelDocument
    from gpuwaste.advice.renewal.models_text import show_text
    from gpuwaste.ledger.ledger import LedgerSettings

    config = config_of(options)
    if options.times:
        from gpuwaste.cli.step_time_models import show_times

        return show_times(owned_registry(options, config), options.name, as_json=options.json)
    bundle = bundle_named(owned_registry(options, config), options.name)
    note = bundle.rule_note(LedgerSettings.from_config(config.hub).under_use)
    document = ModelDocument(hash=bundle.hash, note=note, manifest=bundle.manifest)
    print_own(document, show_text, as_json=options.json)
    return 0
