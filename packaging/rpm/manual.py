"""Writes the manual pages and the completion of bash, zsh and fish from the command's own parser.

    python3 -IB manual.py --site BUILDROOT/usr/lib/gpuwaste/python --share BUILDROOT/usr/share

Runs inside rpmbuild with the packages that were laid out, so that the pages say what this release does.
"""

import argparse
import gzip
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

Examples = Sequence[tuple[str, str]]


def subcommands(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """Return the parsers below one, by their names."""
    for action in parser._actions:  # noqa: SLF001 argparse shows its declarations nowhere else
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            return dict(action.choices)
    return {}


def options(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """Return what a parser takes itself: options and operands."""
    skipped = argparse._SubParsersAction  # noqa: SLF001
    return [a for a in parser._actions if not isinstance(a, skipped) and a.help != argparse.SUPPRESS]  # noqa: SLF001


def escaped(text: str) -> str:
    """Return text as roff takes it literally."""
    plain = text.replace("\\", "\\e").replace("-", "\\-")
    return "\n".join(f"\\&{line}" if line.startswith((".", "'")) else line for line in plain.splitlines())


def described(parser: argparse.ArgumentParser, action: argparse.Action) -> Iterator[str]:
    """Yield the roff of one option."""
    value = "" if action.nargs == 0 else str(action.metavar or action.dest).upper()
    names = ", ".join(action.option_strings)
    yield ".TP"
    yield escaped(" ".join(part for part in (names, value) if part))
    formatter: Any = parser._get_formatter()  # noqa: SLF001 expands %(default)s as --help does
    yield escaped(formatter._expand_help(action) if action.help else "")  # noqa: SLF001


def section(parser: argparse.ArgumentParser) -> Iterator[str]:
    """Yield the roff of a parser's options and of those of its own commands."""
    for action in options(parser):
        yield from described(parser, action)
    for name, below in subcommands(parser).items():
        yield f".SS {escaped(parser.prog)} {escaped(name)}"
        yield escaped(" ".join((below.description or "").split()))
        yield from section(below)


def listed(title: str, rows: Iterable[tuple[object, str]]) -> list[str]:
    """Return a section of terms with their meaning."""
    lines = [f".SH {title}"]
    for term, meaning in rows:
        lines += [".TP", f".B {escaped(str(term))}", escaped(meaning.replace("`", ""))]
    return lines


def page(title: str, about: str, parser: argparse.ArgumentParser, version: str, examples: Examples) -> str:
    """Return a manual page of section 1."""
    from gpuwaste.cli import manual  # noqa: PLC0415 main has said where it lies

    usage = " ".join(parser.format_usage().removeprefix("usage: ").split())
    lines = [f'.TH {title.upper()} 1 "" "gpuwaste {version}" "gpuwaste"', ".SH NAME"]
    lines += [f"{escaped(title)} \\- {escaped(about)}", ".SH SYNOPSIS", escaped(usage), ".SH DESCRIPTION"]
    lines += [escaped(" ".join((parser.description or about).split())), ".SH OPTIONS", *section(parser)]
    for heading, rows in (
        ("EXIT STATUS", manual.EXIT_CODES),
        ("ENVIRONMENT", manual.ENVIRONMENT),
        ("FILES", manual.FILES),
    ):
        lines += listed(heading, rows.items())
    lines += listed("EXAMPLES", examples)
    return "\n".join(line for line in lines if line) + "\n"


def write(path: Path, text: str) -> None:
    """Write a page compressed, the same each time."""
    path.write_bytes(gzip.compress(text.encode(), mtime=0))


def main() -> None:
    """Write one page for the command and one for each of its commands."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--site", required=True)
    parser.add_argument("--share", type=Path, required=True)
    chosen = parser.parse_args()
    sys.path[:0] = [chosen.site, str(Path(__file__).parent)]
    from importlib.metadata import version  # noqa: PLC0415 the path comes first

    import completion  # noqa: PLC0415 python -I leaves out this folder

    from gpuwaste.cli.main import build_parser, load_command  # noqa: PLC0415

    whole, release = build_parser(), version("gpuwaste")
    pages_folder = chosen.share / "man" / "man1"
    pages_folder.mkdir(parents=True, exist_ok=True)
    examples = [load_command(name).EXAMPLES[0] for name in ("report", "job", "doctor", "predict")]
    top = page("gpuwaste", "which job wasted which GPU, how much and why", whole, release, examples)
    pages = "".join(f".BR gpuwaste\\-{name} (1)\n" for name in sorted(subcommands(whole)))
    write(pages_folder / "gpuwaste.1.gz", f"{top}.SH SEE ALSO\n{pages}")
    for name, command in subcommands(whole).items():
        module = load_command(name)
        text = page(f"gpuwaste-{name}", module.HELP, command, release, module.EXAMPLES)
        write(pages_folder / f"gpuwaste-{name}.1.gz", f"{text}.SH SEE ALSO\n.BR gpuwaste (1)\n")
    for path, text in completion.files(whole).items():
        (chosen.share / path).parent.mkdir(parents=True, exist_ok=True)
        (chosen.share / path).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
