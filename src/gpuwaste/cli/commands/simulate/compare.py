"""Print what differs between two results that `simulate run --save` or `simulate what-if --save` kept."""

import argparse

from gpuwaste.cli.options import add, add_config, config_of

HELP = "what differs between two saved results"
EXAMPLES = (
    ("gpuwaste simulate compare 3f2a9c81d0b4 77ab01c2e9f4", "Two results, the first run of each."),
    ("gpuwaste simulate compare 3f2a9c81d0b4:easy 3f2a9c81d0b4:gpus:easy", "Two runs of one result."),
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    for name in ("before", "after"):
        parser.add_argument(name, metavar=name.upper(), help="saved result: ID, or ID:RUN such as ID:gpus:easy")
    add(parser, "json")
    add_config(parser)


def run(options: argparse.Namespace) -> int:
    """Print the differences."""
    from gpuwaste.cli.simulate_run import compare_and_tell

    return compare_and_tell(options, config_of(options))
