"""Whether the agent can read the hardware of this host: vendors' libraries, device files, the rights of its process."""

import grp
import os
import pwd
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from gpuwaste.cli.check import Check, Status
from gpuwaste.core import groups
from gpuwaste.core.config import Config


def loadable(names: Sequence[str]) -> str | None:
    """Return the first of these libraries that can be loaded in the agent's way."""
    # Here and not above: other hosts than compute nodes have no agent.
    from gpuwaste.agent.collectors._library import load

    return next((name for name in names if load((name,)) is not None), None)


def check_groups(name: str, paths: Sequence[Path], what: str, page: str) -> Iterator[Check]:
    """Name the groups that the agent has to be in to open device files."""
    groups = sorted({group for path in paths if (group := _group(path))})
    if groups:
        yield Check(
            name,
            Status.OK,
            f"{what} belong to group {', '.join(groups)}: the unit needs it in SupplementaryGroups (how-to {page})",
        )


def _group(path: Path) -> str:
    """Return the group without which a device file cannot be opened, "" where none is needed."""
    try:
        status = os.stat(path)  # noqa: PTH116 one call for mode and group
        return "" if status.st_mode & stat.S_IROTH and status.st_mode & stat.S_IWOTH else grp.getgrgid(status.st_gid)[0]
    except (OSError, KeyError):
        return ""


def status_file(config: Config) -> Path | None:
    """Return /proc/PID/status of the running agent; None where none runs, or it cannot be seen."""
    pid_file = Path(config.agent.state_dir) / "agent.pid"
    try:
        status = Path(f"/proc/{int(pid_file.read_text(encoding='ascii'))}/status")
    except (OSError, ValueError):
        return None
    return status if status.exists() else None


@dataclass(frozen=True, slots=True)
class Reader:
    """Who reads files: a user with groups, perhaps with a capability to read all of them."""

    name: str
    uid: int
    gids: frozenset[int]
    reads_all: bool = False

    def may_read(self, found: os.stat_result) -> bool:
        """Return whether the mode of a file lets them read it; access control lists are not checked."""
        if self.reads_all:
            return True
        if found.st_uid == self.uid:
            return bool(found.st_mode & stat.S_IRUSR)
        return bool(found.st_mode & (stat.S_IRGRP if found.st_gid in self.gids else stat.S_IROTH))


def agent_reader(config: Config) -> Reader | None:
    """Return as whom the agent reads: the running one, else the user that the hub's key agent_user names."""
    status = status_file(config)
    return _configured(config.hub.agent_user) if status is None else _running(status)


def _running(status: Path) -> Reader | None:
    # Here and not above: other hosts than compute nodes have no agent.
    from gpuwaste.agent.collectors._capabilities import DAC_OVERRIDE, DAC_READ_SEARCH, holds

    try:
        lines = status.read_text(encoding="ascii", errors="replace").splitlines()
        words = {name: values.split() for name, _, values in (line.partition(":") for line in lines)}
        uid, gid = int(words["Uid"][1]), int(words["Gid"][1])  # those in effect
        gids = frozenset({gid, *map(int, words["Groups"])})
    except (OSError, ValueError, KeyError, IndexError):
        return None
    reads_all = holds(status, DAC_OVERRIDE) or holds(status, DAC_READ_SEARCH)
    return Reader(groups.user_name(uid) or str(uid), uid, gids, reads_all)


def _configured(user: str) -> Reader | None:
    try:
        entry = pwd.getpwnam(user)
    except KeyError:
        return None
    return Reader(user, entry.pw_uid, frozenset(os.getgrouplist(user, entry.pw_gid)), reads_all=entry.pw_uid == 0)


def owner(found: os.stat_result) -> str:
    """Return owner, group and mode of a file in words."""
    try:
        group = grp.getgrgid(found.st_gid).gr_name
    except KeyError:
        group = str(found.st_gid)
    return f"{groups.user_name(found.st_uid) or found.st_uid}:{group}, mode {stat.S_IMODE(found.st_mode):03o}"
