"""Source of node.silent and node.back: nodes with held GPUs whose agent reports nothing."""

from collections.abc import Sequence

from gpuwaste.act.events.sources import OpenSubjects, SourceSnapshot, SourceStores
from gpuwaste.jobs.events.envelope import StoredEvent, tell
from gpuwaste.jobs.events.kinds.node import NodeHeard

_SILENT, _BACK = "node.silent", "node.back"


class SilentNodes:
    """Compares the silent nodes with the reported ones."""

    def __init__(self, stores: SourceStores) -> None:
        self._open = OpenSubjects(stores.events, _SILENT, _BACK)
        self._now: dict[str, int] = {}

    def events(self, seen: SourceSnapshot) -> Sequence[StoredEvent]:
        """Return the nodes that became silent, and those that are back."""
        known = self._open.subjects(seen.now)
        silent = {f"node/{one.node}": one for one in seen.held.silent}
        self._now = {subject: one.since for subject, one in silent.items()}
        fallen = [_event(seen, _SILENT, s, one.since) for s, one in silent.items() if s not in known]
        return fallen + [_event(seen, _BACK, s, since) for s, since in known.items() if s not in silent]

    def told(self) -> None:
        """Record the last result as reported."""
        self._open.replace(self._now)


def make(stores: SourceStores) -> SilentNodes:
    """Return the source."""
    return SilentNodes(stores)


def _event(seen: SourceSnapshot, kind: str, subject: str, since: int) -> StoredEvent:
    data = NodeHeard(seen.cluster, subject.removeprefix("node/"), since, float(max(0, seen.now - since)))
    return tell(kind, data, seen.now, subject=subject, unique=str(since))
