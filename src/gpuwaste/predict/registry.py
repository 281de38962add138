"""The bundles of a site: models_dir/NAME/ each, and `champion`, the link to the one in use.

Every change is one rename, so that a reader sees the old state or the new one and a kill at any instant leaves either.
`history.json` names the champions in the order of their promotion. It is written before the link moves, and read by
what the link says: a promotion that never happened is an entry after the champion, and does not count.
"""

import fcntl
import json
import os
import re
import shutil
import stat
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gpuwaste.core.errors import ModelError
from gpuwaste.core.files import TEMPORARY, open_lock, open_plain, sync_directory, write_whole
from gpuwaste.predict.bundle import Bundle, FeatureSet, load_bundle
from gpuwaste.predict.bundle_files import BundleFiles, read_bundle
from gpuwaste.predict.manifest import NAME, Manifest

CHAMPION: Final = "champion"
HISTORY: Final = "history.json"
WAITS: Final = "waits"  # of models_dir: a registry of its own, for bundles of waits
_LOCK: Final = ".lock"
_KEPT: Final = 100  # promotions that the history remembers
_MAX_HISTORY_B: Final = 1 << 20
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)
_WRITABLE_HINT: Final = "create it, or set common.models_dir"


@dataclass(frozen=True, slots=True)
class Entry:
    """One bundle of the registry; `problem` says why it cannot be read, and `manifest` is then None."""

    name: str
    champion: bool
    manifest: Manifest | None
    hash: str
    problem: str = ""


class Registry:
    """The directory `models_dir`; `expected` are the features that bundles must be made for (default: ours)."""

    def __init__(self, models_dir: Path, expected: FeatureSet | None = None) -> None:
        self.models_dir = models_dir
        self._expected = expected

    def champion(self) -> Path | None:
        """Return the directory of the bundle in use, None where none was promoted. Raises ModelError."""
        name = self._champion_name()
        return None if name is None else self.models_dir / name

    def load_champion(self) -> Bundle | None:
        """Return the bundle in use, checked; None where none was promoted. Raises ModelError."""
        directory = self.champion()
        return None if directory is None else load_bundle(directory, self._expected)

    def load(self, name: str) -> Bundle:
        """Return the bundle of this name, checked. Raises ModelError, which names those that there are."""
        directory = self.models_dir / _checked(name, "bundle")
        if not directory.is_dir():
            known = ", ".join(path.name for path in self._directories()) or "none yet: gpuwaste train makes one"
            raise ModelError(f"{directory}: no such bundle: known are {known}")
        return load_bundle(directory, self._expected)

    def list(self) -> Sequence[Entry]:
        """Return every bundle, the oldest first, with its files' sha256 checked but no graph loaded."""
        champion = self._champion_name()
        entries = [self._entry(path, champion) for path in self._directories()]
        return sorted(entries, key=lambda e: (e.manifest.created_utc if e.manifest else 0, e.name))

    def add(self, source: Path, files: BundleFiles | None = None) -> str:
        """Copy a bundle in under its manifest's name and return the name; promote makes it the champion.

        `files` are those of `source`, where they were read before. Raises ModelError where the bundle cannot be used,
        or another one has the name.
        """
        files = files or read_bundle(source)
        bundle = load_bundle(source, self._expected, files)
        name = _checked(bundle.manifest.name, f"{source / NAME}: name")
        with self._writing():
            target = self.models_dir / name
            if target.exists():
                if read_bundle(target)[2] == bundle.hash:
                    return name
                raise ModelError(f"{target}: another bundle has this name: train again under another name")
            temporary = self.models_dir / f"{TEMPORARY}{os.getpid()}"
            shutil.rmtree(temporary, ignore_errors=True)
            temporary.mkdir()
            temporary.chmod(0o755)  # whatever the umask: hub and commands read it
            try:
                self._copy(files[1], bundle, temporary)
                temporary.rename(target)
            except BaseException:
                shutil.rmtree(temporary, ignore_errors=True)
                raise
            sync_directory(self.models_dir)
        return name

    def promote(self, name: str) -> Bundle:
        """Make a bundle the champion after it was loaded and tried. Raises ModelError; the champion then stays."""
        bundle = self.load(name)
        with self._writing():
            past, champion = self._past(), self._champion_name()
            if champion != name:
                self._write_history([*past, *((champion,) if champion and champion not in past else ()), name])
                self._point(name)
        return bundle

    def rollback(self) -> Bundle:
        """Make the champion before this one the champion again. Raises ModelError; the champion then stays."""
        with self._writing():
            past = self._past()
            if len(past) < 2:  # noqa: PLR2004 this one and the one before
                raise ModelError(f"{self.models_dir}: no previous champion: promote a bundle by its name")
            bundle = load_bundle(self.models_dir / past[-2], self._expected)
            self._point(past[-2])
            self._write_history(past[:-1])
        return bundle

    def prune(self, keep: int) -> Sequence[str]:
        """Remove all bundles but the champion, the one before it, and the `keep` newest; return their names.

        What killed writers left goes too. A directory without a manifest is no bundle and stays. Raises ModelError.
        """
        with self._writing():
            safe = {*self._past()[-2:], self._champion_name()}
            bundles = [e.name for e in self.list()[::-1] if (self.models_dir / e.name / NAME).is_file()]
            spare = [name for name in bundles if name not in safe][keep:]
            for name in spare:
                # Renamed first: a bundle is never half there under its own name.
                (self.models_dir / name).rename(self.models_dir / f"{TEMPORARY}{os.getpid()}-{name}")
            for path in self.models_dir.glob(f"{TEMPORARY}*"):
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        return spare

    def _copy(self, contents: Mapping[str, bytes], bundle: Bundle, target: Path) -> None:
        """Write a bundle's files into an empty directory. Raises ModelError where they are not there afterwards."""
        for file, data in contents.items():
            write_whole(target / file, data)
        if load_bundle(target, self._expected).hash != bundle.hash:
            raise ModelError(f"{target}: differs from what was written: add {bundle.directory} again")

    def _directories(self) -> Sequence[Path]:
        try:
            found = sorted(self.models_dir.iterdir())
        except FileNotFoundError:
            return []
        except OSError as error:
            raise ModelError(f"{self.models_dir}: cannot be read: {error.strerror}: {_WRITABLE_HINT}") from error
        return [p for p in found if _NAME.fullmatch(p.name) and p.name != WAITS and p.is_dir() and not p.is_symlink()]

    def _entry(self, path: Path, champion: str | None) -> Entry:
        try:
            manifest, _, digest = read_bundle(path)
        except ModelError as error:
            return Entry(path.name, path.name == champion, None, "", str(error))
        return Entry(path.name, path.name == champion, manifest, digest)

    def _champion_name(self) -> str | None:
        link = self.models_dir / CHAMPION
        try:
            if self.models_dir.stat().st_mode & stat.S_IWOTH:
                raise ModelError(f"{self.models_dir}: writable by everybody: chmod o-w, then check its contents")
            name = os.readlink(link)  # noqa: PTH115 the text itself is checked, not where it leads
        except FileNotFoundError:
            return None
        except OSError as error:
            raise ModelError(f"{link}: cannot read the link: {error.strerror}: promote a bundle") from error
        if not _NAME.fullmatch(name):
            raise ModelError(f"{link}: points outside of {self.models_dir}: remove it and promote a bundle")
        return name

    def _past(self) -> Sequence[str]:
        """Return the champions in order, the present one last."""
        path = self.models_dir / HISTORY
        try:
            with open_plain(path) as file:
                names = json.loads(file.read(_MAX_HISTORY_B))["champions"]
            past = [n for n in names if isinstance(n, str) and _NAME.fullmatch(n)]
        except FileNotFoundError:
            past = []
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            past = []  # the link alone is what counts; what came before it cannot be told any more
        champion = self._champion_name()
        if champion is None:
            return []
        if champion not in past:
            return [*past, champion]
        return past[: len(past) - past[::-1].index(champion)]

    def _write_history(self, names: Sequence[str]) -> None:
        text = json.dumps({"champions": names[-_KEPT:], "changed_utc": int(time.time())}, indent=1) + "\n"
        write_whole(self.models_dir / HISTORY, text.encode())

    def _point(self, name: str) -> None:
        """Move the link: a new one is made beside it and renamed over it."""
        temporary = self.models_dir / f"{TEMPORARY}{os.getpid()}-link"
        temporary.unlink(missing_ok=True)
        temporary.symlink_to(name)
        temporary.rename(self.models_dir / CHAMPION)
        sync_directory(self.models_dir)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Hold the registry's lock; OSErrors within become ModelErrors."""
        try:
            self.models_dir.mkdir(parents=True, exist_ok=True)
            self._champion_name()
            lock = open_lock(self.models_dir / _LOCK)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX)
                yield
            finally:
                os.close(lock)
        except OSError as error:
            raise ModelError(
                f"{error.filename or self.models_dir}: cannot be written: {error.strerror}: {_WRITABLE_HINT}"
            ) from error


def _checked(name: str, what: str) -> str:
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name in {CHAMPION, HISTORY, WAITS}:
        raise ModelError(f"{what} {str(name)[:80]!r}: expected letters, digits, ., _ and -, at most 64, not {CHAMPION}")
    return name
