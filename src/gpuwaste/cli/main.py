"""The gpuwaste command: finds its commands by file, imports only the one that runs, and turns errors into one line."""

import argparse
import importlib
import os
import pkgutil
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Final, NoReturn, TextIO

from gpuwaste.cli import commands
from gpuwaste.cli.words import cut, path_word, text_word
from gpuwaste.core.errors import GpuwasteError

EXIT_USAGE: Final = 2
EXIT_INTERRUPTED: Final = 130
EXIT_PIPE: Final = 141
DEBUG: Final = "GPUWASTE_DEBUG"


class _Formatter(argparse.HelpFormatter):
    """Wraps help between words alone: argparse's own breaks an option, a path or a file's name at a hyphen."""

    def _split_lines(self, text: str, width: int) -> list[str]:
        return textwrap.wrap(" ".join(text.split()), width, break_on_hyphens=False, break_long_words=False)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return textwrap.fill(
            " ".join(text.split()),
            width,
            initial_indent=indent,
            subsequent_indent=indent,
            break_on_hyphens=False,
            break_long_words=False,
        )


class _Parser(argparse.ArgumentParser):
    """Takes text that can be sent and printed, and reports wrong usage as one line."""

    def __init__(self, **options: Any) -> None:
        super().__init__(formatter_class=_Formatter, **options)
        self.register("type", None, text_word)
        self.register("type", Path, path_word)

    def error(self, message: str) -> NoReturn:
        """Print the line and exit with 2."""
        from gpuwaste.report.cells import one_line

        self.exit(EXIT_USAGE, f"gpuwaste: {cut(one_line(message))}: see {self.prog} --help\n")


class _Version(argparse.Action):
    """Prints what the command `version` prints."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        """Print it and exit."""
        parser.exit(load_command("version").run(argparse.Namespace()))


def command_names() -> list[str]:
    """Return the commands: the files of gpuwaste.cli.commands."""
    return sorted(module.name for module in pkgutil.iter_modules(commands.__path__) if module.name[0] != "_")


def load_command(name: str) -> ModuleType:
    """Import one command: a module with HELP, EXAMPLES, arguments(parser) and run(options) -> exit code."""
    return importlib.import_module(f"{commands.__name__}.{name}")


def build_parser(only: str | None = None) -> argparse.ArgumentParser:
    """Return the parser of every command, or of one alone, which spares the imports of the others."""
    parser = _Parser(prog="gpuwaste", description="Tells which job wasted which GPU, how much and why.")
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=_Parser)
    for name in command_names() if only is None else [only]:
        command = load_command(name)
        sub = subparsers.add_parser(name, help=command.HELP, description=command.__doc__)
        command.arguments(sub)
        sub.set_defaults(run=command.run)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0 ok, 1 error, 2 usage, 3 no data, 4 over the threshold."""
    words = list(sys.argv[1:] if argv is None else argv)
    for stream in (sys.stdout, sys.stderr):
        _forgive(stream)
    try:
        known = words[0] if words and words[0] in command_names() else None
        options = build_parser(known).parse_args(words)
        code: int = options.run(options)
        sys.stdout.flush()
    except GpuwasteError as error:
        return _say(str(error), error.exit_code)
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_PIPE
    except Exception as error:
        if os.environ.get(DEBUG):
            raise
        return _say(f"{type(error).__name__}: {error}: a defect of gpuwaste; {DEBUG}=1 shows where", 1)
    return code


def _say(message: str, code: int) -> int:
    from gpuwaste.report.cells import one_line

    sys.stderr.write(f"gpuwaste: {cut(one_line(message))}\n")
    return code


def _forgive(stream: TextIO) -> None:
    """Let a stream print what its encoding lacks as an escape."""
    if hasattr(stream, "reconfigure"):
        stream.reconfigure(errors="backslashreplace")
