"""GET /v1/programs/runs: the caller's own runs of a program, from which their own next run is estimated.

A user can write any hash and any number of steps into a comment. The answer has only the caller's own runs, so a false
comment affects only its author's estimates.
"""

import re
from collections.abc import Callable
from typing import Final, Self

from gpuwaste.core.parts import Part, Parts
from gpuwaste.core.refusal import BAD, LATER, Refusal, not_found
from gpuwaste.core.scope import Scope
from gpuwaste.jobs.cluster_facts import ClusterFacts, UnknownSiteError
from gpuwaste.jobs.program_estimate import MAX_RUNS, ProgramRun, ProgramRunsAnswer
from gpuwaste.slurm.submit.program_tie import tie_from
from gpuwaste.store.database import Database
from gpuwaste.store.hub.hub_store import HubStore

_HASH: Final = re.compile(r"[0-9a-f]{64}")


def program_runs(db: Database, cluster: str, user: str, program: str) -> ProgramRunsAnswer:
    """Return the newest completed runs of a user's program, at most MAX_RUNS. Raises StoreError."""
    asked = {"cluster": cluster, "user": user, "program": program, "most": MAX_RUNS}
    found = []
    for row in db.rows("program_runs", asked):
        tie = tie_from(row.pop("program"))
        if tie is not None and tie.program == program:
            found.append(ProgramRun(**row, steps=tie.steps))
    return ProgramRunsAnswer(runs=found)


class ProgramRuns(Part):
    """Reads runs of programs; blocks on the store."""

    def __init__(self, store: HubStore, cluster: Callable[[], str]) -> None:
        self._store, self._cluster = store, cluster

    @classmethod
    def part_of(cls, parts: Parts) -> Self:
        """Return the part of a hub."""
        return cls(parts.get(HubStore), parts.get(ClusterFacts).cluster)

    def of(self, scope: Scope, program: str) -> ProgramRunsAnswer:
        """Return the caller's completed runs of a program. Raises Refusal."""
        if not scope.user:
            raise not_found()
        if not _HASH.fullmatch(program):
            raise Refusal(BAD, "program: expected the fingerprint that gpuwaste estimate prints, 64 hexadecimal digits")
        try:
            cluster = self._cluster()
        except UnknownSiteError as error:
            raise Refusal(LATER, str(error)) from error
        with self._store.reader() as db:
            return program_runs(db, cluster, scope.user, program)
