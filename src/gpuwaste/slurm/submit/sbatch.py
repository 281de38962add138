"""The requests that sbatch makes of a batch script, a command line and an environment."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import islice
from typing import Final

from gpuwaste.core.errors import ParseError
from gpuwaste.core.text import storable
from gpuwaste.slurm.submit.job_request import JobRequest
from gpuwaste.slurm.submit.sbatch_amounts import with_amounts
from gpuwaste.slurm.submit.sbatch_components import CommandLine, options_of_components
from gpuwaste.slurm.submit.sbatch_options import BY_NAME, Directives, Given, directives

MAX_SCRIPT_B: Final = 4 * 1024**2  # max_script_size of slurm.conf where a site does not set it
_NOT_READ: Final = frozenset({"tres-per-task", "ntasks-per-tres"})
_SHARING: Final = frozenset({"exclusive", "oversubscribe"})
_SHOWN: Final = 5  # of a kind, in a note
_ALIKE: Final = 0.85


@dataclass(frozen=True, slots=True)
class SbatchSubmission:
    """What sbatch would submit: a request for each het component (an array is one), its options, and notes."""

    requests: tuple[JobRequest, ...]
    options: tuple[Mapping[str, Given], ...]
    notes: tuple[str, ...] = ()


def read_submission(
    script: bytes | str,
    line: CommandLine | None = None,
    environ: Mapping[str, str] | None = None,
    *,
    user: str = "",
    submit: int = 0,
    name: str = "sbatch",
) -> SbatchSubmission:
    """Return what sbatch would submit; the later of script, environment and command line wins.

    `script` is ignored with --wrap. `name` is the file's name without folders, "sbatch" for standard input. Raises
    ParseError for a script and UsageError for a command line that sbatch rejects.
    """
    line = line or CommandLine(((),), ())
    text, name = (_checked(script), name) if line.wrap is None else (f"#!/bin/sh\n\n{line.wrap}\n", "wrap")
    read = directives(text)
    shown = storable(text)
    options = options_of_components(read.components, line, environ or {})
    return SbatchSubmission(
        requests=tuple(_request(given, user, submit, name, shown) for given in options),
        options=tuple(options),
        notes=tuple(_notes(read, options)),
    )


def _checked(script: bytes | str) -> str:
    """Return the script's text, bytes that are not UTF-8 as surrogates. Raises ParseError where sbatch rejects it."""
    data = script.encode("utf-8", "surrogatepass") if isinstance(script, str) else script
    if not data:
        raise ParseError("the script is empty: sbatch takes a script that begins with #! and an interpreter")
    if len(data) > MAX_SCRIPT_B:
        raise ParseError(f"the script has {len(data)} bytes: sbatch takes at most {MAX_SCRIPT_B}: is this a script?")
    if b"\0" in data:
        raise ParseError("the script has a NUL character: sbatch accepts only text: is this a program?")
    if not data.startswith(b"#!"):
        raise ParseError("line 1: does not begin with #! and an interpreter, such as #!/bin/bash: sbatch rejects it")
    if b"\r\n" in data:
        number = data[: data.index(b"\r\n")].count(b"\n") + 1
        raise ParseError(f"line {number}: has a DOS line end (CR LF), which sbatch rejects: run dos2unix on the file")
    return data.decode("utf-8", "surrogateescape")


def _request(options: Mapping[str, Given], user: str, submit: int, name: str, text: str) -> JobRequest:
    def word(option: str) -> str:
        return (options[option].value or "") if option in options else ""

    request = JobRequest(
        user=user,
        submit=submit,
        account=word("account").lower(),  # slurmdbd keeps accounts in lower case
        partition=word("partition"),
        qos=word("qos"),
        name=word("job-name") if "job-name" in options else name,
        is_array="array" in options,
        script=text,
        comment=word("comment"),
        whole_node=_exclusive(options),
    )
    return with_amounts(request, options)


def _exclusive(options: Mapping[str, Given]) -> bool:
    """Return whether whole nodes are requested: --exclusive without a value and no --oversubscribe after it."""
    last = [given for name, given in options.items() if name in _SHARING][-1:]
    return any(given.name == "exclusive" and given.value in {None, "", "exclusive"} for given in last)


def _notes(read: Directives, options: Sequence[Mapping[str, Given]]) -> list[str]:
    notes = []
    if read.foreign and not any("ignore-pbs" in given for given in options):
        lines = _listed(iter([str(number) for number in read.foreign]))
        notes.append(
            f"line {lines}: #PBS and #BSUB are not read here; sbatch of some releases reads them (see --ignore-pbs)"
        )
    unread = sorted(_NOT_READ & {name for given in options for name in given})
    notes += [f"--{name} is not read here: the job may request more than this" for name in unread]
    unknown = {name: given for found in options for name, given in found.items() if name not in BY_NAME}
    if unknown:
        notes.append(
            f"unknown options ignored: {_listed(_placed(given) for given in unknown.values())}; "
            "sbatch rejects them unless a SPANK plugin of the site defines them"
        )
    return notes


def _placed(given: Given) -> str:
    alike = get_close_matches(given.name[:40], BY_NAME, 1, _ALIKE)
    meant = f", did you mean --{alike[0]}?" if alike else ""
    return f"--{given.name[:40]} ({given.where}{meant})"


def _listed(texts: Iterator[str]) -> str:
    """Return the first few; the others are not even generated."""
    shown = list(islice(texts, _SHOWN))
    return ", ".join([*shown, *(["..."] if next(texts, None) is not None else [])])
