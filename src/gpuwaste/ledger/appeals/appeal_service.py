"""Appeals: the owner of a job states that a judgement, advice or action was wrong; an operator's reply closes it."""

import re
import secrets
from collections.abc import Iterable, Sequence
from typing import Final, Self
from urllib.parse import parse_qs

from msgspec.structs import replace

from gpuwaste.core.parts import Part, Parts
from gpuwaste.core.refusal import BAD, CONFLICT, FORBIDDEN, NOT_FOUND, Refusal, not_found
from gpuwaste.core.scope import Scope
from gpuwaste.core.text import words_of
from gpuwaste.jobs.host_ports import HostPorts
from gpuwaste.ledger.appeals.appeal_evidence import AppealEvidence, Evidence
from gpuwaste.ledger.appeals.appeal_store import AppealPick, AppealStore
from gpuwaste.ledger.appeals.appeal_types import (
    MAX_OPEN,
    MAX_REPLY,
    MAX_WORDS,
    AppealOrder,
    AppealReply,
    Subject,
)
from gpuwaste.ledger.reports.document_queries import PRINTED_ID
from gpuwaste.ledger.reports.job_types import Appeal
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.slurm.run_key import RunKey
from gpuwaste.store.hub.hub_store import HubStore

_MAX_RUNS: Final = 1000  # of one job: the newest
_NEWEST: Final = 50
_FIELDS: Final = 4
_VERDICT: Final = re.compile(r"[0-9a-z]{16}", re.ASCII)


class Appeals(Part):
    """Stores owners' appeals and staff's replies, and shows them to users who may see the job."""

    def __init__(self, store: AppealStore, evidence: AppealEvidence) -> None:
        self._store = store
        self._evidence = evidence

    @classmethod
    def part_of(cls, parts: Parts) -> Self:
        """Return the part of a hub."""
        return cls(AppealStore(parts.get(HubStore), parts.get(HostPorts).clock), parts.get(AppealEvidence))

    def appeal(self, scope: Scope, order: AppealOrder) -> Appeal:
        """Store an appeal. Raises Refusal: 404 where the job or the verdict is not the caller's own."""
        words = _cleaned(order.reason, MAX_WORDS, "reason: say in a sentence what is wrong")
        evidence = self._about(scope.user, order.job, order.about)
        appeal = secrets.token_hex(6)
        if not self._store.add(appeal, scope.user, words, evidence, most_open=MAX_OPEN):
            raise Refusal(CONFLICT, f"{MAX_OPEN} of your appeals are open: wait for replies to them")
        return self._one(appeal)

    def reply(self, scope: Scope, appeal_id: str, reply: AppealReply) -> Appeal:
        """Close an appeal, and tell the user; for Slurm's operators and administrators. Raises Refusal."""
        if not scope.operator:
            raise Refusal(FORBIDDEN, "only an Operator or Administrator of Slurm may reply to appeals: see sacctmgr")
        text = _cleaned(reply.text, MAX_REPLY, "text: write a sentence to the user")
        appeal = self._one(appeal_id)
        if not self._store.close(appeal, scope.user, text, reply.outcome):
            raise Refusal(CONFLICT, f"appeal {appeal_id} is closed: nothing is changed")
        closed = self._one(appeal_id)
        self._evidence.closed(closed)
        return closed

    def of(self, runs: Iterable[RunKey], *, staff: bool = False) -> list[Appeal]:
        """Return the appeals on runs that the caller may see; evidence is for staff."""
        return _shown(self._store.of(list(runs)), staff=staff)

    def listed(self, pick: AppealPick, *, staff: bool) -> list[Appeal]:
        """Return appeals, the newest first."""
        return _shown(self._store.listed(pick), staff=staff)

    def newest(self) -> list[Appeal]:
        """Return the newest appeals of all users, for staff."""
        return self._store.listed(AppealPick(_NEWEST))

    def _one(self, appeal_id: str) -> Appeal:
        found = self._store.listed(AppealPick(1, appeal=appeal_id))
        if not found:
            raise Refusal(NOT_FOUND, f"no appeal {appeal_id!r:.40}: see gpuwaste appeal")
        return found[0]

    def _about(self, user: str, job: str, about: Subject | None) -> Evidence:
        """Return what an appeal is about. Raises Refusal: the same for what is not the user's and what is not there."""
        if not user:
            raise not_found()
        if _VERDICT.fullmatch(job) and not PRINTED_ID.fullmatch(job):
            found = self._evidence.verdict(user, job) if about in {None, "verdict"} else None
        elif PRINTED_ID.fullmatch(job) and (runs := self._store.own_runs(job, user)):
            newest = sorted(runs, key=lambda run: run.run_key.start)[-_MAX_RUNS:]
            found = self._of_job(newest, about)
        else:
            found = None
        if found is None:
            raise not_found()
        return found

    def _of_job(self, runs: Sequence[JobRecord], about: Subject | None) -> Evidence:
        """Return what an appeal on a job is about. Raises Refusal."""
        acted = self._evidence.action(runs) if about in {None, "action"} else None
        said = self._evidence.advice(runs) if about == "verdict" else None
        if found := acted or said:
            return found
        if about in {"action", "verdict"}:
            what = "no rule has acted on the job" if about == "action" else "the job got no advice"
            raise Refusal(BAD, f"about: {what}")
        return Evidence("judgement", runs=runs)


def form_fields(body: bytes) -> dict[str, str]:
    """Return the fields of a page's form. Raises Refusal."""
    try:
        fields = parse_qs(body.decode("utf-8"), max_num_fields=_FIELDS)
    except ValueError as error:
        raise Refusal(BAD, "the form cannot be read: reload the page and send it again") from error
    return {name: values[0] for name, values in fields.items()}


def _cleaned(text: str, most: int, empty: str) -> str:
    if len(text) > most:
        raise Refusal(BAD, f"{empty.partition(':')[0]}: longer than {most} characters")
    found = words_of(text, most)
    if not found:
        raise Refusal(BAD, empty)
    return found


def _shown(appeals: Iterable[Appeal], *, staff: bool) -> list[Appeal]:
    return [one if staff else replace(one, evidence="") for one in appeals]
