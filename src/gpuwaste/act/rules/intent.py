"""Intent: an action that a rule wants, before anybody has taken it (CONTRACTS.md, "Action")."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from gpuwaste.slurm.run_key import RunKey

Approval = Literal["none", "person"]
ActionStatus = Literal["intended", "approved", "sent", "confirmed", "failed", "moot", "refused", "expired"]
"""Where an action stands, from the rule's intent to one of five ends (CONTRACTS.md, "Action")."""


@dataclass(frozen=True, slots=True)
class ActionTarget:
    """What an action is about: the run's key as text, node/NAME or model/NAME; of a run its key and user."""

    subject: str
    run: RunKey | None = None
    user: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent(ActionTarget):
    """One action on one run, node or model, as a rule decided it.

    `kind` names an action of the catalogue, `options` are its parameters (names and texts, as in the rule's file).
    `facts` is JSON of what the rule saw. Nobody takes it up after `expires_utc`. `approve` is "person" where somebody
    has to agree first.
    """

    id: str
    rule: str
    rule_hash: str
    kind: str
    decided_utc: int
    expires_utc: int
    facts: str
    options: Mapping[str, str] = field(default_factory=dict)
    account: str = ""
    approve: Approval = "none"


def intent_id(rule: str, kind: str, subject: str, unique: str) -> str:
    """Return an intent's id: one step of one rule for one subject is one action, however often decided."""
    return hashlib.sha256(f"{rule}\0{kind}\0{subject}\0{unique}".encode("utf-8", "backslashreplace")).hexdigest()
