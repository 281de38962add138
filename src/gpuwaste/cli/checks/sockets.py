"""The shared directory in /run and the daemons' sockets: existence, owner, permissions."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from gpuwaste.cli.check import Check, Role, Status, Surroundings, is_there
from gpuwaste.core.files import open_to_others
from gpuwaste.core.groups import user_name

PLACE: Final = 65
NAME: Final = "run dir"
ROLES: Final = frozenset({Role.AGENT, Role.HUB, Role.ADVISOR})
_ANYBODY: Final = 0o666  # the peer's uid decides who may ask
_ROOT_AND_OWN: Final = 0o660


def check(around: Surroundings) -> Iterator[Check]:
    """Check the directory first, then the sockets that this host's daemons create."""
    config = around.config
    run_dir = Path(config.common.run_dir)
    yield _directory(run_dir, config.hub.agent_user)
    if Role.AGENT in around.roles:
        if is_there(run_dir / "agent.sock"):  # without it the agent's own line fails
            yield _socket(run_dir / "agent.sock", config.hub.agent_user, _ROOT_AND_OWN, "gpuwaste-agent")
        yield from _jobs(Path(config.agent.jobs_dir))
    if Role.ADVISOR in around.roles and is_there(Path(config.advisor.socket)):  # the same
        yield _socket(Path(config.advisor.socket), config.plugin.advisor_user, _ANYBODY, "gpuwaste-advisor")
    if Role.HUB in around.roles and config.hub.socket:
        yield _socket(Path(config.hub.socket), config.hub.agent_user, _ANYBODY, "gpuwaste-hub")


def _jobs(jobs: Path) -> Iterator[Check]:
    """Check the directory of prolog and epilog, which write nothing where others than root can change it."""
    if jobs.is_dir() and (words := open_to_others(jobs, 0, 0) or _open_to_others(jobs, "root")):
        mend = f"chown root {jobs}; chmod 755 {jobs}"
        yield Check("prolog", Status.FAIL, f"{jobs}: {words}: prolog and epilog write no files", mend)


def _directory(path: Path, user: str) -> Check:
    mend = f"run systemd-tmpfiles --create, or mkdir {path}"
    if not path.is_dir():
        return Check(NAME, Status.FAIL, f"{path} is not a directory", mend)
    if not os.access(path, os.R_OK | os.X_OK):
        return Check(NAME, Status.FAIL, f"{path} cannot be read", f"chmod 755 {path}")
    if words := _open_to_others(path, user):
        return Check(NAME, Status.FAIL, f"{path}: {words}", f"chown {user} {path}; chmod 755 {path}")
    return Check(NAME, Status.OK, str(path))


def _open_to_others(path: Path, user: str) -> str:
    """Return why a directory cannot be trusted: who could change its contents."""
    there = path.stat()
    if there.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return "writable by others than its owner"
    owner = user_name(there.st_uid) or str(there.st_uid)
    return "" if owner in {"root", user} else f"belongs to {owner}"


def _socket(path: Path, user: str, mode: int, unit: str) -> Check:
    name = path.name.removesuffix(".sock")[:8] + ".sock"
    try:
        there = path.lstat()
    except OSError as error:
        return Check(name, Status.FAIL, f"{path}: {error.strerror}", f"as root: systemctl start {unit}")
    if not stat.S_ISSOCK(there.st_mode):
        return Check(name, Status.FAIL, f"{path} exists but is not a socket", f"remove it, systemctl restart {unit}")
    owner, found = user_name(there.st_uid) or str(there.st_uid), stat.S_IMODE(there.st_mode)
    if owner not in {user, "root"}:
        return Check(name, Status.FAIL, f"{path} belongs to {owner}, not {user}", f"systemctl restart {unit}")
    if found != mode:
        words = f"{path} has mode {found:04o}, not {mode:04o}"
        return Check(name, Status.FAIL, words, f"chmod {mode:o} {path}, or systemctl restart {unit}")
    return Check(name, Status.OK, f"{path}, {owner}, {mode:04o}")
