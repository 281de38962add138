"""faults.md, from the declared faults of the submit path and from what `make faults` measured last."""

from typing import Final

from tests.system.fault_cases import CASES, MODULE, Measured, read_measured

from tools.reference.markdown import code, document, table

_INTRO: Final = f"""
Faults between sbatch and the advisor, and their effect. Each row is a test in `{MODULE}`: it submits jobs without a
pause through the real `sbatch` to a real slurmctld with the C plugin, with a policy in force that rejects some of
them while the advisor works. The fault starts in the middle of that load and ends again.

In every case no job is lost, duplicated or wrongly rejected; slurmctld keeps its pid unless it is restarted, and its
numbers of threads and open files return to what they were; `squeue`, `sinfo` and `scontrol` work meanwhile; and
verdicts resume afterwards without manual action.
"""
_MEASURED: Final = """
`make faults` runs the tests and writes what each one measured; a test that fails writes no row. *Refused* are
rejects by the policy of the test; for odd job descriptions, those that Slurm rejects without the plugin as well. *Cut*
are submissions without an answer because slurmctld itself was restarted. The longest submission includes the start of
`sbatch`, and waiting for slurmctld while that was down. The deadline in these tests is 250 ms instead of the default
of 5 ms, so that the figures are those of the fault and not of a slow host. *Missed* are exchanges without a valid
reply, *opened* is how often the breaker opened, both as counted by the plugin; there are none if it was restarted.
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
