"""The options of each het component, from script, environment, command line and the component before it.

tests/contract/test_sbatch_components_contract.py compares them with what sbatch 22.05 prints for each component.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from gpuwaste.core.errors import ParseError, UsageError
from gpuwaste.core.text import storable
from gpuwaste.slurm.submit.sbatch_options import (
    BY_NAME,
    COMMAND_LINE,
    INHERITED,
    MAX_COMPONENTS,
    OPTIONS,
    Argument,
    Given,
    Word,
    refusal,
    walk,
)

MEMORY_OPTIONS: Final = frozenset({"mem", "mem-per-cpu", "mem-per-gpu"})
_ENABLED: Final = re.compile(r"|yes|[+-]?\d*[1-9]\d*", re.IGNORECASE | re.ASCII)
_NO_JOB: Final = frozenset({"help", "usage", "version"})


@dataclass(frozen=True, slots=True)
class CommandLine:
    """sbatch's own arguments: the options of each component, and the script with its arguments."""

    components: tuple[tuple[Given, ...], ...]
    rest: tuple[str, ...]

    @property
    def wrap(self) -> str | None:
        """The command of --wrap, which replaces a script."""
        return next((given.value for given in reversed(self.components[0]) if given.name == "wrap"), None)

    @property
    def doubtful(self) -> str | None:
        """An unknown option right before the script, which may or may not take a value; None for none."""
        last = self.components[-1][-1:]
        return last[0].name if last and last[0].value is None and last[0].name not in BY_NAME else None


def read_argv(argv: Sequence[str]) -> CommandLine:
    """Read the words after `sbatch`; components are separated by words `:`. Raises UsageError."""
    components: list[tuple[Given, ...]] = []
    left = [Word(storable(text), COMMAND_LINE) for text in argv]
    while True:
        given, left = walk(left)
        components.append(tuple(given))
        if not left or left[0].text != ":":
            break
        if len(components) == MAX_COMPONENTS:
            raise UsageError(f"{COMMAND_LINE}: more than {MAX_COMPONENTS} het components: combine some of them")
        left = left[1:]
    line = CommandLine(tuple(components), tuple(word.text for word in left))
    for found in components[0]:
        if found.name in _NO_JOB:
            raise UsageError(f"--{found.name} of sbatch submits nothing: remove it")
    if line.wrap is not None and left:
        raise UsageError(f"--wrap together with {left[0].text[:40]!r}: sbatch takes a command or a script, not both")
    return line


def options_of_components(
    script: Sequence[Sequence[Word]], line: CommandLine, environ: Mapping[str, str]
) -> list[dict[str, Given]]:
    """Return the options of each component; the later of inherited, script, environment, command line wins.

    The first component inherits too: sbatch reads the entire command line once before it reads it group by group. The
    command line's last group also applies to the components after it. Raises ParseError or UsageError.
    """
    variables = _variables(environ)
    whole_line = [given for group in line.components for given in group]
    found: list[dict[str, Given]] = []
    inherited = _inherited(whole_line)
    weak = _memory(whole_line)
    for index in range(max(len(script), len(line.components))):
        of_script = _of_script(script[index] if index < len(script) else ())
        of_line = line.components[min(index, len(line.components) - 1)]
        weak = _less(_less(weak, of_script) | _memory(variables), of_line)
        options: dict[str, Given] = {}
        for given in (*inherited.values(), *of_script, *variables, *of_line):
            options.pop(given.name, None)  # the last one given is put last: some options overwrite what others have set
            options[given.name] = given
        found.append(_one_memory(options, weak))
        inherited = _inherited(found[-1].values())
    return found


def _inherited(options: Iterable[Given]) -> dict[str, Given]:
    return {option.name: option for option in options if option.name in INHERITED}


def _variables(environ: Mapping[str, str]) -> list[Given]:
    found = []
    for option in OPTIONS:
        value = environ.get(option.variable) if option.variable else None
        if value is None or (option.argument is Argument.NONE and not _ENABLED.fullmatch(value)):
            continue
        found.append(Given(option.name, storable(value), option.variable))
    return found


def _of_script(words: Sequence[Word]) -> list[Given]:
    given, rest = walk(words)
    if rest:
        raise refusal(
            rest[0].where, f"{rest[0].text[:40]!r} is not an option: sbatch rejects it; quote it or remove it"
        )
    return given


def _memory(options: Iterable[Given]) -> dict[str, Given]:
    return {option.name: option for option in options if option.name in MEMORY_OPTIONS}


def _less(memory: Mapping[str, Given], options: Iterable[Given]) -> dict[str, Given]:
    names = {option.name for option in options}
    return {name: option for name, option in memory.items() if name not in names}


def _one_memory(options: dict[str, Given], weak: Mapping[str, Given]) -> dict[str, Given]:
    """Return the options without the weak memory options, where memory is also requested in another way.

    Weak are options of a variable, and those that a component has only from the first reading of the command line; two
    of them count as two even where this component has only one. Raises ParseError or UsageError.
    """
    if options.keys() & MEMORY_OPTIONS <= weak.keys():
        if len(weak) > 1:
            raise two_memories(weak.values())
        return options
    return {name: option for name, option in options.items() if name not in weak}


def two_memories(given: Iterable[Given]) -> ParseError:
    """Return the error for memory that is requested in several ways."""
    named = " and ".join(
        f"--{option.name} ({option.where})" for option in sorted(given, key=lambda option: option.name)
    )
    return ParseError(f"{named}: sbatch takes one of --mem, --mem-per-cpu and --mem-per-gpu: remove the others")
