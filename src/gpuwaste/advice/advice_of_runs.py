"""AdviceOfRuns: the verdicts and the re-scorings of runs, for the ledger's documents."""

from collections.abc import Collection, Sequence
from typing import Self

from gpuwaste.advice.rescoring.rescore import Rescore
from gpuwaste.advice.rescoring.rescore_store import RescoreStore
from gpuwaste.advice.verdicts.verdict_reads import VerdictReads
from gpuwaste.core.parts import Parts
from gpuwaste.core.scope import Scope
from gpuwaste.jobs.host_ports import HostPorts
from gpuwaste.ledger.held import HeldRun
from gpuwaste.ledger.reports.report_types import Advice, SaidAgain
from gpuwaste.ledger.said_of_runs import SaidOfRuns
from gpuwaste.slurm.accounting.job import JobRecord
from gpuwaste.slurm.run import RunKey
from gpuwaste.store.hub.hub_store import HubStore


class AdviceOfRuns(SaidOfRuns):
    """Reads what was said, within a caller's scope."""

    def __init__(self, verdicts: VerdictReads, rescores: RescoreStore) -> None:
        self._verdicts = verdicts
        self._rescores = rescores

    @classmethod
    def part_of(cls, parts: Parts) -> Self:
        """Return the part of a hub."""
        return cls(parts.get(VerdictReads), RescoreStore(parts.get(HubStore), parts.get(HostPorts).clock))

    def advice(self, scope: Scope, runs: Sequence[JobRecord]) -> list[Advice]:
        """Return what was said of a job's submission and modifications (VerdictReads.advice)."""
        return self._verdicts.advice(scope, runs)

    def advice_of(self, scope: Scope, runs: Sequence[HeldRun]) -> list[list[Advice]]:
        """Return what was said of each of the runs (VerdictReads.advice_of)."""
        return self._verdicts.advice_of(scope, runs)

    def again(self, runs: Collection[RunKey]) -> list[SaidAgain]:
        """Return what was said of runs while they ran, the oldest first. Raises StoreError."""
        return [_again(said) for said in self._rescores.of(runs)]


def _again(said: Rescore) -> SaidAgain:
    run = said.run
    return SaidAgain(
        cluster=run.cluster, job_id=run.job_id, start=run.start, at=said.at_utc, moment=said.moment, p=said.p,
        limit_p=said.limit_p, limit_at=said.limit_at, usual=said.usual,
    )  # fmt: skip
