"""List all models of the registry; * marks the one in use, ? the one on trial."""

import argparse

from gpuwaste.cli.model_registry import add_registry, owned_registry
from gpuwaste.cli.options import config_of, print_own

HELP = "all models; * marks the one in use, ? the one on trial"
EXAMPLES = (
    ("gpuwaste model list", "Models of predictions."),
    ("gpuwaste model list --waits", "Models of waits, which gpuwaste plan uses."),
)
EXIT_NONE = 3


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_registry(parser)


def run(options: argparse.Namespace) -> int:
    """Print the models."""
    from gpuwaste.advice.renewal.model_types import ModelRow, ModelsDocument
    from gpuwaste.advice.renewal.models_text import list_text
    from gpuwaste.core.bundle_registry import BundleStatus
    from gpuwaste.core.errors import NoDataError

    registry = owned_registry(options, config_of(options))
    entries = registry.list()
    if not entries and not options.json:
        raise NoDataError(f"{registry.models_dir}: no model in this directory: train one with {registry.command}")
    models = [
        ModelRow(
            **{name: getattr(e, name) for name in BundleStatus.__struct_fields__},
            origin=e.manifest.origin if e.manifest else "",
            created_utc=e.manifest.created_utc if e.manifest else None,
            rows=e.manifest.rows if e.manifest else None,
        )
        for e in entries
    ]
    print_own(ModelsDocument(models=models), list_text, as_json=options.json)
    return 0 if entries else EXIT_NONE
