"""The gpuwaste command: finds its commands by file, imports only the one that runs, and turns errors into one line."""

import argparse
import errno
import os
import sys
from collections.abc import Sequence
from typing import Any, Final, NoReturn

from gpuwaste.cli import commands
from gpuwaste.cli.action_files import ActionGroup
from gpuwaste.cli.help_text import HelpFormatter, describe, meant
from gpuwaste.cli.interrupts import EXIT_INTERRUPTED, Interrupted, drop, interruptible, tell
from gpuwaste.cli.old_names import new_name
from gpuwaste.cli.programs import missing_words
from gpuwaste.cli.resource_commands import resource_commands
from gpuwaste.cli.terminal_width import terminal_columns
from gpuwaste.cli.words import cut, text_word
from gpuwaste.core.errors import GpuwasteError, WireError
from gpuwaste.core.registry import ModuleRegistry

EXIT_USAGE: Final = 2
EXIT_PIPE: Final = 141
DEBUG: Final = "GPUWASTE_DEBUG"
PROGRAM: Final = "gpuwaste"
ABOUT: Final = "gpuwaste shows which jobs wasted GPUs, how much, and why."
_STARTS: Final = (
    ("gpuwaste report", "your GPU use of the last seven days, and what to change"),
    ("gpuwaste job 4711", "one job, GPU by GPU"),
    ("gpuwaste help report", "options and examples of a command"),
)
_START: Final = 23
_HANG: Final = " " * 6
_COMMANDS: Final[ModuleRegistry[Any]] = ModuleRegistry(commands, "HELP", "EXAMPLES", packages=True)
_UNWRITABLE: Final = frozenset({errno.ENOSPC, errno.EIO, errno.EPIPE, errno.EDQUOT, errno.EFBIG, errno.EBADF})


class _Parser(argparse.ArgumentParser):
    """Accepts only text that can be sent and printed, and reports wrong usage as one line."""

    def __init__(self, **options: Any) -> None:
        super().__init__(formatter_class=HelpFormatter, **options)
        self.register("type", None, text_word)
        self.set_defaults(parser=self)  # the deepest one parses last

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

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Raise ArgumentError for a name that is not among the choices, with the one that was meant."""
        choices = action.choices
        moved = new_name((*self.prog.split()[1:], str(value)))
        subparsers = isinstance(action, argparse._SubParsersAction)  # noqa: SLF001 - the way to distinguish them
        if choices is None or value in choices or not (subparsers or moved):
            super()._check_value(action, value)
            return
        what = "command" if self.prog == PROGRAM else f"action of {self.prog}"
        raise argparse.ArgumentError(None, moved or f"no {what} {str(value)[:80]!r}{meant(str(value), list(choices))}")

    def unknown(self, words: Sequence[str]) -> NoReturn:
        """Print the line about arguments that no parser has taken, and exit with 2."""
        options = [name for name in self._option_string_actions if name.startswith("--")]
        near = meant(words[0].partition("=")[0], options) if words[0].startswith("-") else ""
        self.error(f"unknown argument: {' '.join(words)}{near}")

    def error(self, message: str) -> NoReturn:
        """Print the line and exit with 2."""
        from gpuwaste.show.terminal_cells import one_line

        self.exit(EXIT_USAGE, f"gpuwaste: {cut(one_line(message))}: see {self.prog} --help\n")


class _Version(argparse.Action):
    """Prints the version."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        """Print it and exit."""
        from gpuwaste.core.version import own_version

        sys.stdout.write(f"{PROGRAM} {own_version()}\n")
        parser.exit(0)


def command_names() -> list[str]:
    """Return the commands: the files of gpuwaste.cli.commands, and the resources that have one."""
    declared = {name for name, command in resource_commands().items() if command.is_command}
    return sorted({*_COMMANDS, *declared})


def load_command(name: str) -> Any:
    """Return one command: a module with HELP, EXAMPLES, arguments(parser) and run(options) -> exit code."""
    if name not in _COMMANDS:
        return resource_commands()[name]
    module = _COMMANDS[name]
    return ActionGroup(module) if hasattr(module, "__path__") else module


def build_parser(only: str | None = None, *, names_only: bool = False) -> _Parser:
    """Return the parser of every command, of only one, or one that knows only the names of the commands."""
    parser = _Parser(prog=PROGRAM, description=ABOUT, add_help=False)
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=_Parser)
    if names_only:
        subparsers.choices = dict.fromkeys(command_names())  # type: ignore[assignment]
        return parser
    for name in command_names() if only is None else [only]:
        command = load_command(name)
        sub = subparsers.add_parser(name, help=command.HELP)
        describe(sub, command.__doc__, command.EXAMPLES)
        command.arguments(sub)
        sub.set_defaults(run=command.run)
    return parser


def overview() -> str:
    """Return the help of the command itself: all commands by reader and subject."""
    from textwrap import fill

    from gpuwaste.cli.command_groups import grouped

    width = terminal_columns()
    starts = "\n".join(part for line, meaning in _STARTS for part in _start(line, meaning, width))
    return f"{fill(ABOUT, width)}\n\n{grouped(command_names(), width)}\n\nStart with:\n{starts}\n"


def _start(line: str, meaning: str, width: int) -> list[str]:
    """Return a command and what it shows, on two lines where one is too narrow."""
    from textwrap import wrap

    one = f"  {line:<{_START}}{meaning}"
    return (
        [one]
        if len(one) <= width
        else [f"  {line}", *wrap(meaning, width, initial_indent=_HANG, subsequent_indent=_HANG)]
    )


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
    while words[:1] == ["help"]:
        words = [*words[1:], "--help"] if words[1:] else ["--help"]
    if not words or words[0] in {"-h", "--help"}:
        sys.stdout.write(overview())
        return 0
    known = words[0] if words[0] in command_names() else None
    parser = build_parser(known, names_only=known is None and words[0] != "--")
    if words[0].startswith("-") and words[0] not in {"--version", "--"}:
        parser.unknown(words[:1])
    options, unknown = parser.parse_known_args(words)
    if unknown:
        options.parser.unknown(unknown)
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


def _forgive_streams() -> None:
    """Make streams escape what their encoding lacks, and print nothing where they are closed."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123, SIM115 for the process's life
        stream = getattr(sys, name)
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
