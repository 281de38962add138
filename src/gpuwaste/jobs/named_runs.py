"""The runs that a printed or raw id names: 7 a job, array or het job, 3_1 a task, 4+1 a component."""

import re
from collections.abc import Collection
from typing import Any, Final

from gpuwaste.core.scope import ClusterAccount, account_rows
from gpuwaste.jobs.run_rows import job_record
from gpuwaste.slurm.accounting.job import JobRecord
from gpuwaste.store.database import Database

_FIRST_NUMBER: Final = re.compile(r"[0-9]{1,18}(?![0-9])")


def pick_named(
    db: Database,
    printed_id: str,
    *,
    accounts: Collection[ClusterAccount] | None = None,
    reader: str | None = None,
) -> list[JobRecord]:
    """Return every run that an id names, and leave them picked on this connection, for a document of them.

    `accounts` keeps to runs of these accounts and, where `reader` is given, to that user's own; None is every run.
    """
    db.run("ledger_job_runs", _parameters(printed_id, accounts, reader))
    return [job_record(row) for row in db.rows("ledger_picked")]


def _parameters(printed_id: str, accounts: Collection[ClusterAccount] | None, reader: str | None) -> dict[str, Any]:
    number = _FIRST_NUMBER.match(printed_id)
    return {
        "printed_id": printed_id,
        "first": int(number[0]) if number else None,
        "number": printed_id.isdecimal(),
        "accounts": account_rows(accounts),
        "reader": reader,
    }
