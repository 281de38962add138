"""The gpuwaste command: finds its commands by file, imports only the one that runs, and turns errors into one line."""

import argparse
import errno
import os
import sys
from collections.abc import Sequence
from typing import Any, Final, NoReturn

from gpuwaste.cli import commands
from gpuwaste.cli.interrupts import EXIT_INTERRUPTED, Interrupted, drop, interruptible, tell
from gpuwaste.cli.programs import missing_words
from gpuwaste.cli.resource_commands import resource_commands
from gpuwaste.cli.words import cut, text_word
from gpuwaste.core.errors import GpuwasteError, WireError
from gpuwaste.core.registry import ModuleRegistry

EXIT_USAGE: Final = 2
EXIT_PIPE: Final = 141
DEBUG: Final = "GPUWASTE_DEBUG"
_COMMANDS: Final[ModuleRegistry[Any]] = ModuleRegistry(commands, "HELP", "EXAMPLES", "arguments", "run")
_UNWRITABLE: Final = frozenset({errno.ENOSPC, errno.EIO, errno.EPIPE, errno.EDQUOT, errno.EFBIG, errno.EBADF})


class _Formatter(argparse.HelpFormatter):
    """Wraps help only between words: argparse's own breaks an option, a path or a file's name at a hyphen.

    It reads the terminal's width itself: argparse imports shutil and its archive formats for that.
    """

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=_columns() - 2)

    def _split_lines(self, text: str, width: int) -> list[str]:
        import textwrap

        return textwrap.wrap(" ".join(text.split()), width, break_on_hyphens=False, break_long_words=False)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return "\n".join(indent + line for line in self._split_lines(text, width - len(indent)))


class _Parser(argparse.ArgumentParser):
    """Accepts only text that can be sent and printed, and reports wrong usage as one line."""

    def __init__(self, **options: Any) -> None:
        super().__init__(formatter_class=_Formatter, **options)
        self.register("type", None, text_word)

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        """Exit after the output is written. Raises OSError where it cannot be."""
        if message:
            tell(message)
        sys.stdout.flush()
        sys.exit(status)

    def _print_message(self, message: str, file: Any = None) -> None:
        """Print help; argparse's own method hides errors of writing."""
        if message:
            (file or sys.stderr).write(message)

    def error(self, message: str) -> NoReturn:
        """Print the line and exit with 2."""
        from gpuwaste.show.terminal_cells import one_line

        self.exit(EXIT_USAGE, f"gpuwaste: {cut(one_line(message))}: see {self.prog} --help\n")


class _Version(argparse.Action):
    """Prints what the command `version` prints."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        """Print it and exit."""
        parser.exit(load_command("version").run(argparse.Namespace()))


def command_names() -> list[str]:
    """Return the commands: the files of gpuwaste.cli.commands, and the resources that have one."""
    return sorted({*_COMMANDS, *resource_commands()})


def load_command(name: str) -> Any:
    """Return one command: a module with HELP, EXAMPLES, arguments(parser) and run(options) -> exit code."""
    return _COMMANDS[name] if name in _COMMANDS else resource_commands()[name]


def build_parser(only: str | None = None, *, names_only: bool = False) -> argparse.ArgumentParser:
    """Return the parser of every command, of only one, or one that knows only the names of the commands."""
    parser = _Parser(prog="gpuwaste", description="Find out which jobs waste GPUs, how much and why.")
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=_Parser)
    for name in command_names() if only is None else [only]:
        command = load_command(name)
        sub = subparsers.add_parser(name, help=command.HELP, description=command.__doc__)
        if not names_only:
            command.arguments(sub)
            sub.set_defaults(run=command.run)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0 ok, 1 error, 2 usage, 3 no data, 4 over the threshold.

    Ctrl-C is one line and exit code 130. Without `argv` the process does nothing else: a Ctrl-C after it prints no
    traceback.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    _forgive_streams()
    with interruptible(last=argv is None) as interrupts:
        try:
            code = _run(words)
            sys.stdout.flush()
        except KeyboardInterrupt as stop:
            code = _interrupted(stop)
        except Exception as error:  # noqa: BLE001 no error of a command is a traceback
            code = _interrupted(error) if interrupts.seen else _failed(error, words)
        return code


def _run(words: list[str]) -> int:
    known = words[0] if words and words[0] in command_names() else None
    names_only = known is None and words[:1] != ["--"]
    options = build_parser(known, names_only=names_only).parse_args(words)
    options.command_line = words  # for a command that submits itself as a job
    code: int = options.run(options)
    return code


def _interrupted(stop: BaseException) -> int:
    """Print that Ctrl-C ended the command, and what is kept of its work; returns the exit code."""
    kept = f": {stop}" if isinstance(stop, Interrupted) else ""
    return _say(f"interrupted{kept}", EXIT_INTERRUPTED)


def _failed(error: Exception, words: Sequence[str]) -> int:
    """Print an error as one line; returns the exit code."""
    if isinstance(error, WireError):
        from gpuwaste.cli.without_hub import without_hub

        return _say(f"{error}{without_hub(error, words)}", error.exit_code)
    if isinstance(error, GpuwasteError):
        return _say(str(error), error.exit_code)
    if isinstance(error, OSError) and (code := _unwritten(error)):
        return code
    if os.environ.get(DEBUG):
        raise error
    if isinstance(error, ImportError) and (missing := missing_words(error)):
        return _say(missing, 1)
    return _say(f"{type(error).__name__}: {error}: a bug in gpuwaste; {DEBUG}=1 shows the traceback", 1)


def _unwritten(error: OSError) -> int:
    """Return the exit code where writing the output failed, 0 for another error; the rest of the output is dropped."""
    if error.errno not in _UNWRITABLE or error.filename is not None:
        return 0
    drop(sys.stdout)
    if isinstance(error, BrokenPipeError):
        return EXIT_PIPE
    return _say(f"the output cannot be written: {error.strerror}: it is incomplete", 1)


def _say(message: str, code: int) -> int:
    from gpuwaste.show.terminal_cells import one_line

    tell(f"gpuwaste: {cut(one_line(message))}\n")
    return code


def _columns() -> int:
    """Return the width of the terminal: COLUMNS, else the terminal's own, else 80."""
    columns = os.environ.get("COLUMNS", "")
    try:
        return int(columns) if columns.isdecimal() and int(columns) else os.get_terminal_size().columns or 80
    except OSError:
        return 80


def _forgive_streams() -> None:
    """Make streams escape what their encoding lacks, and print nothing where they are closed."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123, SIM115 for the process's life
        stream = getattr(sys, name)
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
