"""Backups of the running hub: a thread copies the store as of one instant, then the caller fetches it as a tar.

Only the hub's own state directory is written to. The copy is read through unlinked files, so that a hub that dies
leaves none behind.
"""

import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, Self

from gpuwaste.core import log_event
from gpuwaste.core.clock import Clock
from gpuwaste.core.config import Config
from gpuwaste.core.errors import GpuwasteError
from gpuwaste.core.parts import Part, Parts
from gpuwaste.core.refusal import CONFLICT, FORBIDDEN, LATER, Refusal
from gpuwaste.core.scope import Scope
from gpuwaste.core.text import words_of
from gpuwaste.core.version import own_version
from gpuwaste.jobs.cluster_facts import ClusterFacts
from gpuwaste.jobs.host_ports import HostPorts
from gpuwaste.jobs.importers.page_files import PageFiles
from gpuwaste.store.hub.backup_format import STORE, About, BackupSource, tar_parts
from gpuwaste.store.hub.hub_store import HubStore

KEPT_S: Final = 600.0  # a copy that nobody fetches until then is dropped
CORRECTIONS: Final = "corrections.npz"
_FOLDER: Final = "backup.unfinished"
_ROOM: Final = 1.1  # of the store's size: free space without which no copy is begun
_FAILED: Final = log_event.warning(
    "backup-failed: cannot make a backup: {error}",
    "The copy cannot be written to `[hub] state_dir`, often for lack of space. The store is unchanged.",
)
_READY: Final = log_event.info("backup-ready: a backup of {mb} MB is ready for download")


class Backups(Part):
    """One copy at a time; threads may share it."""

    def __init__(self, store: HubStore, state_dir: Path, clock: Clock, cluster: Callable[[], str]) -> None:
        self._store = store
        self._state_dir = state_dir
        self._clock = clock
        self._cluster = cluster
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._state: dict[str, Any] = {"state": "none"}
        self._ready: tuple[About, list[BackupSource]] | None = None
        shutil.rmtree(state_dir / _FOLDER, ignore_errors=True)

    @classmethod
    def part_of(cls, parts: Parts) -> Self:
        """Return the part of a hub."""
        state_dir, clock = Path(parts.get(Config).hub.state_dir), parts.get(HostPorts).clock
        return cls(parts.get(HubStore), state_dir, clock, parts.get(ClusterFacts).known)

    def begin(self, scope: Scope) -> dict[str, Any]:
        """Begin a copy, unless one is being made, and return its state. Raises Refusal."""
        _check(scope)
        if self._store.not_copied:
            raise Refusal(CONFLICT, self._store.not_copied)
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                self._drop()
                self._check_room()
                self._state = {"state": "copying", "began_utc": self._clock.utc_s()}
                self._thread = threading.Thread(target=self._copy, name="backup", daemon=True)
                self._thread.start()
            return dict(self._state)

    def stands(self, scope: Scope) -> dict[str, Any]:
        """Return the state of the copy: none, copying, ready, or failed with the error. Raises Refusal."""
        _check(scope)
        with self._lock:
            return dict(self._state)

    def parts(self, scope: Scope) -> Iterator[bytes]:
        """Return the copy, once. Raises Refusal."""
        _check(scope)
        with self._lock:
            if self._ready is None:
                raise Refusal(LATER, "no backup is ready: start one first")
            about, sources = self._ready
            self._ready = None
            self._state = {"state": "none"}
        return tar_parts(about, iter(sources))

    def close(self) -> None:
        """Cancel a copy that is being made."""
        self._store.stop_copy()
        thread = self._thread
        if thread is not None:
            thread.join(5.0)

    def _check_room(self) -> None:
        needed = int(self._store.size_b() * _ROOM)
        free = shutil.disk_usage(self._state_dir).free
        if free < needed:
            words = (
                f"the hub's state_dir has {free >> 20} MB free and a copy may need {needed >> 20} MB: free space there"
            )
            raise Refusal(LATER, words)

    def _copy(self) -> None:
        folder = self._state_dir / _FOLDER
        try:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(mode=0o700)
            rows, schema = self._store.copy_to(folder / STORE)
            about = About(schema, own_version(), self._clock.utc_s(), self._cluster(), rows)
            copy = folder / STORE
            sources = [*self._beside(), BackupSource(STORE, copy.open("rb"), copy.stat().st_size)]
        except (GpuwasteError, OSError) as error:
            _FAILED.log(error=error)
            with self._lock:
                self._state = {"state": "failed", "error": words_of(error)}
            return
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        ready = (about, sources)
        with self._lock:
            self._ready = ready
            self._state = {"state": "ready", **about.to_json(), "bytes": sum(s.size for s in sources)}
        timer = threading.Timer(KEPT_S, self._expire, (ready,))
        timer.daemon = True
        timer.start()
        _READY.log(mb=sum(s.size for s in sources) >> 20)

    def _beside(self) -> Iterator[BackupSource]:
        """Yield the files next to the store that cannot be created again."""
        pages = PageFiles(self._state_dir / STORE).folder
        for path in sorted(pages.glob("[0-9a-f][0-9a-f]/*.z")):
            yield BackupSource(f"pages/{path.parent.name}/{path.name}", path, path.stat().st_size)
        corrections = self._state_dir / CORRECTIONS
        if corrections.exists():
            yield BackupSource(CORRECTIONS, corrections, corrections.stat().st_size)

    def _expire(self, what: Any) -> None:
        with self._lock:
            if self._ready is what:
                self._drop()
                self._state = {"state": "none"}

    def _drop(self) -> None:
        if self._ready is not None:
            for source in self._ready[1]:
                if not isinstance(source.file, Path):
                    source.file.close()
            self._ready = None


def _check(scope: Scope) -> None:
    if not (scope.everything or scope.user == "root"):
        raise Refusal(FORBIDDEN, "a backup contains all users' jobs: only root, operators and staff may create one")
