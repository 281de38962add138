"""`gpuwaste hub move`: the hub's store from its file to its lake, or back; most of it while the hub runs."""

import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, TextIO

from gpuwaste.cli.hub_backup import back_up
from gpuwaste.cli.programs import load_program
from gpuwaste.core.config import DEFAULT_PATH, Config
from gpuwaste.core.errors import StoreError, UsageError
from gpuwaste.core.files import UMASK
from gpuwaste.core.owner import as_owner, become_owner
from gpuwaste.show.terminal_cells import short
from gpuwaste.store.hub.backup_format import STORE, read_backup
from gpuwaste.store.hub.store_file import in_use
from gpuwaste.store.hub.store_move import MoveResult

_FOLDER: Final = "move.unfinished"
_TAR: Final = "hub.tar"
_EVERY_S: Final = {True: 0.2, False: 30.0}  # by whether it is a terminal


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
    """Let the hub use the configured store again, which was moved. Raises GpuwasteError."""
    mover = _mover(config)
    become_owner(mover.state_dir)
    try:
        mover.reopen_file() if config.hub.store == "file" else mover.reopen_lake()
    except OSError as error:
        raise StoreError(f"{mover.state_dir}: cannot be written: {error.strerror or error}") from error
    return {"reopened": config.hub.store}


def move_text(done: dict[str, Any], path: Path | None) -> str:
    """Return what a person reads of it; `path` is the configuration file, None for the default one."""
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
    """Shows the rows that are done, how fast, and how long still: one line on a terminal, else a line now and then."""

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
    """Fetch a copy of the running hub's store, with the rights of whoever asks; return its file. Raises GpuwasteError.

    What follows needs the rights of the store's owner only, so that root becomes that user for good.
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
    """Lend an empty folder of the store's owner that is gone at the end."""
    folder = state_dir / _FOLDER
    with as_owner(state_dir):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(mode=0o700)
    try:
        yield folder
    finally:
        with as_owner(state_dir):
            shutil.rmtree(folder, ignore_errors=True)
