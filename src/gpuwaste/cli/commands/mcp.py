"""Serve the hub's documents to a language model as tools (Model Context Protocol, standard input and output).

An MCP client starts this command as its user: the tools report, job, now, view, predict and plan have the user's rights
and change nothing.
"""

import argparse
import sys

from gpuwaste.cli.options import add_config, config_of

HELP = "reports and predictions as tools for a language model (MCP)"
EXAMPLES = (("gpuwaste mcp", "What an MCP client starts; it ends with its standard input."),)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_config(parser)


def run(options: argparse.Namespace) -> int:
    """Serve until standard input ends."""
    from gpuwaste.core.errors import GpuwasteError, UsageError

    config = config_of(options)
    try:
        from gpuwaste.cli.mcp_server import serve
    except ImportError as error:
        raise GpuwasteError(
            f"mcp: the MCP SDK 2.3 or later cannot be loaded ({error}): pip install 'gpuwaste[mcp]'"
        ) from error
    if sys.stdin.isatty():
        raise UsageError("mcp: standard input is a terminal: let an MCP client start this command")
    serve(config)
    return 0
