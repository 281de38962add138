"""commands.md, from each command's own argument parser."""

import argparse
from collections.abc import Iterator, Sequence

from gpuwaste.cli.command_groups import grouped
from gpuwaste.cli.main import command_names, load_command
from gpuwaste.cli.manual import ENVIRONMENT
from tools.reference.markdown import code, document, table

_WIDTH = 100
_INTRO = """
Every command prints `--help`. Errors are one line on stderr; [exit codes](exit-codes.md) are the same everywhere.
Times are read as `sacct` reads them, in the caller's zone (`TZ`). Output is as wide as the terminal, from 40 to 200
columns, and coloured there (`NO_COLOR` turns that off); `--json`, `--parsable` and `--csv` are for programs.
"""


def parsers() -> Iterator[tuple[str, str, argparse.ArgumentParser]]:
    """Yield (name, what it does, parser) of each command, and of each action of a command, such as `agent run`."""
    for name in command_names():
        command = load_command(name)
        parser = argparse.ArgumentParser(prog=f"gpuwaste {name}")
        command.arguments(parser)
        yield name, str(command.__doc__), parser
        for action in _subparsers(parser):
            texts = {choice.dest: choice.help or "" for choice in action._choices_actions}  # noqa: SLF001 argparse has no public way to list its actions
            for word, sub in action.choices.items():
                yield f"{name} {word}", sub.description or texts.get(word, ""), sub


def options(parser: argparse.ArgumentParser) -> Iterator[tuple[str, str]]:
    """Yield (how it is written, help) of each argument but --help and actions."""
    for action in parser._actions:  # noqa: SLF001 argparse has no public way to list them
        if isinstance(action, argparse._HelpAction | argparse._SubParsersAction):  # noqa: SLF001 same
            continue
        value = "" if action.nargs == 0 else str(action.metavar or action.dest.upper())
        written = ", ".join(action.option_strings)
        yield f"{written} {value}".strip(), (action.help or "").replace("%%", "%")


def page() -> str:
    """Return the page: a section for each command."""
    parts = [_INTRO, f"```text\n{grouped(command_names(), _WIDTH)}\n```", "`gpuwaste --version` prints the version."]
    for name, text, parser in parsers():
        level = "###" if " " in name else "##"
        parts.append(f"{level} gpuwaste {name}\n\n{_sentence(text)}")
        rows = [(code(written), meaning) for written, meaning in options(parser)]
        if rows:
            parts.append(table(("argument", "meaning"), rows))
        if examples := [(code(line), meaning) for line, meaning in _examples(name, parser)]:
            parts.append(table(("example", ""), examples))
    parts.append("## Environment")
    parts.append(table(("variable", "meaning"), [(code(name), text) for name, text in ENVIRONMENT.items()]))
    return document("Commands", *parts)


def _examples(name: str, parser: argparse.ArgumentParser) -> Sequence[tuple[str, str]]:
    """Return the examples of a command, or of an action: those at the end of its help."""
    if " " not in name:
        found: Sequence[tuple[str, str]] = load_command(name).EXAMPLES
        return found
    lines = [line.strip() for line in (parser.epilog or "").splitlines()[1:]]
    return list(zip(lines[::2], lines[1::2], strict=True))


def _subparsers(parser: argparse.ArgumentParser) -> "Iterator[argparse._SubParsersAction[argparse.ArgumentParser]]":
    return (a for a in parser._actions if isinstance(a, argparse._SubParsersAction))  # noqa: SLF001 as above


def _sentence(text: str) -> str:
    text = text.strip()
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")
