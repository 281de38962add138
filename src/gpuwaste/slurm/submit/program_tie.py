"""Links a job to its program: `--comment=gpuwaste:program=HASH,steps=N`, or `#GPUWASTE program=FILE steps=N`.

Users write both, so nothing but a hash and a number is taken from them. Accounting keeps the comment; the line of the
script names the file from which `gpuwaste predict` and `gpuwaste plan` estimate the program before it has run.
"""

import re
from dataclasses import dataclass
from typing import Final

from gpuwaste.core.errors import UsageError

MAX_STEPS: Final = 10**10
MAX_TEXT: Final = 8192
"""Characters of a comment or a submit line that are searched for a tie."""
_MAX_SCRIPT: Final = 1 << 16  # characters of a script that are searched for the line
_TIE: Final = re.compile(r"gpuwaste:program=([0-9a-f]{64})(?:,steps=([1-9][0-9]{0,9}))?(?![0-9A-Za-z_=]|,steps)")
_LINE: Final = re.compile(r"^#GPUWASTE\b([^\n]{0,2000})", re.MULTILINE)
_WORDS: Final = re.compile(r"[ \t]+program=(\S{1,1024})(?:[ \t]+steps=([1-9][0-9]{0,9}))?[ \t\r]*")


@dataclass(frozen=True, slots=True)
class ProgramTie:
    """A program's fingerprint, and the planned steps of the run; None: not declared."""

    program: str
    steps: int | None = None

    def text(self) -> str:
        """Return it as the hub keeps it: HASH or HASH,steps=N."""
        return self.program if self.steps is None else f"{self.program},steps={self.steps}"


@dataclass(frozen=True, slots=True)
class ScriptProgram:
    """The line of a batch script: the program's file, relative to the script's folder, and the steps."""

    file: str
    steps: int | None = None


def comment_of(tie: ProgramTie) -> str:
    """Return the sbatch option that ties a job to a program."""
    return f"--comment=gpuwaste:program={tie.text()}"


def tie_of(text: str) -> ProgramTie | None:
    """Return the tie in a comment or in a submit line, None where there is none; of several the first."""
    found = _TIE.search(text[:MAX_TEXT])
    return None if found is None else ProgramTie(found[1], int(found[2]) if found[2] else None)


def tie_from(text: str) -> ProgramTie | None:
    """Return the tie that ProgramTie.text wrote, None for anything else."""
    return tie_of(f"gpuwaste:program={text}")


def script_program(script: str) -> ScriptProgram | None:
    """Return the line of a script, None where there is none. Raises UsageError for an invalid line."""
    line = _LINE.search(script[:_MAX_SCRIPT])
    if line is None:
        return None
    found = _WORDS.fullmatch(line[1])
    if found is None:
        number = script.count("\n", 0, line.start()) + 1
        raise UsageError(f"line {number} of the script: expected #GPUWASTE program=FILE steps=N")
    return ScriptProgram(found[1], int(found[2]) if found[2] else None)
