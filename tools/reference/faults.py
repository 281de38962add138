"""faults.md, from the declared faults of the submit path and from what `make faults` measured last."""

from typing import Final

from tests.system.fault_cases import CASES, MODULE, Measured, read_measured

from tools.reference.markdown import code, document, table

_INTRO: Final = f"""
What can go wrong on the way of a submission, and what happens then. Each row is a test in `{MODULE}`: it submits
jobs without a pause through the real `sbatch` to a real slurmctld with the C plugin, with a policy in force that
refuses some of them while the advisor is well. The fault comes in the middle of that load and goes again.

In every case no job is lost, doubled or refused wrongly; slurmctld keeps its pid where it is not restarted, and its
threads and open files come back to what they were; `squeue`, `sinfo` and `scontrol` are answered meanwhile; and
verdicts are given again afterwards, without anybody's help.
"""
_MEASURED: Final = """
`make faults` runs the tests and writes what each one measured; a test that fails leaves no row. *Refused* are
rejections that the policy of the test asks for; of odd job descriptions, those that Slurm refuses without the plugin
too. *Cut* are submissions that slurmctld left without an answer because it
was itself restarted. The longest submission includes the start of `sbatch`, and waiting for slurmctld where that was
away; the deadline of these tests is 250 ms, not the default of 5 ms, so that a slow host measures the faults and not
itself. *Missed* are exchanges without a good reply, *opened* the openings of the breaker, both as the plugin counts
them; a plugin that began anew has none.
"""


def page() -> str:
    """Return the page: what is declared, then what was measured."""
    declared = [(case.fault, case.meanwhile, code(case.test)) for case in CASES.values()]
    measured = read_measured()
    rows = [(case.fault, *_cells(measured.get(key))) for key, case in CASES.items()]
    header = ("fault", "Slurm", "submissions", "refused", "cut", "longest, ms", "missed", "opened")
    return document(
        "Faults of the submit path",
        _INTRO,
        table(("fault", "while it lasts", "test"), declared),
        "## Measured",
        _MEASURED,
        table(header, rows),
    )


def _cells(row: Measured | None) -> tuple[str, ...]:
    if row is None:
        return ("not measured", *[""] * 6)
    numbers = (row.submissions, row.refused, row.cut, row.longest_ms, row.missed, row.opened)
    return (row.slurm, *("" if number is None else f"{number:,}" for number in numbers))
