"""Copies of the hub's store: `gpuwaste hub backup` writes one checked file, `move` copies from file to lake or back."""

import fcntl
import hashlib
import os
import shutil
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO, Final, TextIO

from gpuwaste.cli.hub_access import hub_client
from gpuwaste.cli.programs import load_program
from gpuwaste.core.config import DEFAULT_PATH, Config
from gpuwaste.core.errors import StoreError, UsageError, WireError
from gpuwaste.core.files import UMASK, sync_directory
from gpuwaste.core.owner import as_owner, become_owner
from gpuwaste.show.terminal_cells import short
from gpuwaste.store.hub.backup_format import PART, STORE, read_backup
from gpuwaste.store.hub.backup_restore import open_source, restore
from gpuwaste.store.hub.lake_store import NOT_COPIED
from gpuwaste.store.hub.store_file import in_use
from gpuwaste.store.hub.store_move import MoveResult

PATH: Final = "/v1/backup"
_POLL_S: Final = 0.5
_PATIENCE_S: Final = 6 * 3600.0
_MAX_BYTES: Final = 1 << 46
_FOLDER: Final = "move.unfinished"
_TAR: Final = "hub.tar"
_EVERY_S: Final = {True: 0.2, False: 30.0}  # by whether it is a terminal


def back_up(config: Config, target: Path, *, force: bool) -> dict[str, Any]:
    """Write a backup of the running hub to `target`, or into that directory; returns what was written.

    Raises UsageError, StoreError, WireError; `target` is complete or absent.
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
    """Return the text about a backup."""
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
    """Yield a file next to `path` that only this process writes; it is removed at the end, unless it was renamed."""
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
    """Replace the configured hub's store by a backup; returns what it holds. Raises StoreError, UsageError."""
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
    """Return the text about a restore."""
    when = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(done["created_utc"]))
    rows = ", ".join(f"{done['rows'].get(name, 0)} {name}" for name in ("jobs", "hours", "days", "verdicts"))
    return f"{done['store']}: as it was at {when}: {rows}; start the hub\n"


def move(config: Config, to: str, *, force: bool) -> dict[str, Any]:
    """Move the store, or while a hub runs copy most of it; returns what was done. Raises GpuwasteError."""
    mover = _mover(config)
    if config.hub.store == to:
        raise UsageError(f'[hub] store is "{to}" already: nothing to move')
    if force and to == "lake":
        raise UsageError("--force is for --to file: a lake must be empty")
    began = time.monotonic()
    try:
        with ExitStack() as held:
            held.callback(os.umask, os.umask(UMASK))
            with as_owner(mover.state_dir):
                held.enter_context(mover.only_one())
            done, moved = _to_lake(config, mover) if to == "lake" else _to_file(mover, force=force)
    except OSError as error:
        raise StoreError(f"{mover.state_dir}: cannot be used: {error.strerror or error}") from error
    return {
        "to": to, "moved": moved, "rows": done.rows, "copied": done.copied, "tables": done.tables,
        "seconds": round(time.monotonic() - began, 1),
    }  # fmt: skip


def reopen(config: Config) -> dict[str, Any]:
    """Let the hub use the configured store again, after it was moved. Raises GpuwasteError."""
    mover = _mover(config)
    become_owner(mover.state_dir)
    try:
        mover.reopen_file() if config.hub.store == "file" else mover.reopen_lake()
    except OSError as error:
        raise StoreError(f"{mover.state_dir}: cannot be written: {error.strerror or error}") from error
    return {"reopened": config.hub.store}


def move_text(done: dict[str, Any], path: Path | None) -> str:
    """Return the text about a move; `path` is the configuration file, None for the default one."""
    if "reopened" in done:
        return f"the hub uses its {done['reopened']} again, as it was when it was moved\n"
    what = f"{done['rows']} rows of {done['tables']} tables, {done['copied']} copied in {done['seconds']} s"
    if not done["moved"]:
        return (
            f"{what}, while the hub runs\n"
            "stop the hub and run the command again: it copies what has changed, and compares every table\n"
        )
    return (
        f"{what}; counts and sums of all tables are equal\n"
        f'set store = "{done["to"]}" in section [hub] of {path or DEFAULT_PATH} and start the hub; the old store'
        " is kept, and no hub uses it\n"
    )


class MoveProgress:
    """Shows the rows done, the rate, and the time left: one line on a terminal, else a line now and then."""

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._clock = clock
        self._begin = self._shown = clock()

    def __call__(self, table: str, done: int, total: int) -> None:
        """Show the state, if it is time."""
        terminal, now = self._stream.isatty(), self._clock()
        if now - self._shown < _EVERY_S[terminal]:
            return
        self._shown = now
        rate = done / max(now - self._begin, 1e-9)
        left = f", {short((total - done) / rate)} left" if rate else ""
        line = f"gpuwaste: {table}: {done} of {total} rows, {rate:.0f} rows/s{left}"
        self._stream.write(f"\r\x1b[K{line}" if terminal and done < total else f"{line}\n")
        self._stream.flush()


def _mover(config: Config) -> Any:
    """Return what moves the store of the configured hub. Raises GpuwasteError."""
    module = load_program("gpuwaste.hub.store_mover")
    location = load_program("gpuwaste.hub.store_choice").lake_location
    location(config.hub)
    state_dir = Path(config.hub.state_dir)
    if not state_dir.is_dir():
        raise StoreError(f"{state_dir}: is not a directory: set [hub] state_dir")
    lake = location(replace(config.hub, store="lake"))
    return module.StoreMover(state_dir, lake, MoveProgress(sys.stderr), config.hub.memory_mb)


def _to_lake(config: Config, mover: Any) -> tuple[MoveResult, bool]:
    with as_owner(mover.state_dir):
        if not mover.store.is_file():
            raise UsageError(f"{mover.store}: does not exist: there is no store to move")
        running = in_use(mover.store)
    if not running:
        become_owner(mover.state_dir)
        return mover.to_lake(), True
    with _scratch(mover.state_dir) as folder:
        return mover.fill_lake(_snapshot(config, mover.state_dir, folder)), False


def _to_file(mover: Any, *, force: bool) -> tuple[MoveResult, bool]:
    become_owner(mover.state_dir)
    done: tuple[MoveResult, bool] = mover.to_file(force=force)
    return done


def _snapshot(config: Config, state_dir: Path, folder: Path) -> Path:
    """Fetch a copy of the running hub's store, with the caller's rights; return its file. Raises GpuwasteError.

    The rest needs only the rights of the store's owner, so that root becomes that user permanently.
    """
    tar = folder / _TAR
    back_up(config, tar, force=True)
    become_owner(state_dir)
    with tar.open("rb") as file:
        read_backup(file, str(tar), folder / "store")
    tar.unlink()
    return folder / "store" / STORE


@contextmanager
def _scratch(state_dir: Path) -> Iterator[Path]:
    """Yield an empty folder of the store's owner that is removed at the end."""
    folder = state_dir / _FOLDER
    with as_owner(state_dir):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(mode=0o700)
    try:
        yield folder
    finally:
        with as_owner(state_dir):
            shutil.rmtree(folder, ignore_errors=True)
