"""Bundles of models in a directory: models_dir/NAME/ each, and links to the one in use and to the one on trial.

Only the class that derives from BundleRegistry knows the content of a bundle: it reads the files and loads them.

`champion` is in use, `challenger` is scored in shadow. Every change is one rename, so that a reader sees the
old state or the new one and a kill at any instant leaves either. `history.json` names the champions in the order of
their promotion. It is written before the link moves, and read up to the link's name: a promotion that never happened is
an entry after the champion, and does not count.
"""

import fcntl
import json
import os
import shutil
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Final, Generic, Protocol, TypeVar

from msgspec import Meta, Struct

from gpuwaste.core.bundle_files import CHALLENGER, CHAMPION, NAME, BundleLinks, BundleManifest
from gpuwaste.core.errors import ModelError
from gpuwaste.core.files import TEMPORARY, open_lock, open_plain, sync_directory, write_whole
from gpuwaste.core.text import PLAIN_NAME

HISTORY: Final = "history.json"
WAITS: Final = "waits"  # subdirectory of models_dir: a separate registry for bundles of waits
TIMES: Final = "times"  # subdirectory of models_dir: a separate registry for bundles of step times
_PLACES: Final = frozenset({WAITS, TIMES})  # names that no bundle may have
_LOCK: Final = ".lock"
_KEPT: Final = 100  # promotions kept in the history
_MAX_HISTORY_B: Final = 1 << 20
_WRITABLE_HINT: Final = "create it, or set common.models_dir"


M = TypeVar("M", bound=BundleManifest)
M_co = TypeVar("M_co", bound=BundleManifest, covariant=True)


class LoadedBundle(Protocol[M_co]):
    """The part of a loaded bundle that a registry reads."""

    @property
    def directory(self) -> Path:
        """The directory it was read from."""

    @property
    def manifest(self) -> M_co:
        """Its manifest."""

    @property
    def hash(self) -> str:
        """The sha256 of its manifest."""


B = TypeVar("B", bound=LoadedBundle[BundleManifest])


class BundleStatus(Struct, kw_only=True, frozen=True):
    """One bundle of a registry: whether it is used, on trial, or not readable."""

    name: str
    champion: Annotated[bool, Meta(description="Whether it is in use.")]
    challenger: Annotated[bool, Meta(description="Whether it is on trial.")] = False
    hash: Annotated[str, Meta(description="sha256 of the manifest, hex; empty: not readable.")]
    problem: Annotated[str, Meta(description="Why it cannot be used; empty: it can.")]


class BundleEntry(BundleStatus, Generic[M], kw_only=True, frozen=True):
    """One bundle with its manifest, None where it cannot be read."""

    manifest: M | None


class BundleRegistry(ABC, Generic[M, B]):
    """The directory `models_dir`; `command` is the command that makes a bundle, named in errors."""

    command = "gpuwaste model train"

    def __init__(self, models_dir: Path) -> None:
        self.models_dir = models_dir
        self._links = BundleLinks(models_dir)

    @abstractmethod
    def files(self, directory: Path) -> tuple[M, dict[str, bytes], str]:
        """Return manifest, the content of each file and the bundle's hash, checked. Raises ModelError."""

    @abstractmethod
    def _loaded(self, directory: Path, files: tuple[M, dict[str, bytes], str] | None = None) -> B:
        """Return the bundle, checked and tested; `files` were read before. Raises ModelError."""

    def champion(self) -> Path | None:
        """Return the directory of the bundle in use, None where none was promoted. Raises ModelError."""
        return self._linked(CHAMPION)

    def challenger(self) -> Path | None:
        """Return the directory of the bundle on trial, None where there is none. Raises ModelError.

        The champion is not on trial: during a promotion, or after a killed one, both links point to one bundle.
        """
        challenger = self._linked(CHALLENGER)
        return None if challenger == self._linked(CHAMPION) else challenger

    def challenger_since(self) -> float | None:
        """Return when the trial began, UTC seconds, None where there is none."""
        return self._links.since(CHALLENGER)

    def previous(self) -> str | None:
        """Return the name of the champion before this one, None where there was none. Raises ModelError."""
        past = self._past()
        return past[-2] if len(past) > 1 else None

    def load_champion(self) -> B | None:
        """Return the bundle in use, checked; None where none was promoted. Raises ModelError."""
        directory = self.champion()
        return None if directory is None else self._loaded(directory)

    def load(self, name: str) -> B:
        """Return the bundle of this name, checked. Raises ModelError, which names the existing ones."""
        directory = self.models_dir / _checked(name, "bundle")
        if not directory.is_dir():
            known = ", ".join(path.name for path in self._directories()) or f"none yet: {self.command} makes one"
            raise ModelError(f"{directory}: no such bundle: known are {known}")
        return self._loaded(directory)

    def list(self) -> Sequence[BundleEntry[M]]:
        """Return every bundle, the oldest first, with its files' sha256 checked but no graph loaded."""
        links = self._links.name_of(CHAMPION), self._links.name_of(CHALLENGER)
        entries = [self._entry(path, *links) for path in self._directories()]
        return sorted(entries, key=lambda e: (e.manifest.created_utc if e.manifest else 0, e.name))

    def add(self, source: Path, files: tuple[M, dict[str, bytes], str] | None = None) -> str:
        """Copy a bundle in under its manifest's name and return the name; promote makes it the champion.

        `files` are those of `source`, if they were already read. Raises ModelError where the bundle cannot be used,
        or another one has the name.
        """
        files = files or self.files(source)
        bundle = self._loaded(source, files)
        name = _checked(bundle.manifest.name, f"{source / NAME}: name")
        with self._writing():
            target = self.models_dir / name
            if target.exists():
                if self.files(target)[2] == bundle.hash:
                    return name
                raise ModelError(f"{target}: another bundle has this name: train again under another name")
            temporary = self.models_dir / f"{TEMPORARY}{os.getpid()}"
            shutil.rmtree(temporary, ignore_errors=True)
            temporary.mkdir()
            temporary.chmod(0o755)  # regardless of the umask: hub and commands read it
            try:
                self._copy(files[1], bundle, temporary)
                temporary.rename(target)
            except BaseException:
                shutil.rmtree(temporary, ignore_errors=True)
                raise
            sync_directory(self.models_dir)
        return name

    def promote(self, name: str) -> B:
        """Make a bundle the champion after it was loaded and tested. Raises ModelError; the champion then stays.

        A challenger that is promoted is no longer on trial.
        """
        bundle = self.load(name)
        with self._writing():
            past, champion = self._past(), self._links.name_of(CHAMPION)
            if champion != name:
                self._write_history([*past, *((champion,) if champion and champion not in past else ()), name])
                self._links.point(CHAMPION, name)
            if self._links.name_of(CHALLENGER) == name:
                self._links.remove(CHALLENGER)
        return bundle

    def challenge(self, name: str) -> B:
        """Load and test a bundle, then put it on trial, replacing the previous one. Raises ModelError."""
        bundle = self.load(name)
        with self._writing():
            if self._links.name_of(CHAMPION) == name:
                raise ModelError(f"{self.models_dir / name}: is in use already: nothing to compare it with")
            self._links.point(CHALLENGER, name)
        return bundle

    def withdraw(self) -> str | None:
        """End the trial; return the challenger's name, None where there was none. Raises ModelError."""
        with self._writing():
            name = self._links.name_of(CHALLENGER)
            if name is not None:
                self._links.remove(CHALLENGER)
        return name

    def rollback(self) -> B:
        """Make the previous champion the champion again. Raises ModelError; the champion then stays."""
        with self._writing():
            past = self._past()
            if len(past) < 2:  # noqa: PLR2004 this one and the one before
                raise ModelError(f"{self.models_dir}: no previous model; run gpuwaste model promote NAME")
            bundle = self._loaded(self.models_dir / past[-2])
            self._links.point(CHAMPION, past[-2])
            self._write_history(past[:-1])
            if self._links.name_of(CHALLENGER) == past[-2]:
                self._links.remove(CHALLENGER)
        return bundle

    def prune(self, keep: int) -> Sequence[str]:
        """Remove all bundles but champion, challenger, previous champion, and the `keep` newest; return their names.

        Leftovers of killed writers are removed too. A directory without a manifest is no bundle and stays. Raises
        ModelError.
        """
        with self._writing():
            safe = {*self._past()[-2:], self._links.name_of(CHAMPION), self._links.name_of(CHALLENGER)}
            bundles = [e.name for e in self.list()[::-1] if (self.models_dir / e.name / NAME).is_file()]
            spare = [name for name in bundles if name not in safe][keep:]
            for name in spare:
                # Renamed first: a bundle is never incomplete under its own name.
                (self.models_dir / name).rename(self.models_dir / f"{TEMPORARY}{os.getpid()}-{name}")
            for path in self.models_dir.glob(f"{TEMPORARY}*"):
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        return spare

    def _copy(self, contents: Mapping[str, bytes], bundle: B, target: Path) -> None:
        """Write a bundle's files into an empty directory. Raises ModelError where they are missing afterwards."""
        for file, data in contents.items():
            write_whole(target / file, data)
        if self._loaded(target).hash != bundle.hash:
            raise ModelError(f"{target}: differs from what was written: add {bundle.directory} again")

    def _directories(self) -> Sequence[Path]:
        try:
            found = sorted(self.models_dir.iterdir())
        except FileNotFoundError:
            return []
        except OSError as error:
            raise ModelError(f"{self.models_dir}: cannot be read: {error.strerror}: {_WRITABLE_HINT}") from error
        return [
            p
            for p in found
            if PLAIN_NAME.fullmatch(p.name) and p.name not in _PLACES and p.is_dir() and not p.is_symlink()
        ]

    def _entry(self, path: Path, champion: str | None, challenger: str | None) -> BundleEntry[M]:
        manifest, digest, problem = None, "", ""
        try:
            manifest, _, digest = self.files(path)
        except ModelError as error:
            problem = str(error)
        return BundleEntry(
            name=path.name,
            champion=path.name == champion,
            challenger=path.name == challenger != champion,
            hash=digest,
            problem=problem,
            manifest=manifest,
        )

    def _linked(self, link: str) -> Path | None:
        name = self._links.name_of(link)
        return None if name is None else self.models_dir / name

    def _past(self) -> Sequence[str]:
        """Return the champions in order, the current one last."""
        path = self.models_dir / HISTORY
        try:
            with open_plain(path) as file:
                names = json.loads(file.read(_MAX_HISTORY_B))["champions"]
            past = [n for n in names if isinstance(n, str) and PLAIN_NAME.fullmatch(n)]
        except FileNotFoundError:
            past = []
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            past = []  # only the link counts; the champions before it are no longer known
        champion = self._links.name_of(CHAMPION)
        if champion is None:
            return []
        if champion not in past:
            return [*past, champion]
        return past[: len(past) - past[::-1].index(champion)]

    def _write_history(self, names: Sequence[str]) -> None:
        text = json.dumps({"champions": names[-_KEPT:], "changed_utc": int(time.time())}, indent=1) + "\n"
        write_whole(self.models_dir / HISTORY, text.encode())

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Hold the registry's lock; an OSError within becomes a ModelError."""
        try:
            self.models_dir.mkdir(parents=True, exist_ok=True)
            self._links.name_of(CHAMPION)
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
    taken = {CHAMPION, CHALLENGER, HISTORY, *_PLACES}
    if not isinstance(name, str) or not PLAIN_NAME.fullmatch(name) or name in taken:
        raise ModelError(
            f"{what} {str(name)[:80]!r}: expected letters, digits, ., _ and -, at most 64; not {CHAMPION}, {CHALLENGER}"
        )
    return name
