"""Check a model's directory and copy it into the registry, without using it."""

import argparse

from gpuwaste.cli.model_registry import add_registry, print_change, registry_of
from gpuwaste.cli.options import config_of
from gpuwaste.cli.words import path_word

HELP = "check a model's directory and copy it into the registry, without using it"
EXAMPLES = (("gpuwaste model add ./night-2026-11-01", "A model that was trained on another host."),)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("directory", metavar="DIR", type=path_word, help="directory with the model's manifest.json")
    add_registry(parser)


def run(options: argparse.Namespace) -> int:
    """Copy it and print its name. The files are read as the directory's owner."""
    from gpuwaste.core.owner import as_owner, become_owner

    registry = registry_of(options, config_of(options))
    with as_owner(options.directory):
        files = registry.files(options.directory)
    become_owner(registry.models_dir)
    return print_change({"added": registry.add(options.directory, files)}, options)
