"""A batch script, a command line and an environment as sbatch takes them together: the requests they come to."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from gpuwaste.core.errors import ParseError, UsageError
from gpuwaste.core.request import JobRequest
from gpuwaste.slurm.sbatch_amounts import amounts
from gpuwaste.slurm.sbatch_options import OPTIONS, Argument
from gpuwaste.slurm.sbatch_words import COMMAND_LINE, Directives, Given, Word, directives, printable, refusal, walk

MAX_SCRIPT_B: Final = 4 * 1024**2  # max_script_size of slurm.conf where a site does not set it
_MEMORY: Final = frozenset({"mem", "mem-per-cpu", "mem-per-gpu"})
_NOT_READ: Final = frozenset({"tres-per-task", "ntasks-per-tres"})
_ENABLED: Final = re.compile(r"|yes|[+-]?\d*[1-9]\d*", re.IGNORECASE)
_NO_JOB: Final = frozenset({"help", "usage", "version"})


@dataclass(frozen=True, slots=True)
class CommandLine:
    """sbatch's own arguments: the options of each component, and the script with its arguments."""

    components: tuple[tuple[Given, ...], ...]
    rest: tuple[str, ...]

    @property
    def wrap(self) -> str | None:
        """The command of --wrap, which stands in the place of a script."""
        return next((given.value for given in reversed(self.components[0]) if given.name == "wrap"), None)


@dataclass(frozen=True, slots=True)
class Submission:
    """What sbatch would submit: a request for each het component (an array is one), its options, and what to know."""

    requests: tuple[JobRequest, ...]
    options: tuple[Mapping[str, Given], ...]
    notes: tuple[str, ...] = ()


def read_argv(argv: Sequence[str]) -> CommandLine:
    """Read the words after `sbatch`; components stand between words `:`. Raises UsageError."""
    components: list[tuple[Given, ...]] = []
    left = [Word(printable(text), COMMAND_LINE) for text in argv]
    while True:
        given, left = walk(left)
        components.append(tuple(given))
        if not left or left[0].text != ":":
            break
        left = left[1:]
    line = CommandLine(tuple(components), tuple(word.text for word in left))
    for found in components[0]:
        if found.name in _NO_JOB:
            raise UsageError(f"--{found.name} of sbatch submits nothing: leave it out")
    if line.wrap is not None and left:
        raise UsageError(f"--wrap together with {left[0].text[:40]!r}: sbatch takes a command or a script, not both")
    return line


def read_submission(
    script: bytes | str,
    line: CommandLine | None = None,
    environ: Mapping[str, str] | None = None,
    *,
    user: str = "",
    submit: int = 0,
    name: str = "sbatch",
) -> Submission:
    """Return what sbatch would submit; the later of script, environment and command line wins, as sbatch(1) says.

    `script` is ignored with --wrap. `name` is the file's name without folders, "sbatch" for standard input. Raises
    ParseError for a script and UsageError for a command line that sbatch refuses.
    """
    line = line or CommandLine(((),), ())
    text, name = (_checked(script), name) if line.wrap is None else (f"#!/bin/sh\n\n{line.wrap}\n", "wrap")
    read = directives(text)
    shown = printable(text)
    variables = _variables(environ or {})
    count = max(len(read.components), len(line.components))
    options = [_merged(read, variables, line, index) for index in range(count)]
    return Submission(
        requests=tuple(_request(given, user, submit, name, shown) for given in options),
        options=tuple(options),
        notes=tuple(_notes(read, options)),
    )


def _checked(script: bytes | str) -> str:
    """Return the script's text, bytes that are not UTF-8 as surrogates. Raises ParseError for what sbatch refuses."""
    data = script.encode("utf-8", "surrogatepass") if isinstance(script, str) else script
    if not data:
        raise ParseError("the script is empty: sbatch takes a script that begins with #! and an interpreter")
    if len(data) > MAX_SCRIPT_B:
        raise ParseError(f"the script has {len(data)} bytes: sbatch takes at most {MAX_SCRIPT_B}: is that a script?")
    if b"\0" in data:
        raise ParseError("the script has a NUL character: sbatch takes text alone: is that a program?")
    if not data.startswith(b"#!"):
        raise ParseError("line 1: does not begin with #! and an interpreter, such as #!/bin/bash: sbatch refuses that")
    if b"\r\n" in data:
        number = data[: data.index(b"\r\n")].count(b"\n") + 1
        raise ParseError(f"line {number}: ends as DOS lines do (CR LF), which sbatch refuses: run dos2unix on the file")
    return data.decode("utf-8", "surrogateescape")


def _variables(environ: Mapping[str, str]) -> list[Given]:
    found = []
    for option in OPTIONS:
        value = environ.get(option.variable) if option.variable else None
        if value is None or (option.argument is Argument.NONE and not _ENABLED.fullmatch(value)):
            continue
        found.append(Given(option.name, printable(value), option.variable))
    return found


def _merged(read: Directives, variables: list[Given], line: CommandLine, index: int) -> dict[str, Given]:
    """Return the options of one component; the command line's last group serves the components after it too."""
    words = read.components[index] if index < len(read.components) else ()
    given, rest = walk(words)
    if rest:
        raise refusal(rest[0].where, f"{rest[0].text[:40]!r} is no option: sbatch refuses that; quote it or remove it")
    found = {option.name: option for option in given}
    kinds = _MEMORY & found.keys()
    # A variable for memory counts only where the script does not ask for memory in another way.
    found |= {v.name: v for v in variables if v.name not in _MEMORY or kinds <= {v.name}}
    own = line.components[min(index, len(line.components) - 1)]
    return found | {option.name: option for option in own}


def _request(options: Mapping[str, Given], user: str, submit: int, name: str, text: str) -> JobRequest:
    asked = amounts(options)

    def word(option: str) -> str:
        return (options[option].value or "") if option in options else ""

    return JobRequest(
        user=user,
        submit=submit,
        account=word("account").lower(),  # slurmdbd keeps accounts in lower case
        partition=word("partition"),
        qos=word("qos"),
        name=word("job-name") if "job-name" in options else name,
        time_limit_s=asked.time_limit_s,
        nodes=asked.nodes,
        cpus=asked.cpus,
        mem_b=asked.mem_b,
        gpus=asked.gpus,
        gpu_type=asked.gpu_type,
        is_array="array" in options,
        script=text,
    )


def _notes(read: Directives, options: Sequence[Mapping[str, Given]]) -> list[str]:
    notes = []
    if read.foreign and not any("ignore-pbs" in given for given in options):
        lines = ", ".join(str(number) for number in read.foreign[:5]) + (", ..." if len(read.foreign) > 5 else "")  # noqa: PLR2004 enough to find them
        notes.append(
            f"line {lines}: #PBS and #BSUB are not read here; sbatch of some releases reads them (see --ignore-pbs)"
        )
    unread = sorted(_NOT_READ & {name for given in options for name in given})
    return notes + [f"--{name} is not read here: the job may ask for more than is said" for name in unread]
