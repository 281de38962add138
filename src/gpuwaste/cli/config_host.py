"""`gpuwaste config check`, second part: errors that would end a service of this host at its start, without starting it.

The daemons' own code is tried where their package is installed; then the files, directories, sockets and addresses that
they use are checked.
"""

import grp
import os
import pwd
import socket
import stat
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import Final

from gpuwaste.cli.check import Role
from gpuwaste.core.config import Config
from gpuwaste.core.errors import ConfigError, GpuwasteError
from gpuwaste.core.files import open_to_others
from gpuwaste.core.groups import user_name
from gpuwaste.core.unix_socket import require_room

Attempt = Callable[[Config], object]
_FILES: Final = (
    (Role.AGENT, "agent", "tls_key"),
    (Role.AGENT, "agent", "metrics_token_file"),
    (Role.AGENT, "common", "token_file"),
    (Role.HUB, "hub", "tls_key"),
    (Role.HUB, "hub", "node_tokens_file"),
    (Role.HUB, "hub", "lake_s3_keys_file"),
    (Role.HUB, "hub", "lake_s3_ca_file"),
    (Role.HUB, "common", "campaign_key_file"),
    (Role.HUB, "notify", "smtp_password_file"),
    (Role.HUB, "notify", "smtp_ca"),
    (Role.HUB, "notify", "address_file"),
    (Role.HUB, "notify", "sponsor_file"),
    (Role.HUB, "notify", "opt_out_file"),
    (Role.ADVISOR, "advisor", "tls_key"),
    (Role.ADVISOR, "common", "campaign_key_file"),
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


def refusals(config: Config, roles: Collection[Role]) -> Iterator[str]:
    """Yield the line of each start that would fail on a host of these roles, and of each path that cannot be used."""
    yield from tried((attempt for role, own in _STARTS.items() if role in roles for attempt in own), config)
    yield from _places(config, roles)


def tried(attempts: Iterable[Attempt], config: Config) -> Iterator[str]:
    """Yield the line of each attempt that fails; without those whose package is not installed here."""
    for attempt in attempts:
        try:
            attempt(config)
        except ModuleNotFoundError:
            continue
        except GpuwasteError as error:
            if not _hidden(error.__cause__, config):
                yield _placed(str(error))


def _control_socket(config: Config) -> None:
    from gpuwaste.agent.control_socket import socket_of

    socket_of(Path(config.common.run_dir))


def _slurmrestd_token(config: Config) -> None:
    from gpuwaste.slurm.clients.rest_http import read_token

    if config.common.slurmrestd_token_file:
        read_token(Path(config.common.slurmrestd_token_file))


def _daemon_client(config: Config) -> None:
    from gpuwaste.net.daemon_client import daemon_client

    daemon_client(config)


def _campaign_key(config: Config) -> None:
    """Read the key without which hub and advisor use no campaign."""
    from gpuwaste.act.campaigns.assignment import read_key

    if config.common.campaign_key_file:
        read_key(Path(config.common.campaign_key_file))


def _slurm_user(config: Config) -> None:
    from gpuwaste.advisor.advisor_ports import slurm_uid

    if config.advisor.slurm_user:
        slurm_uid(config.advisor.slurm_user)


def _callers(config: Config) -> None:
    from gpuwaste.hub.hub_daemon import agent_issuer, make_checkers
    from gpuwaste.hub.hub_ports import agent_uid

    checkers = make_checkers(config)
    agent_uid(config.hub.agent_user, checkers)
    agent_issuer(config, checkers)


def _pages(config: Config) -> None:
    from prometheus_client import CollectorRegistry

    from gpuwaste.core.clock import SystemClock
    from gpuwaste.core.scope import Scope
    from gpuwaste.hub.sign_in.visitors import make_visitors

    make_visitors(config, Scope, SystemClock(), CollectorRegistry())


def _own_client(config: Config) -> None:
    """Try the files that the commands need; the doctor checks munge."""
    from gpuwaste.net.hub_client import HubClient
    from gpuwaste.net.tokens import TokenIssuer

    common = config.common
    HubClient(common.hub_url, TokenIssuer(Path(common.token_file)) if common.token_file else None, ca=common.hub_ca)


def _metrics_of(section: str) -> Attempt:
    def attempt(config: Config) -> None:
        from gpuwaste.net.metrics_server import server_tls, server_token

        own = getattr(config, section)
        if own.listen and own.tls_cert:
            server_tls(own.tls_cert, own.tls_key, section)
        if own.listen and section == "agent" and own.metrics_token_file:
            server_token(own.metrics_token_file, section)

    return attempt


_STARTS: Final[dict[Role, tuple[Attempt, ...]]] = {
    Role.AGENT: (_control_socket, _daemon_client, _metrics_of("agent")),
    Role.HUB: (_callers, _pages, _metrics_of("hub"), _slurmrestd_token, _campaign_key),
    Role.ADVISOR: (_daemon_client, _slurm_user, _metrics_of("advisor"), _campaign_key),
    Role.LOGIN: (_own_client,),
}


def _places(config: Config, roles: Collection[Role]) -> Iterator[str]:
    """Yield a line for each path that a service on a host of these roles could not use."""
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
    """Return the user as which other hosts of the site expect a service."""
    named = {Role.AGENT: config.hub.agent_user, Role.HUB: config.agent.hub_user}
    return named.get(role, config.plugin.advisor_user)


def _hidden(cause: BaseException | None, config: Config) -> bool:
    """Return whether a file is closed only to the caller: an ordinary user cannot test what a service may read."""
    services = {config.hub.agent_user, config.agent.hub_user, config.plugin.advisor_user}
    return isinstance(cause, PermissionError) and bool(os.geteuid()) and user_name(os.geteuid()) not in services


def _file(key: str, path: Path, user: str, config: Config) -> Iterator[str]:
    """Check whether the service's user may read a file, by owner and mode; access lists are not checked."""
    try:
        found = path.stat()
        known = pwd.getpwnam(user)
    except OSError as error:
        if not _hidden(error, config):
            yield f"{key} {path}: cannot be read: {error.strerror}"
        return
    except KeyError:
        return  # another line names the user
    groups = os.getgrouplist(user, known.pw_gid)
    bit = stat.S_IRUSR if found.st_uid == known.pw_uid else stat.S_IRGRP if found.st_gid in groups else stat.S_IROTH
    if not found.st_mode & bit and "system.posix_acl_access" not in os.listxattr(path):
        yield f"{key} {path}: the service's user {user} may not read it: chgrp {user} {path}; chmod 640 {path}"


def _directory(key: str, path: Path, user: str, config: Config) -> Iterator[str]:
    """Check an existing directory: nobody else may change it, and the service's user may write to it."""
    try:
        known = pwd.getpwnam(user)
        if words := open_to_others(path, known.pw_uid, known.pw_gid):
            yield f"{key}: others could change files that gpuwaste trusts: {words}"
        elif path.stat().st_uid != known.pw_uid and not path.stat().st_mode & stat.S_IWGRP:
            yield f"{key}: {path} does not belong to the service's user: chown -R {user} {path}"
    except FileNotFoundError:
        return  # the service or its package makes it
    except OSError as error:
        if not _hidden(error, config):
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
    """Check the path of a Unix socket."""
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
                yield f"[{section}] socket {path}: {path.parent} is not a directory: create it or set another path"
        except OSError as error:
            yield f"[{section}] socket {path}: {error.strerror}"


def _address(section: str, listen: str) -> Iterator[str]:
    """Try an address of this host at a port that the kernel chooses: the service may run at its own."""
    from gpuwaste.net.addresses import parse_listen

    try:
        address = parse_listen(listen, section)
    except ConfigError:
        return  # empty, or another line reports what it lacks
    try:
        with socket.socket(address.family, socket.SOCK_STREAM) as sock:
            sock.bind((address.host, 0))
    except (OSError, UnicodeError) as error:
        words = getattr(error, "strerror", None) or error
        yield f"[{section}] listen {listen}: {words}: name an address of this host, or 0.0.0.0 for all"


def _placed(words: str) -> str:
    """Return an error with its section in front, where it names only a key of [common]."""
    return f"[common] {words}" if words.startswith(("hub_url", "hub_ca", "slurmrestd_url")) else words
