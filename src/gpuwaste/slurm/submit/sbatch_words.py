"""A batch script as sbatch reads it: the words of its #SBATCH lines by het component, and the options in words.

Every rule here is one that sbatch 22.05 was seen to keep; tests/contract/test_sbatch_contract.py compares again.
"""

import re
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from gpuwaste.core.errors import GpuwasteError, ParseError, UsageError
from gpuwaste.core.text import storable
from gpuwaste.slurm.submit.sbatch_options import ALIASES, BY_LETTER, SEPARATORS, Argument, SbatchOption, candidates

_MAGIC: Final = "#SBATCH"
_FOREIGN: Final = ("#PBS", "#BSUB")
_BLANKS: Final = " \t\n\v\f\r"  # isspace(3) in the C locale
_NAME: Final = re.compile(r"[A-Za-z0-9][\w.-]*", re.ASCII)
COMMAND_LINE: Final = "the command line"
MAX_COMPONENTS: Final = 1024  # sbatch takes any number, srun addresses 128


@dataclass(frozen=True, slots=True)
class Word:
    """One argument and where it stands: "line 3", "the command line"."""

    text: str
    where: str


@dataclass(frozen=True, slots=True)
class Given:
    """One option as given: its long name without dashes, its value (None without one) and where it stands.

    A name that is not in the table of options is one that a SPANK plugin of the site may have.
    """

    name: str
    value: str | None
    where: str


@dataclass(frozen=True, slots=True)
class Directives:
    """The words of each het component, and the lines of other batch systems that stand among them."""

    components: tuple[tuple[Word, ...], ...]
    foreign: tuple[int, ...]


def directives(text: str) -> Directives:
    """Return what the #SBATCH lines say, up to the first line that is a command. Raises ParseError."""
    components: list[list[Word]] = [[]]
    foreign = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.startswith(_MAGIC):
            bare = line.strip(_BLANKS)
            if bare and not bare.startswith("#"):
                break
            if line.startswith(_FOREIGN):
                foreign.append(number)
            continue
        words = _split(line[len(_MAGIC) :], number)
        names = [word.text.lower() for word in words]
        if names and names[0] in SEPARATORS:
            if len(components) == MAX_COMPONENTS:
                raise ParseError(f"line {number}: more than {MAX_COMPONENTS} het components: combine some of them")
            components.append([])
            continue
        cut = next((i for i, name in enumerate(names) if name in SEPARATORS), len(words))
        components[-1] += words[:cut]
    return Directives(tuple(tuple(words) for words in components), tuple(foreign))


def walk(words: Sequence[Word]) -> tuple[list[Given], list[Word]]:
    """Return the options, as getopt_long takes them, and the words from the first on that is none.

    Raises UsageError where the command line, ParseError where the script has what sbatch refuses.
    """
    given: list[Given] = []
    left = deque(words)
    while left:
        word = left[0]
        if not word.text.startswith("-") or word.text == "-":
            break
        left.popleft()
        if word.text == "--":
            break
        if word.text.startswith("--"):
            given.append(_long(word, left))
        else:
            given += _short(word, left)
    return given, list(left)


def refusal(where: str, what: str) -> GpuwasteError:
    """Return the error for something that sbatch would refuse: wrong usage where it stands on the command line."""
    return (UsageError if where == COMMAND_LINE else ParseError)(f"{where}: {what}")


def _split(text: str, number: int) -> list[Word]:
    """Return the words of the rest of a line; an empty word ends them, as a # does."""
    words: list[Word] = []
    place = 0
    while True:
        while place < len(text) and text[place] in _BLANKS:
            place += 1
        if text[place : place + 1] == ":":
            raise ParseError(
                f"line {number}: a word begins with `:`: sbatch accepts no colon there; use #SBATCH hetjob"
            )
        if place >= len(text) or text[place] == "#":
            return words
        word, place = _word(text, place, number)
        if not word:
            return words
        words.append(Word(storable(word), f"line {number}"))


def _word(text: str, place: int, number: int) -> tuple[str, int]:
    """Return one word and the place after it: quotes are taken off, a backslash keeps the character after it."""
    found: list[str] = []
    quote = ""
    while place < len(text) and (quote or text[place] not in _BLANKS):
        character = text[place]
        if character == "\\":
            place += 1
            found.append(text[place : place + 1])
        elif quote:
            if character == quote:
                quote = ""
            else:
                found.append(character)
        elif character in "\"'":
            quote = character
        elif character == "#":
            break
        else:
            found.append(character)
        place += 1
    if quote:
        raise ParseError(f"line {number}: the quote {quote} is never closed: sbatch rejects it")
    return "".join(found), place


def _long(word: Word, left: deque[Word]) -> Given:
    name, equals, value = word.text[2:].partition("=")
    found = candidates(name) if name else ()
    shown = f"--{name[:40]}"
    if len(found) > 1:
        raise refusal(word.where, f"option {shown} can mean --{' or --'.join(o.name for o in found)}: write it out")
    if not found:
        return Given(_unknown(name, word), value if equals else _guessed(word, left), word.where)
    option = found[0]
    if equals and option.argument is Argument.NONE:
        raise refusal(word.where, f"option --{option.name} takes no value")
    taken = value if equals else _next(option, word, left, f"--{option.name}")
    return Given(ALIASES.get(option.name, option.name), taken, word.where)


def _unknown(name: str, word: Word) -> str:
    """Return the name of an option that a SPANK plugin may have; what can be none is refused."""
    if not _NAME.fullmatch(name):
        raise refusal(word.where, f"unknown option --{name[:40]}: sbatch has no such option")
    return name


def _guessed(word: Word, left: deque[Word]) -> str | None:
    """Take the value of an unknown option: in a script a word that is no option can be nothing else.

    On the command line it is as likely the script, and `--name=value` says which.
    """
    if word.where == COMMAND_LINE or not left or left[0].text.startswith("-"):
        return None
    return left.popleft().text


def _short(word: Word, left: deque[Word]) -> list[Given]:
    """Return the options of one word of letters: the first that takes a value has the rest of the word."""
    given = []
    letters = word.text[1:]
    for index, letter in enumerate(letters):
        option = BY_LETTER.get(letter)
        if option is None:
            raise refusal(word.where, f"unknown option -{letter}: sbatch has no such option")
        if option.argument is Argument.NONE:
            given.append(Given(option.name, None, word.where))
            continue
        rest = letters[index + 1 :]
        given.append(Given(option.name, rest or _next(option, word, left, f"-{letter}"), word.where))
        break
    return given


def _next(option: SbatchOption, word: Word, left: deque[Word], shown: str) -> str | None:
    """Take the value from the next word, which may be a line further down."""
    if option.argument is not Argument.REQUIRED:
        return None
    if not left:
        raise refusal(word.where, f"option {shown} requires a value")
    return left.popleft().text
