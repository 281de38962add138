"""The argument that names a rule."""

import argparse


def add_rule(parser: argparse.ArgumentParser) -> None:
    """Add RULE."""
    parser.add_argument("rule", metavar="RULE", help="name of a rule in hub.rules_dir, or a file ending in .toml")
