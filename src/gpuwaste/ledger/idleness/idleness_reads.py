"""IdlenessReads: answers whether a job or a node is idle, within a caller's scope."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final, Literal, Self

from msgspec.structs import replace

from gpuwaste.core.clock import Clock
from gpuwaste.core.config import Config
from gpuwaste.core.parts import Part, Parts, Reloads
from gpuwaste.core.refusal import LATER, Refusal, not_found
from gpuwaste.core.scope import Scope
from gpuwaste.core.worker import Bus
from gpuwaste.jobs.cluster_facts import ClusterFacts, UnknownSiteError
from gpuwaste.jobs.host_ports import HostPorts
from gpuwaste.jobs.importers.accounting_importer import Importer
from gpuwaste.ledger.idleness.accounting_backlog import AccountingBacklog
from gpuwaste.ledger.idleness.agent_clocks import TRANSIT_MS, AgentClocks
from gpuwaste.ledger.idleness.answer_parts import AnswerBasis, OnceAskedJobs, common_stretch, run_without_gpus
from gpuwaste.ledger.idleness.idle_judge import (
    IdleKnowledge,
    IdleLimits,
    Stretch,
    answer_of,
    judge_run,
    others_of,
    too_little,
)
from gpuwaste.ledger.idleness.idle_node import NodeView, judge_node
from gpuwaste.ledger.idleness.idleness_types import IdlenessDocument, IdleReason, IdleRun
from gpuwaste.ledger.idleness.run_proofs import RunProof, node_runs, run_proofs
from gpuwaste.ledger.idleness.slurm_jobs import SlurmJobs
from gpuwaste.ledger.judging import Judging
from gpuwaste.ledger.ledger import LedgerSettings
from gpuwaste.ledger.reports.document_queries import DocumentQueries
from gpuwaste.ledger.reports.report_builder import is_recorded
from gpuwaste.ledger.run_keeps import RunKeeps
from gpuwaste.slurm.run_key import RunKey
from gpuwaste.store.database import Database
from gpuwaste.store.hub.hub_store import HubStore

VALID_S: Final = 60
LEAST_S: Final = 60  # the least idle time: as long as a run of zeros that counts as waste
NODES_MAX_S: Final = 900  # Slurm's nodes are read every five minutes
_READS: Final = 3.0  # accounting is current for so many of its intervals
_READS_LEAST_S: Final = 180.0
_ROUND_S: Final = 120  # further back than what a yes needs: ends of runs, for an answer that says since when


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleQuestion:
    """What is asked about a job or a node; None is the site's default."""

    name: str
    for_s: int | None = None
    max_age_s: int | None = None
    nonce: str = ""


class IdlenessReads(Part):
    """For any thread; blocks on the store, and on Slurm for a yes."""

    def __init__(
        self,
        store: HubStore,
        documents: DocumentQueries,
        site: ClusterFacts,
        importer: Importer,
        *,
        slurm_jobs: SlurmJobs,
        clocks: AgentClocks,
        kept: RunKeeps,
        backlog: AccountingBacklog,
        settings: LedgerSettings,
        clock: Clock,
        idle_after_s: float,
    ) -> None:
        """Take the sources; `idle_after_s` is the site's own threshold."""
        self._store = store
        self._documents = documents
        self._site = site
        self._importer = importer
        self._slurm_jobs = slurm_jobs
        self._clocks = clocks
        self._kept = kept
        self._backlog = backlog
        self._settings = settings
        self._clock = clock
        self.idle_after_s = idle_after_s

    @classmethod
    def part_of(cls, parts: Parts) -> Self:
        """Return the part of a hub."""
        part = cls(
            parts.get(HubStore),
            parts.get(DocumentQueries),
            parts.get(ClusterFacts),
            parts.get(Importer),
            slurm_jobs=parts.get(SlurmJobs),
            clocks=parts.get(AgentClocks),
            kept=parts.get(RunKeeps),
            backlog=parts.get(AccountingBacklog),
            settings=parts.get(Judging).standing,
            clock=parts.get(HostPorts).clock,
            idle_after_s=parts.get(Config).hub.idle_after_s,
        )
        parts.get(Bus).subscribe(LedgerSettings, part.judge_by)
        return part

    @property
    def reloads(self) -> Reloads:
        """The site's own threshold."""
        return {("hub.idle_after_s",): lambda c: setattr(self, "idle_after_s", c.hub.idle_after_s)}

    def judge_by(self, settings: LedgerSettings) -> None:
        """Use other thresholds from the next answer on."""
        self._settings = settings

    def job(self, scope: Scope, question: IdleQuestion) -> IdlenessDocument:
        """Answer about the runs of a job that have not ended: yes only if there is one and all are idle.

        Raises Refusal 404 both for a job that does not exist and for one that the caller may not see.
        """
        cluster, limits = self._cluster(), self._limits(question)
        runs = [run for run in self._documents.runs(scope, question.name) if run.cluster == cluster]
        if not runs:
            raise not_found()
        open_ = [run for run in runs if run.end is None and not run.ended]
        knowing = self._knowing()
        with self._store.reader() as db:
            proofs = self.proofs(db, [run.run_key for run in open_], knowing.known.now)
        self._note_kept(knowing, proofs)
        found = {proof.run.job.run_key: judge_run(proof, limits, knowing.known) for proof in proofs}
        judged = [found.get(run.run_key) or run_without_gpus(run) for run in open_]
        reasons = list[IdleReason](dict.fromkeys(reason for run in judged for reason in run.reasons))
        if not judged:
            reasons.append("ended")
        stretch = common_stretch(judged)
        if not reasons:
            reasons += too_little(stretch, limits, knowing.known.now)
        if not reasons:
            reasons += others_of(question.name, [run.run_key for run in open_], knowing.known.slurmctld())
        return self._document(question, "job", limits, knowing, judged, reasons, stretch)

    def node(self, scope: Scope, question: IdleQuestion) -> IdlenessDocument:
        """Answer about a node, for operators and staff. Raises Refusal 404 for others, and for no node of Slurm's."""
        if not scope.everything:
            raise not_found()
        cluster, limits = self._cluster(), self._limits(question)
        self._site.refresh()
        node = next((one for one in self._site.nodes if one.name == question.name), None)
        if node is None and self._site.nodes_read is None:
            raise Refusal(LATER, "Slurm's nodes have not been read yet: try again later")
        if node is None:
            raise not_found()
        self._backlog.want()
        knowing = self._knowing()
        searched_from = knowing.known.now - limits.for_s - limits.max_age_s - _ROUND_S
        with self._store.reader() as db:
            runs = node_runs(db, cluster, node.name, searched_from)
            proofs = self.proofs(db, runs.open, knowing.known.now)
        self._note_kept(knowing, proofs)
        by_key = {proof.run.job.run_key: proof for proof in proofs}
        verdict = judge_node(
            NodeView(node.name, cluster, node.gpu_count, runs, by_key, searched_from), limits, knowing.known
        )
        reasons = list(verdict.reasons)
        if not reasons and knowing.known.now - (self._site.nodes_read or 0) > NODES_MAX_S:
            reasons.append("slurmctld")
        document = self._document(question, "node", limits, knowing, verdict.runs, reasons, verdict.stretch)
        return replace(document, gpus=node.gpu_count, free_gpus=verdict.free)

    def proofs(self, db: Database, runs: Collection[RunKey], now: int) -> list[RunProof]:
        """Return what is known of the GPUs of these runs. Raises StoreError."""
        return run_proofs(db, runs, self._settings, now)

    def _cluster(self) -> str:
        try:
            return self._site.cluster()
        except UnknownSiteError as error:
            raise Refusal(LATER, str(error)) from error

    def _limits(self, question: IdleQuestion) -> IdleLimits:
        """Return the limits of a question: the site's where it has none."""
        for_s = max(LEAST_S, int(self.idle_after_s)) if question.for_s is None else question.for_s
        default = int(self._settings.pending_s) + TRANSIT_MS // 1000
        return IdleLimits(for_s, default if question.max_age_s is None else question.max_age_s)

    def _knowing(self) -> AnswerBasis:
        """Return what is known besides the store; it is taken before the store is read, so that it is not newer."""
        jobs = OnceAskedJobs(self._slurm_jobs)
        current_s = max(_READS * self._importer.settings.every_s, _READS_LEAST_S)
        read, now = self._importer.status.read_until, self._clock.utc_s()
        kept: dict[RunKey, int] = {}
        complete, memory_s = self._backlog.complete_by(read), self._backlog.memory_s
        known = IdleKnowledge(now, read, int(current_s), self._clocks.offset, kept, jobs, complete, memory_s)
        return AnswerBasis(known, kept, jobs)

    def _note_kept(self, knowing: AnswerBasis, proofs: Sequence[RunProof]) -> None:
        for proof in proofs:
            run = proof.run.job.run_key
            until = self._kept.kept_until(run, knowing.known.now)
            if until is not None:
                knowing.kept[run] = until

    def _document(  # noqa: PLR0917 the parts of an answer
        self,
        question: IdleQuestion,
        about: Literal["job", "node"],
        limits: IdleLimits,
        knowing: AnswerBasis,
        runs: Sequence[IdleRun],
        reasons: Sequence[IdleReason],
        stretch: Stretch | None,
    ) -> IdlenessDocument:
        known, jobs = knowing.known, knowing.jobs.found
        some = stretch is not None and stretch.length_s > 0
        with self._store.reader() as db:
            recorded = is_recorded(db)
        return IdlenessDocument(
            recorded=recorded,
            generated=known.now,
            about=about,
            name=question.name,
            cluster=self._cluster(),
            nonce=question.nonce,
            for_s=limits.for_s,
            max_age_s=limits.max_age_s,
            answer=answer_of(reasons),
            since=stretch.since if stretch is not None and some else None,
            as_of=None if stretch is None else stretch.as_of,
            idle_s=stretch.length_s if stretch is not None and some else None,
            valid_until=known.now + VALID_S,
            valid_s=VALID_S,
            reasons=list(reasons),
            runs=list(runs),
            accounting_read=known.accounting_read,
            slurmctld_read=None if jobs is None else jobs.read,
        )
