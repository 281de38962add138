"""Source of policy.proposed: the simulation that was saved last, where it proposes a change."""

from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from gpuwaste.analytics import kept_simulations
from gpuwaste.core.errors import NoDataError, StoreError
from gpuwaste.core.told_event import ToldEvent
from gpuwaste.events.envelope import tell
from gpuwaste.events.kinds.policy import PolicyProposed
from gpuwaste.hub.event_sources import SourceSnapshot, SourceStores


class _Proposal(Struct):
    change: str
    scheduler: str
    jobs: int
    mean_wait_s: float
    low_s: float
    high_s: float
    later: float
    among: int


class _Document(Struct):
    proposal: _Proposal | None = None


class _Kept(Struct):
    at: int
    document: _Document


class Proposals:
    """Reads a new file of the directory once; the stream knows what was told: once for each simulation."""

    def __init__(self, directory: Path | None) -> None:
        self._directory = directory
        self._read: tuple[str, int] | None = None
        self._found: tuple[str, int] | None = None

    def events(self, seen: SourceSnapshot) -> Sequence[ToldEvent]:
        """Return the proposal of the newest simulation; a file that cannot be read has none."""
        self._found = self._newest()
        if self._directory is None or self._found is None or self._found == self._read:
            return []
        identity = self._found[0]
        try:
            kept = kept_simulations.read_as(self._directory, identity, _Kept)
        except (NoDataError, StoreError):
            return []
        one = kept.document.proposal
        if one is None:
            return []
        words, figures = (one.change, one.scheduler), (one.mean_wait_s, one.low_s, one.high_s, one.later)
        data = PolicyProposed(seen.cluster, identity, *words, one.jobs, *figures, one.among, kept.at)
        return [tell("policy.proposed", data, seen.now, subject=f"simulation/{identity}")]

    def told(self) -> None:
        """Note it."""
        self._read = self._found

    def _newest(self) -> tuple[str, int] | None:
        try:
            files = [] if self._directory is None else list(self._directory.glob("*.json"))
            return max(((path.stem, path.stat().st_mtime_ns) for path in files), key=lambda one: one[1], default=None)
        except OSError:
            return None


def make(stores: SourceStores) -> Proposals:
    """Return the source."""
    return Proposals(stores.simulations)
