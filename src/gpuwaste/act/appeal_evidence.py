"""ActEvidence: advice and actions as evidence of appeals, and the mail with the reply."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, Self

from gpuwaste.act.actions.action_manager import ActionManager
from gpuwaste.act.actions.action_parts import ActionParts
from gpuwaste.act.actions.action_types import ActionEntry, action_id
from gpuwaste.advice.verdicts.verdict_reads import SAID
from gpuwaste.advice.verdicts.verdict_store import VerdictStore
from gpuwaste.core.parts import Parts
from gpuwaste.core.text import masked
from gpuwaste.core.units import DAY_S
from gpuwaste.ledger.appeals.appeal_evidence import AppealEvidence, Evidence
from gpuwaste.ledger.appeals.appeal_text import subject_words
from gpuwaste.ledger.reports.job_types import Appeal
from gpuwaste.slurm.accounting.job_record import JobRecord

_DONE: Final = frozenset({"sent", "confirmed"})
_MAIL: Final = "notify"
_VALID_S: Final = 3 * DAY_S  # for a mail server that is down
_OF_ADVICE: Final = ("policy", "mode", "action", "would_be", "lines", "p")
_OF_ACTION: Final = ("rule", "rule_hash", "kind", "decided", "sent", "status", "reason", "answer")


class ActEvidence(AppealEvidence):
    """Reads actions and verdicts. Raises StoreError."""

    def __init__(self, manager: ActionManager, verdicts: VerdictStore) -> None:
        self._manager = manager
        self._verdicts = verdicts

    @classmethod
    def part_of(cls, parts: Parts) -> Self:
        """Return the part of a hub."""
        return cls(parts.get(ActionParts).manager, parts.get(VerdictStore))

    def action(self, runs: Sequence[JobRecord]) -> Evidence | None:
        """Return the last action that was done to one of these runs, with the facts of its rule; a mail is none."""
        rows = self._manager.store.of_runs([run.run_key for run in runs])
        done = [row for row in rows if row.status in _DONE and row.kind != _MAIL]
        if not done:
            return None
        last = max(done, key=lambda row: (row.sent or row.decided, row.id))
        facts = {name: getattr(last, name) for name in _OF_ACTION} | {"facts": _parsed(last.facts)}
        return Evidence("action", last.id, facts, [run for run in runs if run.run_key == last.run])

    def advice(self, runs: Sequence[JobRecord]) -> Evidence | None:
        """Return the last advice that the owner saw on one of these runs."""
        users, ids = {run.user for run in runs}, {run.verdict_id for run in runs if run.verdict_id}
        rows = self._verdicts.told(ids, runs[0].cluster, {run.job_id for run in runs}) if ids else []
        seen = [row for row in rows if row["user"] in users and row["action"] in SAID]
        return _of_verdict(seen[-1], runs) if seen else None

    def verdict(self, user: str, verdict: str) -> Evidence | None:
        """Return the advice with an id that a user saw: also of a submission that was rejected."""
        rows = self._verdicts.told({verdict}, "", ())
        seen = [row for row in rows if row["user"] == user and row["action"] in SAID]
        return _of_verdict(seen[0], ()) if seen else None

    def closed(self, appeal: Appeal) -> None:
        """Have the reply mailed to the user, where this hub sends mail."""
        now = self._manager.store.now()
        subject = f"appeal/{appeal.id}"
        about = masked(subject_words(appeal))
        text = [
            f"Your appeal about {about} is closed: {appeal.outcome}.", "", "You wrote:", f"  {appeal.words}", "",
            f"Reply of {appeal.replied_by}:", f"  {appeal.reply}",
        ]  # fmt: skip
        mail = ActionEntry(
            id=action_id("", _MAIL, subject, "closed"), rule="", rule_hash="", kind=_MAIL, subject=subject,
            user=appeal.user, options={"subject": f"Your appeal about {about}"[:150], "text": "\n".join(text)},
            facts="{}", approve="none", decided=now, expires=now + _VALID_S, status="intended", since=now,
        )  # fmt: skip
        self._manager.intend([mail])


def _of_verdict(row: Mapping[str, Any], runs: Sequence[JobRecord]) -> Evidence:
    return Evidence("verdict", row["id"], {name: row[name] for name in _OF_ADVICE}, runs)


def _parsed(facts: str) -> Any:
    try:
        return json.loads(facts)
    except ValueError:
        return facts
