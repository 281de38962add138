"""`gpuwaste config check`, third part: the files, directories, sockets and addresses of this host's services."""

import grp
import os
import pwd
import socket
import stat
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Final

from gpuwaste.cli.check import Role
from gpuwaste.core.config import Config
from gpuwaste.core.errors import ConfigError
from gpuwaste.core.files import open_to_others
from gpuwaste.core.groups import user_name
from gpuwaste.core.unix_socket import require_room

_FILES: Final = (
    (Role.AGENT, "agent", "tls_key"),
    (Role.AGENT, "agent", "metrics_token_file"),
    (Role.AGENT, "common", "token_file"),
    (Role.HUB, "hub", "tls_key"),
    (Role.HUB, "hub", "node_tokens_file"),
    (Role.HUB, "hub", "lake_s3_keys_file"),
    (Role.HUB, "hub", "lake_s3_ca_file"),
    (Role.HUB, "notify", "smtp_password_file"),
    (Role.HUB, "notify", "smtp_ca"),
    (Role.HUB, "notify", "address_file"),
    (Role.HUB, "notify", "opt_out_file"),
    (Role.ADVISOR, "advisor", "tls_key"),
    (Role.ADVISOR, "common", "token_file"),
)
"""Files that root may read and the service may not."""
_DIRECTORIES: Final = (
    (Role.AGENT, "agent", "state_dir"),
    (Role.AGENT, "common", "run_dir"),
    (Role.HUB, "hub", "state_dir"),
    (Role.ADVISOR, "advisor", "state_dir"),
    (Role.ADVISOR, "advisor", "socket"),
)
"""Directories that a daemon trusts, and writes to."""


def faults(config: Config, roles: Collection[Role]) -> Iterator[str]:
    """Yield a line for each place that a service on a host of these roles could not use."""
    for role, section, key in _FILES:
        path = getattr(getattr(config, section), key)
        if path and role in roles:
            yield from _file(f"[{section}] {key}", Path(path), _user_of(role, config), config)
    for role, section, key in _DIRECTORIES:
        if role in roles:
            text = getattr(getattr(config, section), key)
            path = Path(text).parent if key == "socket" else Path(text)
            yield from _directory(f"[{section}] {key} {text}", path, _user_of(role, config), config)
    for role, section in ((Role.HUB, "hub"), (Role.ADVISOR, "advisor")):
        yield from _socket(section, getattr(config, section).socket, here=role in roles)
    if Role.HUB in roles:
        yield from _groups(config.hub.staff_groups)
    for role in (Role.AGENT, Role.HUB, Role.ADVISOR):
        if role in roles:
            yield from _address(str(role), getattr(config, role).listen)


def _user_of(role: Role, config: Config) -> str:
    """Return the user that the others of the site believe a service to be."""
    named = {Role.AGENT: config.hub.agent_user, Role.HUB: config.agent.hub_user}
    return named.get(role, config.plugin.advisor_user)


def hidden(cause: BaseException | None, config: Config) -> bool:
    """Tell whether a file is closed to the caller alone: an ordinary user is no measure of what a service may read."""
    services = {config.hub.agent_user, config.agent.hub_user, config.plugin.advisor_user}
    return isinstance(cause, PermissionError) and bool(os.geteuid()) and user_name(os.geteuid()) not in services


def _file(key: str, path: Path, user: str, config: Config) -> Iterator[str]:
    """Look whether the service's user may read a file, by owner and mode; access lists are not looked at."""
    try:
        found = path.stat()
        known = pwd.getpwnam(user)
    except OSError as error:
        if not hidden(error, config):
            yield f"{key} {path}: cannot be read: {error.strerror}"
        return
    except KeyError:
        return  # another line names the user
    groups = os.getgrouplist(user, known.pw_gid)
    bit = stat.S_IRUSR if found.st_uid == known.pw_uid else stat.S_IRGRP if found.st_gid in groups else stat.S_IROTH
    if not found.st_mode & bit and "system.posix_acl_access" not in os.listxattr(path):
        yield f"{key} {path}: the service's user {user} may not read it: chgrp {user} {path}; chmod 640 {path}"


def _directory(key: str, path: Path, user: str, config: Config) -> Iterator[str]:
    """Look at a directory that is there: nobody else may change it, and the service's user may write to it."""
    try:
        known = pwd.getpwnam(user)
        if words := open_to_others(path, known.pw_uid, known.pw_gid):
            yield f"{key}: others could change files that gpuwaste trusts: {words}"
        elif path.stat().st_uid != known.pw_uid and not path.stat().st_mode & stat.S_IWGRP:
            yield f"{key}: {path} does not belong to the service's user: chown -R {user} {path}"
    except FileNotFoundError:
        return  # the service or its package makes it
    except OSError as error:
        if not hidden(error, config):
            yield f"{key}: cannot be used: {error.strerror}"
    except KeyError:
        return  # another line names the user


def _groups(names: Collection[str]) -> Iterator[str]:
    """Look for groups that this host does not know: their members see only their own jobs."""
    for name in names:
        try:
            grp.getgrnam(name)
        except KeyError:
            yield f"[hub] staff_groups: no group {name!r} on this host: correct the name, or create the group"


def _socket(section: str, text: str, *, here: bool) -> Iterator[str]:
    """Look at the place of a Unix socket."""
    try:
        require_room(f"[{section}] socket", text)
    except ConfigError as error:
        yield str(error)
        return
    if text and here:
        path = Path(text)
        try:
            if not stat.S_ISSOCK(path.lstat().st_mode):
                yield f"[{section}] socket {path}: exists but is not a socket: remove it or set another path"
        except FileNotFoundError:
            if section == "hub" and not path.parent.is_dir():
                yield f"[{section}] socket {path}: {path.parent} is no directory: make it or set another path"
        except OSError as error:
            yield f"[{section}] socket {path}: {error.strerror}"


def _address(section: str, listen: str) -> Iterator[str]:
    """Try an address of this host at a port that the kernel chooses: the service may run at its own."""
    from gpuwaste.net.listen_address import parse_listen

    try:
        address = parse_listen(listen, section)
    except ConfigError:
        return  # empty, or another line says what it lacks
    try:
        with socket.socket(address.family, socket.SOCK_STREAM) as sock:
            sock.bind((address.host, 0))
    except (OSError, UnicodeError) as error:
        words = getattr(error, "strerror", None) or error
        yield f"[{section}] listen {listen}: {words}: name an address of this host, or 0.0.0.0 for all"
