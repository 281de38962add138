"""`gpuwaste hub backup`: asks the running hub for a copy of its store and writes it, checked, as one file."""

import fcntl
import hashlib
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Final

from gpuwaste.cli.hub_access import hub_client
from gpuwaste.core.config import Config
from gpuwaste.core.errors import StoreError, UsageError, WireError
from gpuwaste.core.files import sync_directory
from gpuwaste.core.owner import as_owner
from gpuwaste.store.hub.backup_format import PART, STORE, read_backup
from gpuwaste.store.hub.backup_restore import open_source, restore
from gpuwaste.store.hub.lake_store import NOT_COPIED

PATH: Final = "/v1/backup"
_POLL_S: Final = 0.5
_PATIENCE_S: Final = 6 * 3600.0
_MAX_BYTES: Final = 1 << 46


def back_up(config: Config, target: Path, *, force: bool) -> dict[str, Any]:
    """Write a backup of the running hub to `target`, or into that directory; returns what was written.

    Raises UsageError, StoreError, WireError; `target` is whole or not there.
    """
    if config.hub.store == "lake":
        raise UsageError(NOT_COPIED)
    began = time.monotonic()
    path = _file(target)
    if path.is_symlink():
        raise UsageError(f"{path}: a symbolic link: give the file itself")
    if path.exists() and not (force and path.is_file()):
        raise UsageError(f"{path}: already exists: give another name or --force")
    with _unfinished(path) as (unfinished, file):
        _copied(config)
        hub_client(config, _PATIENCE_S).fetch(f"{PATH}/file", file, _MAX_BYTES)
        file.flush()
        os.fsync(file.fileno())
        file.seek(0)
        about = read_backup(file, "what the hub sent")
        digest = _sha256(file)
        with as_owner(path.parent, sticky=True):
            unfinished.replace(path)
            sync_directory(path.parent)
    seconds = round(time.monotonic() - began, 1)
    rows = {name: about.rows.get(name, 0) for name in ("jobs", "hours", "days", "verdicts")}
    return {
        "file": str(path), "bytes": path.stat().st_size, "sha256": digest, "seconds": seconds,
        "schema": about.schema, "created_utc": about.created_utc, "rows": rows,
    }  # fmt: skip


def backup_text(made: dict[str, Any]) -> str:
    """Return what a person reads of a backup."""
    rows = ", ".join(f"{count} {name}" for name, count in made["rows"].items())
    return (
        f"{made['file']}: {made['bytes'] / 1e6:.1f} MB in {made['seconds']} s, {rows}, every byte checked\n"
        f"sha256 {made['sha256']}\n"
    )


def _file(target: Path) -> Path:
    if target.is_dir():
        return target / time.strftime("gpuwaste-hub-%Y%m%dT%H%M%SZ.tar", time.gmtime())
    if not target.parent.is_dir():
        raise UsageError(f"{target.parent}: not a directory: create it first")
    return target


def _copied(config: Config) -> None:
    """Let the hub make its copy and wait for it."""
    client = hub_client(config)
    answer = client.post(PATH, {})
    while answer.get("state") == "copying":
        time.sleep(_POLL_S)
        answer = client.get(PATH)
    if answer.get("state") != "ready":
        words = answer.get("error") or "the copy was dropped: did somebody else fetch it?"
        raise WireError(f"the hub could not create the backup: {words}")


@contextmanager
def _unfinished(path: Path) -> Iterator[tuple[Path, BinaryIO]]:
    """Lend a file beside `path` that only this process writes; it is gone at the end, unless it was renamed."""
    name = path.with_name(f".{path.name}.unfinished")
    with as_owner(path.parent, sticky=True) as owner:
        try:
            number = os.open(name, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StoreError(f"{name}: cannot be written: {error.strerror}") from error
        writer = os.geteuid() if owner is None else owner.uid
    with os.fdopen(number, "r+b") as file:
        try:
            found = os.fstat(number)
            if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1 or found.st_uid != writer:
                raise StoreError(f"{name}: not a regular file of uid {writer}: remove it")
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise StoreError(f"{path}: another backup is writing this file") from error
        try:
            file.truncate()
            yield name, file
        except OSError as error:
            raise StoreError(f"{path}: cannot be written: {error.strerror}") from error
        finally:
            with as_owner(path.parent, sticky=True):
                if _same(name, number):
                    name.unlink()


def _same(path: Path, number: int) -> bool:
    try:
        return os.path.samestat(path.lstat(), os.fstat(number))
    except OSError:
        return False


def _sha256(file: BinaryIO) -> str:
    digest = hashlib.sha256()
    file.seek(0)
    while part := file.read(PART):
        digest.update(part)
    return digest.hexdigest()


def put_back(config: Config, source: Path, sha256: str, *, force: bool) -> dict[str, Any]:
    """Put a backup in the place of the configured hub's store; returns what it holds. Raises StoreError, UsageError."""
    if config.hub.store != "file":
        raise UsageError(NOT_COPIED)
    state_dir = Path(config.hub.state_dir)
    with open_source(source) as file:
        if sha256:
            found = _sha256(file)
            if found != sha256.strip().lower():
                words = f"{source}: its SHA-256 is {found}, not the one given: it is another file, or was changed"
                raise UsageError(words)
            file.seek(0)
        about = restore(file, source, state_dir, force=force)
    return {"store": str(state_dir / STORE), "file": str(source), **about.to_json()}


def restore_text(done: dict[str, Any]) -> str:
    """Return what a person reads of a restore."""
    when = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(done["created_utc"]))
    rows = ", ".join(f"{done['rows'].get(name, 0)} {name}" for name in ("jobs", "hours", "days", "verdicts"))
    return f"{done['store']}: as it was at {when}: {rows}; start the hub\n"
