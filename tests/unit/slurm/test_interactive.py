"""What makes a run interactive."""

import pytest

from gpuwaste.slurm.formats.printed_run import is_interactive


@pytest.mark.parametrize(
    ("line", "steps", "interactive"),
    [
        ("/usr/bin/srun -n2 hostname", ["0"], True),
        ("salloc -N1", ["interactive"], True),
        ("sbatch job.sh", [], False),
        ("srun job.sh", ["batch", "0"], False),
        ("", ["batch", "0"], False),
        ("", ["0"], True),
        ("", ["interactive", "extern"], True),
        ("", ["extern"], False),
        ("", [], False),
    ],
)
def test_the_line_tells_and_else_the_steps(line: str, steps: list[str], interactive: bool) -> None:
    """A batch step settles it; then the submit line; then a step without a batch step beside it."""
    assert is_interactive(line, steps) is interactive


def test_a_later_part_of_a_het_job_is_not_guessed() -> None:
    """Its batch step stands with the first component, so a numbered step proves nothing without a line."""
    assert not is_interactive("", ["0"], het_part=True)
    assert is_interactive("srun x", ["0"], het_part=True)
