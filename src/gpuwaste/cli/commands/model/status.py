"""Check the model in use for drift: features, calibration, coverage. Exit code 4 on drift."""

import argparse

from gpuwaste.cli.job_sources import add_sources
from gpuwaste.cli.model_registry import add_registry, bundle_named, registry_of
from gpuwaste.cli.options import config_of, print_own

HELP = "check the model in use for drift; exit code 4 on drift"
EXAMPLES = (("gpuwaste model status", "Drift of the model in use, on the hub's job history."),)
EXIT_DRIFT = 4


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_registry(parser, of_others=False)
    add_sources(parser)


def run(options: argparse.Namespace) -> int:
    """Print the figures of the model on the job history."""
    from msgspec.structs import replace

    from gpuwaste.advice.predict.vectors import replay_vectors
    from gpuwaste.advice.renewal.model_status import drifted, status_document
    from gpuwaste.advice.renewal.models_text import status_text
    from gpuwaste.cli.job_sources import source_of
    from gpuwaste.cli.programs import load_program
    from gpuwaste.core.owner import as_owner, become_owner

    config = config_of(options)
    registry = registry_of(options, config)
    with as_owner(registry.models_dir):
        if registry.champion() is None:
            bundle_named(registry, None)  # no model: no need to read a history
    load_program("gpuwaste.models.job_source", "predict", "this host")
    found = source_of(options, config)
    become_owner(registry.models_dir)
    document = status_document(bundle_named(registry, None), found.table, replay_vectors(found.table).vectors)
    print_own(replace(document, source=found.text), status_text, as_json=options.json)
    return EXIT_DRIFT if drifted(document) else 0
