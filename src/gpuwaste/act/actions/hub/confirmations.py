"""Confirmations: which of the actions that rules want may be lent, by the last pass of the rules and their notices."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

from gpuwaste.act.actions.action_store import WAITING, ActionRow, ActionStore
from gpuwaste.act.actions.catalogue import actions
from gpuwaste.act.rules.intent import ActionStatus

_NOT_YET: Final = "waits until a pass of the rules has confirmed that its condition still holds"
_SHOWN: Final = 12  # characters of an id
_OPEN: Final[tuple[ActionStatus, ...]] = (*WAITING, "sent")


@dataclass(frozen=True, slots=True)
class _Pass:
    """What one pass found: the notice of each action that is still wanted, until UTC second `end`."""

    begin: int = 0
    end: int = 0
    notices: Mapping[str, str] = field(default_factory=dict)


class Confirmations:
    """In memory: after a start nothing is confirmed until the rules have passed. Any thread asks, one writes."""

    def __init__(self, store: ActionStore) -> None:
        self._store = store
        self._pass = _Pass()

    def take(self, notices: Mapping[str, str], for_s: float) -> None:
        """Note what a pass has found."""
        now = self._store.now()
        self._pass = _Pass(now, now + int(for_s), dict(notices))

    def ready(self) -> Collection[str]:
        """Return the ids of what may be lent now. Raises StoreError."""
        notices = self._notices()
        ends = self._store.ends({one for one in notices.values() if one})
        return [id_ for id_, one in notices.items() if not one or (one in ends and ends[one][0] == "confirmed")]

    def hindrance(self, row: ActionRow) -> str:
        """Return why an action that waits may not be lent yet, "" where it may. Raises StoreError."""
        kind = actions().get(row.intent.kind)
        if not row.intent.rule or kind is None or kind.execution is None or row.status not in WAITING:
            return ""
        notice = self._notices().get(row.intent.id)
        if notice is None:
            return _NOT_YET
        if not notice:
            return ""
        status, _ = self._store.ends([notice]).get(notice, ("not there", ""))
        return "" if status == "confirmed" else f"waits for its warning: action {notice[:_SHOWN]} is {status}"

    def unwarned(self) -> dict[str, str]:
        """Return the actions whose warning will not arrive any more, by id, with the reason. Raises StoreError."""
        found = {}
        notices = {id_: one for id_, one in self._notices().items() if one}
        ends = self._store.ends(set(notices.values()))
        for id_, one in notices.items():
            status, reason = ends.get(one, ("not there", ""))
            if status != "confirmed" and status not in _OPEN:
                said = f": {reason}" if reason else ""
                found[id_] = f"its warning was not sent: action {one[:_SHOWN]} is {status}{said}"
        return found

    def _notices(self) -> Mapping[str, str]:
        last = self._pass
        return last.notices if last.begin <= self._store.now() < last.end else {}
