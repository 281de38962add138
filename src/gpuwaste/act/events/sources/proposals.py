"""Source of policy.proposed: saved simulations that propose a change."""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from gpuwaste.act.events.sources import SourceSnapshot, SourceStores
from gpuwaste.core.errors import NoDataError, StoreError
from gpuwaste.jobs.events.envelope import StoredEvent, tell
from gpuwaste.jobs.events.kinds.policy import PolicyProposed
from gpuwaste.sim import kept_simulations
from gpuwaste.sim.document import Proposal

_KIND: Final = "policy.proposed"
_MOST_TOLD: Final = 100_000


class _ProposalDocument(Struct):
    proposal: Proposal | None = None


class _ProposalFile(Struct):
    at: int
    document: _ProposalDocument


class Proposals:
    """Reads each new file of the directory once; what was reported before a restart is in the stream."""

    def __init__(self, stores: SourceStores) -> None:
        self._directory = stores.simulations
        self._stream = stores.events
        self._known: set[str] | None = None  # subjects in the stream; None before the first new file
        self._news: set[str] = set()
        self._read: dict[str, int] = {}  # mtime in ns by id
        self._found: dict[str, int] = {}

    def events(self, seen: SourceSnapshot) -> Sequence[StoredEvent]:
        """Return the proposals of simulations saved since the last check, the oldest first.

        A file that cannot be read gives none. Raises StoreError.
        """
        self._found, self._news = self._newest(), set()
        new = [identity for identity, at_ns in self._found.items() if self._read.get(identity) != at_ns]
        if not new:
            return []
        if self._known is None:
            self._known = {row["subject"] for row in self._stream.told_since((_KIND,), 0, _MOST_TOLD)}
        fresh = [identity for identity in new if _subject(identity) not in self._known]
        found = [event for identity in fresh if (event := self._proposal(identity, seen)) is not None]
        self._news = {event.subject for event in found}
        return found

    def told(self) -> None:
        """Record the last result as reported."""
        if self._known is not None:
            self._known |= self._news
        self._read = self._found

    def _proposal(self, identity: str, seen: SourceSnapshot) -> StoredEvent | None:
        if self._directory is None:
            return None
        try:
            kept = kept_simulations.read_as(self._directory, identity, _ProposalFile)
        except (NoDataError, StoreError):
            return None
        one = kept.document.proposal
        if one is None:
            return None
        words, figures = (one.change, one.scheduler), (one.mean_wait_s, one.low_s, one.high_s, one.later)
        data = PolicyProposed(seen.cluster, identity, *words, one.jobs, *figures, one.among, kept.at)
        return tell(_KIND, data, seen.now, subject=_subject(identity))

    def _newest(self) -> dict[str, int]:
        """Return the newest files, the oldest first, as many as the hub lists: mtime by id."""
        try:
            files = [] if self._directory is None else list(self._directory.glob("*.json"))
            by_age = sorted((path.stat().st_mtime_ns, path.stem) for path in files)
        except OSError:
            return {}
        return {identity: at_ns for at_ns, identity in by_age[-kept_simulations.MAX_LISTED :]}


def _subject(identity: str) -> str:
    return f"simulation/{identity}"


def make(stores: SourceStores) -> Proposals:
    """Return the source."""
    return Proposals(stores)
