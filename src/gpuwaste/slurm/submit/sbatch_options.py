"""sbatch's options, as in sbatch(1) of 22.05 to 26.05, and the words of a script or command line that set them.

Every rule here was observed in sbatch 22.05; tests/contract/test_sbatch_contract.py compares again.
"""

import re
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import Final

from gpuwaste.core.errors import GpuwasteError, ParseError, UsageError
from gpuwaste.core.text import storable

_MAGIC: Final = "#SBATCH"
_FOREIGN: Final = ("#PBS", "#BSUB")
_BLANKS: Final = " \t\n\v\f\r"  # isspace(3) in the C locale
_NAME: Final = re.compile(r"[A-Za-z0-9][\w.-]*", re.ASCII)
COMMAND_LINE: Final = "the command line"
MAX_COMPONENTS: Final = 1024  # sbatch accepts any number, srun addresses 128


class Argument(Enum):
    """Whether an option takes a value, as in getopt_long(3)."""

    NONE = 0
    REQUIRED = 1
    OPTIONAL = 2


@dataclass(frozen=True, slots=True)
class SbatchOption:
    """One option; `name` is the long name without dashes, `letter` and `variable` are "" where there is none.

    `later` marks options newer than 22.05: they are known only by their full name, so that an abbreviation means here
    what it means in any release. `inherited` marks what a later het component takes over from the one before it.
    """

    name: str
    letter: str = ""
    argument: Argument = Argument.REQUIRED
    variable: str = ""
    later: bool = False
    inherited: bool = False


ALIASES: Final = {"tasks-per-node": "ntasks-per-node", "cluster": "clusters"}
SEPARATORS: Final = frozenset({"hetjob", "packjob"})

_VALUES: Final = """
account:A:ACCOUNT acctg-freq array:a:ARRAY_INX batch bb bbf begin:b chdir:D cluster cluster-constraint clusters:M
comment constraint:C container context core-spec:S cores-per-socket cpu-freq cpus-per-gpu::CPUS_PER_GPU cpus-per-task:c
deadline delay-boot dependency:d distribution:m error:e exclude:x export export-file extra-node-info:B gid gpu-bind
gpu-freq gpus:G:GPUS gpus-per-node::GPUS_PER_NODE gpus-per-socket gpus-per-task::GPUS_PER_TASK gres::GRES gres-flags
hint input:i job-name:J:JOB_NAME kill-on-invalid-dep licenses:L mail-type mail-user mcs-label mem::MEM_PER_NODE
mem-bind mem-per-cpu::MEM_PER_CPU mem-per-gpu::MEM_PER_GPU mincpus network nodefile:F nodelist:w nodes:N ntasks:n
ntasks-per-core ntasks-per-gpu ntasks-per-node ntasks-per-socket ntasks-per-tres open-mode output:o
partition:p:PARTITION power prefer priority profile qos:q:QOS reservation signal sockets-per-node switches
tasks-per-node thread-spec threads-per-core time:t:TIMELIMIT time-min tmp uid wait-all-nodes wckey wrap
"""
_FLAGS: Final = """
contiguous help:h hold:H ignore-pbs no-requeue overcommit:O:OVERCOMMIT oversubscribe:s parsable quiet:Q reboot
spread-job test-only usage use-min-nodes verbose:v version:V wait:W
"""
_EITHER: Final = "exclusive::EXCLUSIVE get-user-env nice no-kill:k propagate requeue"
"""Also options that take a value only in some releases: --get-user-env in 22.05, --requeue in 26.05."""
_LATER_VALUES: Final = "container-id container-type extra mem-update resources segment tres-bind tres-per-task"
_LATER_FLAGS: Final = "consolidate-segments external spread-segments stepmgr"
_LATER_EITHER: Final = "oom-kill-step resv-ports"
# What `sbatch -vv` of 22.05.8 prints for a bare second component when the first one has the option; of the options of
# later releases it shows nothing, and none of them changes what is read here.
_INHERITED: Final = """
account acctg-freq array batch bbf begin chdir cluster cluster-constraint clusters comment container context deadline
delay-boot dependency error exclude export export-file get-user-env gid hint hold ignore-pbs input job-name
kill-on-invalid-dep mcs-label mem nice no-kill no-requeue open-mode output parsable prefer priority profile propagate
qos reboot requeue reservation signal time time-min uid wait wait-all-nodes wckey
"""


def _options(text: str, argument: Argument, *, later: bool = False) -> list[SbatchOption]:
    found = []
    inherited = frozenset(_INHERITED.split())
    for word in text.split():
        name, letter, variable = (*word.split(":"), "", "")[:3]
        variable = f"SBATCH_{variable}" if variable else ""
        found.append(SbatchOption(name, letter, argument, variable, later, name in inherited))
    return found


OPTIONS: Final = (
    *_options(_VALUES, Argument.REQUIRED),
    *_options(_FLAGS, Argument.NONE),
    *_options(_EITHER, Argument.OPTIONAL),
    *_options(_LATER_VALUES, Argument.REQUIRED, later=True),
    *_options(_LATER_FLAGS, Argument.NONE, later=True),
    *_options(_LATER_EITHER, Argument.OPTIONAL, later=True),
)
BY_NAME: Final = {option.name: option for option in OPTIONS}
INHERITED: Final = frozenset(option.name for option in OPTIONS if option.inherited)
BY_LETTER: Final = {option.letter: option for option in OPTIONS if option.letter}


@lru_cache(maxsize=512)  # scripts choose the names
def candidates(prefix: str) -> tuple[SbatchOption, ...]:
    """Return the options that a long name or the beginning of one can mean: one, none, or several."""
    if prefix in BY_NAME:
        return (BY_NAME[prefix],)
    return tuple(option for option in OPTIONS if option.name.startswith(prefix) and not option.later)


@dataclass(frozen=True, slots=True)
class Word:
    """One argument and where it is: "line 3", "the command line"."""

    text: str
    where: str


@dataclass(frozen=True, slots=True)
class Given:
    """One option as given: its long name without dashes, its value (None without one) and where it is.

    A name that is not in the table of options may be one of a SPANK plugin of the site.
    """

    name: str
    value: str | None
    where: str


@dataclass(frozen=True, slots=True)
class Directives:
    """The words of each het component, and the lines of other batch systems among them."""

    components: tuple[tuple[Word, ...], ...]
    foreign: tuple[int, ...]


def directives(text: str) -> Directives:
    """Return the words of the #SBATCH lines, up to the first line that is a command. Raises ParseError."""
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
    """Return the options as getopt_long reads them, and the words from the first that is not an option.

    Raises UsageError where the command line, ParseError where the script has something that sbatch rejects.
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
    """Return the error for something that sbatch would reject: UsageError where it is on the command line."""
    return (UsageError if where == COMMAND_LINE else ParseError)(f"{where}: {what}")


def _split(text: str, number: int) -> list[Word]:
    """Return the words in the rest of a line; an empty word ends them, as a # does."""
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
    """Return one word and the index after it: quotes are removed, a backslash keeps the character after it."""
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
        raise refusal(
            word.where, f"option {shown} can mean --{' or --'.join(o.name for o in found)}: write the full name"
        )
    if not found:
        return Given(_unknown(name, word), value if equals else _guessed(word, left), word.where)
    option = found[0]
    if equals and option.argument is Argument.NONE:
        raise refusal(word.where, f"option --{option.name} takes no value")
    taken = value if equals else _next(option, word, left, f"--{option.name}")
    return Given(ALIASES.get(option.name, option.name), taken, word.where)


def _unknown(name: str, word: Word) -> str:
    """Return the name of an option that a SPANK plugin may have; an invalid name is an error."""
    if not _NAME.fullmatch(name):
        raise refusal(word.where, f"unknown option --{name[:40]}: sbatch has no such option")
    return name


def _guessed(word: Word, left: deque[Word]) -> str | None:
    """Take the value of an unknown option: in a script a word that is not an option can be nothing else.

    On the command line it may as well be the script; `--name=value` makes it clear.
    """
    if word.where == COMMAND_LINE or not left or left[0].text.startswith("-"):
        return None
    return left.popleft().text


def _short(word: Word, left: deque[Word]) -> list[Given]:
    """Return the options of one word of letters: the first that takes a value takes the rest of the word."""
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
    """Take the value from the next word, which may be on the next line."""
    if option.argument is not Argument.REQUIRED:
        return None
    if not left:
        raise refusal(word.where, f"option {shown} requires a value")
    return left.popleft().text
