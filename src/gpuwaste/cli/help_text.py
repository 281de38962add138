"""Help texts: width, paragraphs, examples, and the name that a typing error meant."""

import argparse
from collections.abc import Collection, Iterable
from typing import Any, Final

from gpuwaste.cli.terminal_width import terminal_columns

_VERBATIM: Final = "  "
_FEW: Final = 4  # options that a usage line shows

Examples = Iterable[tuple[str, str]]


class HelpFormatter(argparse.HelpFormatter):
    """Wraps help only between words: argparse's own breaks an option, a path or a file's name at a hyphen.

    Paragraphs stay apart, and a line that begins with two blanks is kept. It reads the terminal's width itself:
    argparse imports shutil and its archive formats for that.
    """

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=terminal_columns() - 2)

    def _split_lines(self, text: str, width: int) -> list[str]:
        import textwrap

        return textwrap.wrap(" ".join(text.split()), width, break_on_hyphens=False, break_long_words=False)

    def _format_usage(self, usage: Any, actions: Any, groups: Any, prefix: Any) -> str:
        """Return the usage line; many options are only [OPTIONS] there: they are listed below it."""
        places = [action for action in actions if not action.option_strings]
        if usage is None and len(actions) - len(places) > _FEW:
            before, self._prog = self._prog, f"{self._prog} [OPTIONS]"
            text = super()._format_usage(usage, places, [], prefix)
            self._prog = before
            return text
        return super()._format_usage(usage, actions, groups, prefix)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return "\n".join(indent + line for part in text.split("\n\n") for line in self._paragraph(part, width))

    def _paragraph(self, text: str, width: int) -> list[str]:
        kept = text.startswith(_VERBATIM) or f"\n{_VERBATIM}" in text
        return [*(text.splitlines() if kept else self._split_lines(text, width)), ""]


def describe(parser: argparse.ArgumentParser, about: str | None, examples: Examples) -> None:
    """Give a parser its description, and its examples as the end of its help."""
    parser.description = (about or "").strip().replace("`", "") or None
    shown = "\n".join(f"  {line}\n      {meaning}" for line, meaning in examples)
    parser.epilog = f"examples:\n{shown}" if shown else None


def meant(word: str, known: Collection[str]) -> str:
    """Return `: did you mean NAME?` for the known name that is most like a word, "" where none is."""
    from difflib import get_close_matches

    found = get_close_matches(word[:80], known, n=1)
    return f": did you mean {found[0]}?" if found else ""
