"""The runs of a user's program, from accounting, the ledger and the audit: labels for the estimates of that program."""

from gpuwaste.jobs.program_estimate import MAX_RUNS, ProgramRun, ProgramRunsAnswer
from gpuwaste.slurm.submit.program_tie import tie_from
from gpuwaste.store.database import Database


def program_runs(db: Database, cluster: str, user: str, program: str) -> ProgramRunsAnswer:
    """Return the newest completed runs of a user's program, at most MAX_RUNS. Raises StoreError."""
    asked = {"cluster": cluster, "user": user, "program": program, "most": MAX_RUNS}
    found = []
    for row in db.rows("program_runs", asked):
        tie = tie_from(row.pop("program"))
        if tie is not None and tie.program == program:
            found.append(ProgramRun(**row, steps=tie.steps))
    return ProgramRunsAnswer(runs=found)
