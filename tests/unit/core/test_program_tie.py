"""What ties a job to a program: read from users' texts, bounded, and nothing but a hash and a number."""

import pytest

from gpuwaste.core.errors import UsageError
from gpuwaste.slurm.submit.program_tie import ProgramTie, ScriptProgram, comment_of, script_program, tie_from, tie_of

HASH = "0123456789abcdef" * 4


@pytest.mark.parametrize("tie", [ProgramTie(HASH), ProgramTie(HASH, 10_000)])
def test_what_is_written_is_read(tie: ProgramTie) -> None:
    """The option that gpuwaste prints, and what the hub keeps of it, give the same tie."""
    assert tie_of(comment_of(tie)) == tie
    assert tie_from(tie.text()) == tie


@pytest.mark.parametrize(
    "text",
    [
        f"gpuwaste:program={HASH},steps=5",
        f"my run; gpuwaste:program={HASH},steps=5; gpuwaste:override=tested",
        f"sbatch --comment='gpuwaste:program={HASH},steps=5' job.sh --steps=7",
        f"gpuwaste:program={HASH},steps=5 gpuwaste:program={'f' * 64}",
    ],
)
def test_a_tie_is_found_among_other_words(text: str) -> None:
    """Comments and submit lines have other words too; of several ties the first counts."""
    assert tie_of(text) == ProgramTie(HASH, 5)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "gpuwaste:program=",
        f"gpuwaste:program={HASH[:-1]}",
        f"gpuwaste:program={HASH}0",
        f"gpuwaste:program={HASH.upper()}",
        f"gpuwaste:program={HASH},steps=5x",
        f"gpuwaste:program={HASH},steps={'9' * 11}",
        f"gpuwaste:program=\x1b[31m{HASH}",
        "x" * 9000 + f"gpuwaste:program={HASH}",
    ],
)
def test_what_is_no_tie_is_none(text: str) -> None:
    """Half a hash, a longer one, steps out of bounds, escapes, and what is far behind in a long text."""
    assert tie_of(text) is None


def test_the_line_of_a_script() -> None:
    """The line names a file and steps; a script without it names none."""
    assert script_program("#!/bin/sh\n#SBATCH -G1\n#GPUWASTE program=step.hlo steps=500\r\n") == ScriptProgram(
        "step.hlo", 500
    )
    assert script_program("#GPUWASTE program=a/b.json\npython x") == ScriptProgram("a/b.json")
    assert script_program("#!/bin/sh\n# GPUWASTE program=x\n#GPUWASTED program=x\necho '#GPUWASTE program=x'\n") is None


@pytest.mark.parametrize(
    "line",
    [
        "#GPUWASTE",
        "#GPUWASTE steps=5",
        "#GPUWASTE program=a steps=0",
        "#GPUWASTE program=a b",
        "#GPUWASTE " + "x" * 9999,
    ],
)
def test_a_wrong_line_of_a_script_is_named(line: str) -> None:
    """One line says where it is and what is expected."""
    with pytest.raises(UsageError, match=r"^line 2 of the script: expected #GPUWASTE program=FILE steps=N$"):
        script_program(f"#!/bin/sh\n{line}\n")
