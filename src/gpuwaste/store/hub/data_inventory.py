"""The inventory of the hub's store: the kind of each text column, how it is erased, how long rows are kept.

A new table or text column in the schema needs a line here (tests/unit/store/test_data_inventory.py). `erasure.py`
erases by it, `row_deletion.py` deletes by it, docs/reference/stored-data.md is made from it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Literal

from gpuwaste.core.units import DAY_S

FOREVER: Final = "forever"
_MICRO: Final = 1_000_000
_TEXTS: Final = "VARCHAR"


class Text(StrEnum):
    """The content of a text column."""

    PERSON = "a user's name"
    ACCOUNT = "an account, a Unix group or an address that can be named after its user"
    TYPED = "text that the user typed, or that is derived from it"
    MENTION = "text that can name users"
    SITE = "names that Slurm or the administrators give"
    OWN = "words, numbers and hashes of gpuwaste"


class Erase(StrEnum):
    """What happens to a row of the erased person, or to another's row that names them."""

    REWRITE = "names and texts are replaced"
    DELETE = "the row is deleted"


@dataclass(frozen=True, slots=True)
class Retention:
    """Rows are deleted `days` days (a configuration key) after the time in `column`, in 1/`per_second` seconds."""

    days: str
    column: str
    per_second: int = 1

    def before(self, now: int, days: int) -> int:
        """Return the value of the column before which rows are deleted, `now` in UTC seconds."""
        return (now - days * DAY_S) * self.per_second


@dataclass(frozen=True, slots=True)
class StoredTable:
    """One table. `owner` is the column with the owner's name of a row, or "run" for the owner of the row's run."""

    texts: Mapping[str, Text]
    kept: Retention | str
    owner: Literal["", "run", "user"] = ""
    own_rows: Erase = Erase.REWRITE
    other_rows: Erase = Erase.REWRITE
    blank: Mapping[str, str] = field(default_factory=dict)
    """The replacement of a TYPED text, as SQL, where it is not an empty text."""

    def of(self, *kinds: Text) -> tuple[str, ...]:
        """Return the columns of these kinds."""
        return tuple(name for name, kind in self.texts.items() if kind in kinds)

    @property
    def personal(self) -> bool:
        """Whether it can name a person."""
        return bool(self.of(Text.PERSON, Text.ACCOUNT, Text.TYPED, Text.MENTION))


def is_text(kind: str) -> bool:
    """Return whether a column of this DuckDB type holds text, also in a list or a structure."""
    return _TEXTS in kind


def _columns(**kinds: str) -> Mapping[str, Text]:
    """Return the kind of each column, from the columns of each kind."""
    return {column: Text[kind.upper()] for kind, columns in kinds.items() for column in columns.split()}


_VERDICTS: Final = "hub.verdict_days"
_IMPORTED: Final = "forever; only if history was imported"

INVENTORY: Final[Mapping[str, StoredTable]] = {
    "jobs": StoredTable(
        _columns(
            person="user", account="account group", typed="name submit_line constraints program", mention="reservation",
            site="cluster partition qos req_tres nodes gpu_type alloc_tres state flags reason",
            own="printed_id verdict_id",
        ),
        FOREVER, owner="user",
    ),
    "steps": StoredTable(_columns(typed="name", site="cluster state", own="step"), FOREVER, owner="run"),
    "machine_nodes": StoredTable(_columns(site="cluster node gpu_type partitions features"), FOREVER),
    "machine_outages": StoredTable(_columns(site="cluster node state"), FOREVER),
    "machine_reservations": StoredTable(_columns(mention="name", site="cluster nodes flags"), FOREVER),
    "held_on_node": StoredTable(_columns(site="cluster node"), FOREVER),
    "balance_hours": StoredTable(_columns(site="cluster partitions gpu_type", own="class"), FOREVER),
    "balance_blockers": StoredTable(_columns(site="cluster node", own="class"), FOREVER),
    "hours": StoredTable(
        _columns(site="cluster node gpu_uuid", own="unknown_reason map_source confidence"),
        "until they are summed by day (`hub.rollup_days`)",
    ),
    "days": StoredTable(_columns(site="cluster node gpu_uuid", own="unknown_reason map_source confidence"), FOREVER),
    "accounted_use": StoredTable(_columns(site="cluster node gpu", own="source"), FOREVER),
    "events": StoredTable(_columns(site="cluster", own="kind"), FOREVER),
    "partitions": StoredTable(_columns(site="cluster name"), FOREVER),
    "marks": StoredTable(_columns(own="key"), FOREVER),
    "quarantine": StoredTable(
        _columns(mention="source reason raw"), Retention(_VERDICTS, "at_utc"), other_rows=Erase.DELETE
    ),
    "imports": StoredTable(_columns(mention="key context", site="cluster", own="kind end_rule"), _IMPORTED),
    "pages": StoredTable(_columns(mention="key place notes", own="digest"), _IMPORTED),
    "verdicts": StoredTable(
        _columns(
            person="user", account="account", typed="override name reasons lines script",
            site="cluster policy partition qos node",
            own="id op mode action would_be held p quantiles triggers model_hash feature_hash shadow campaign",
        ),
        Retention(_VERDICTS, "at_utc_us", _MICRO), owner="user",
    ),
    "rescored": StoredTable(_columns(site="cluster", own="moment p model_hash"), Retention(_VERDICTS, "at_utc")),
    "notices": StoredTable(
        _columns(person="user", mention="detail address document", own="kind status why"),
        Retention("notify.audit_days", "period_end"),
        owner="user", own_rows=Erase.DELETE, other_rows=Erase.DELETE,
    ),
    "notice_opt_outs": StoredTable(
        _columns(person="user"), "until the user wants mail again", owner="user", own_rows=Erase.DELETE
    ),
    "rules": StoredTable(_columns(own="thresholds"), "while runs are judged by them"),
    "judged": StoredTable(
        _columns(
            person="user", account="account", typed="name", mention="causes", site="cluster partition state gpu_type",
            own="printed_id own shared cause_kinds",
        ),
        FOREVER, owner="user",
    ),
    "summed_days": StoredTable({}, FOREVER),
    "day_sums": StoredTable(
        _columns(person="user", account="account", site="cluster partition"), FOREVER, owner="user"
    ),
    "day_reasons": StoredTable(
        _columns(person="user", account="account", site="cluster partition", own="of what reason"),
        FOREVER, owner="user",
    ),
    "right_sizes": StoredTable(
        _columns(
            person="user", account="account", typed="name", mention="finding",
            site="cluster partition gpu_type", own="kind",
        ),
        "until the next pass, a day at most", owner="user", own_rows=Erase.DELETE, other_rows=Erase.DELETE,
    ),
    "appeals": StoredTable(
        _columns(
            person="user replied_by", typed="words evidence reply", site="cluster",
            own="id printed_id kind about status outcome",
        ),
        Retention(_VERDICTS, "at_utc"), owner="user", blank={"evidence": "'{}'"},
    ),
    "told_events": StoredTable(
        _columns(mention="subject data", site="cluster", own="kind id"),
        Retention(_VERDICTS, "at_utc"), owner="run", own_rows=Erase.DELETE, other_rows=Erase.DELETE,
    ),
    "dead_letters": StoredTable(
        _columns(mention="reason", site="outlet", own="id kind"), Retention(_VERDICTS, "at_utc")
    ),
    "actions": StoredTable(
        _columns(
            person="user person", account="account", mention="options facts plan reason answer",
            site="rule subject cluster", own="id rule_hash kind approve status",
        ),
        Retention(_VERDICTS, "decided_utc"), owner="user", own_rows=Erase.DELETE,
    ),
    "actor_lease": StoredTable(_columns(site="holder", own="name"), "while an actor runs"),
    "rule_ladders": StoredTable(_columns(site="rule subject", own="hash"), "while the rule's condition holds"),
    "rule_firings": StoredTable(
        _columns(
            person="user", account="account", typed="facts", site="rule cluster subject",
            own="id hash mode action campaign",
        ),
        Retention(_VERDICTS, "at_utc"), owner="user", blank={"facts": "'{}'"},
    ),
    "campaigns": StoredTable(_columns(mention="text", own="name hash key_print"), Retention(_VERDICTS, "gone_utc")),
    "campaign_record": StoredTable(_columns(mention="words", own="campaign what hash"), Retention(_VERDICTS, "at_utc")),
    "keeps": StoredTable(
        _columns(person="user asked_by", account="account", typed="reason", site="cluster", own="id printed_id"),
        Retention(_VERDICTS, "at_utc"), owner="user",
    ),
    "rule_demotions": StoredTable(
        _columns(person="restored_by", site="rule", own="hash"), "as long as the store; it says which rules may act"
    ),
    "inlet_quarantine": StoredTable(
        _columns(mention="sent_id kind reason raw", site="inlet", own="digest"),
        Retention(_VERDICTS, "at_utc"), other_rows=Erase.DELETE,
    ),
    "inlet_requests": StoredTable(_columns(site="inlet", own="digest"), "while the request's signature is valid"),
    "schema_version": StoredTable(_columns(own="schema"), FOREVER),
}  # fmt: skip
"""Every table of the hub's schema."""
