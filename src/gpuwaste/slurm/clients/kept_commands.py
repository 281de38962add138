"""KeptCommands: Slurm's commands as any user runs them, their output kept in a folder and read from there again."""

import re
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeVar

from gpuwaste.core.errors import GpuwasteError, SlurmError
from gpuwaste.core.files import write_whole
from gpuwaste.core.text import decoded
from gpuwaste.slurm.accounting.sacct_rows import sacct_argv
from gpuwaste.slurm.clients.command import stream_lines
from gpuwaste.slurm.clients.command_client import CommandClient
from gpuwaste.slurm.site import associations
from gpuwaste.slurm.site.cluster_model import ClusterModel
from gpuwaste.slurm.site.live_site import live_model
from gpuwaste.slurm.site.machine_events import NodeOutage, PrintedRows, ReservedNodes, of_entire_nodes

_PRIVATE: Final = re.compile(r"^PrivateData\s*=\s*(\S+)", re.MULTILINE)
_ALL_POWERS: Final = frozenset({"Operator", "Administrator"})
_MAX_KEPT_B: Final = 256 * 1024**2
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Viewer:
    """Who runs the commands: the user's name in accounting, "" if unknown, and whether accounting hides others' jobs.

    None: unknown.
    """

    name: str = ""
    restricted: bool | None = None


@dataclass(frozen=True, slots=True)
class ReadMachine:
    """The machine as it is, with its outages and reservations from `since`, UTC seconds, on; None: they are unknown."""

    model: ClusterModel
    since: int
    outages: Sequence[NodeOutage] | None = None
    reservations: Sequence[ReservedNodes] | None = None


@dataclass(slots=True)
class KeptCommands(CommandClient):
    """`folder` has a file for each command that has answered; with `replay` no command is run."""

    folder: Path = field(default=Path(), kw_only=True)
    replay: bool = field(default=False, kw_only=True)

    def job_lines(
        self, start: int, end: int, columns: Sequence[str], delimiter: bytes, timeout_s: float
    ) -> Generator[bytes]:
        """Run sacct and yield its lines of jobs, without steps, as they arrive; they are not kept here.

        `timeout_s` bounds each wait for more. Raises SlurmError.
        """
        argv = [*sacct_argv(start, end, columns, delimiter), "--allocations"]
        self._count(argv[0])
        yield from stream_lines(argv, self._environment(), timeout_s)

    def machine(self, since: int) -> tuple[ReadMachine | None, list[str]]:
        """Return the machine, and a line on each part that is unknown."""
        unread: list[str] = []
        model = _tried(
            "nodes and partitions", unread, lambda: live_model(self.config(), self.nodes(), self.partitions())
        )
        if model is None:
            return None, unread
        cpus = {node.name: node.cpus for node in model.nodes}
        outages = _rows("outages of nodes", unread, lambda: self.outages(since))
        reserved = _rows("reservations", unread, lambda: of_entire_nodes(self.reservations(since), cpus))
        return ReadMachine(model, since, outages, reserved), unread

    def viewer(self, name: str) -> Viewer:
        """Return what this user sees of accounting; `name` is not needed where answers are read again."""
        levels = _tried("the user", [], lambda: self._levels(name)) or {}
        user, level = next(iter(levels.items()), (name, ""))
        private = _tried("PrivateData", [], lambda: _PRIVATE.search(self._text("sacctmgr", "show", "configuration")))
        if private is None:
            return Viewer(user)
        hides = "jobs" in private[1].lower().split(",")
        return Viewer(user, hides and level not in _ALL_POWERS and user != "root")

    def _levels(self, name: str) -> Mapping[str, str]:
        return associations.parse_admin_levels(self._sacctmgr("show", "user", name, "format=user,adminlevel"))

    def _text(self, *argv: str, rpc: bool = True) -> str:
        file = self.folder / _file_name(argv)
        if self.replay:
            return _kept(file)
        text = CommandClient._text(self, *argv, rpc=rpc)  # noqa: SLF001 its own; super() fails with slots
        if not rpc:  # of this host, not of the cluster
            return text
        try:
            write_whole(file, text.encode(), mode=0o600)
        except OSError as error:
            raise SlurmError(f"{file}: cannot be written: {error.strerror}") from error
        return text


def _file_name(argv: Sequence[str]) -> str:
    """Return the file of a command: its words without options and conditions."""
    words = [word for word in argv if not word.startswith("-") and "=" not in word]
    return "-".join(words[:3]) + ".txt"


def _kept(file: Path) -> str:
    try:
        with file.open("rb") as stream:
            return decoded(stream.read(_MAX_KEPT_B))
    except OSError as error:
        raise SlurmError(f"{file.name}: not kept in {file.parent}: {error.strerror}") from error


def _rows(what: str, unread: list[str], read: Callable[[], PrintedRows[_T]]) -> tuple[_T, ...] | None:
    """Return the rows; those that cannot be read are counted in a line of `unread`."""
    found = _tried(what, unread, read)
    if found is not None and found.bad:
        unread.append(f"{what[0].upper()}{what[1:]}: {found.bad:,} cannot be read: {found.error}")
    return None if found is None else found.rows


def _tried(what: str, unread: list[str], read: Callable[[], _T]) -> _T | None:
    """Return what is read; what cannot be is None, with a line in `unread`."""
    try:
        return read()
    except GpuwasteError as error:
        unread.append(f"{what[0].upper()}{what[1:]} cannot be read: {error}")
        return None
