"""`gpuwaste config check`, second part: what a daemon would end with at its start, tried without starting one.

Values are tried on every host, with the daemons' own code where their package is installed; files, users and
addresses on the hosts whose services need them.
"""

import os
import pwd
import socket
import stat
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Final

from gpuwaste.cli.check import Role
from gpuwaste.core.config import Config
from gpuwaste.core.errors import GpuwasteError

Attempt = Callable[[Config], object]
_MAX_SOCKET: Final = 107  # bytes of a Unix socket's path


def refusals(config: Config, roles: Collection[Role]) -> Iterator[str]:
    """Yield the line of each start that would fail on a host of these roles."""
    attempts = [*_VALUES, *(attempt for role, own in _STARTS.items() if role in roles for attempt in own)]
    for attempt in attempts:
        try:
            attempt(config)
        except ModuleNotFoundError:
            continue  # the daemon is not installed here
        except GpuwasteError as error:
            if not _hidden(error.__cause__, config):
                yield _placed(str(error))
    for role, section, key in _FILES:
        path = getattr(getattr(config, section), key)
        if path and role in roles:
            yield from _file(f"[{section}] {key}", Path(path), _user_of(role, config), config)
    for role, section in ((Role.HUB, "hub"), (Role.ADVISOR, "advisor")):
        yield from _socket(section, getattr(config, section).socket, here=role in roles)
    for role in (Role.AGENT, Role.HUB, Role.ADVISOR):
        if role in roles:
            yield from _address(str(role), getattr(config, role).listen)


def _hub_url(config: Config) -> None:
    from gpuwaste.wire.http import parse_endpoint

    parse_endpoint(config.common.hub_url)


def _slurmrestd_url(config: Config) -> None:
    from gpuwaste.slurm.choice import slurm_client

    slurm_client(config.common)


def _slurmrestd_token(config: Config) -> None:
    from gpuwaste.slurm.rest_token import read_token

    if config.common.slurmrestd_token_file:
        read_token(Path(config.common.slurmrestd_token_file))


def _notices(config: Config) -> None:
    from gpuwaste.hub.notify.addresses import AddressBook
    from gpuwaste.hub.notify.settings import NotifySettings

    NotifySettings.from_config(config.notify)
    AddressBook(config.notify.address)


def _collectors(config: Config) -> None:
    from gpuwaste.agent.collectors import check_names

    check_names(config.agent.collectors)


def _xids(config: Config) -> None:
    from gpuwaste.agent.health import health_xids

    health_xids(config.agent.health_xids)


def _agent_client(config: Config) -> None:
    from gpuwaste.agent.site import make_hub_client

    make_hub_client(config)


def _advisor_client(config: Config) -> None:
    from gpuwaste.advisor.site import hub_client

    hub_client(config)


def _slurm_user(config: Config) -> None:
    from gpuwaste.advisor.site import slurm_uid

    if config.advisor.slurm_user:
        slurm_uid(config.advisor.slurm_user)


def _callers(config: Config) -> None:
    from gpuwaste.hub.daemon import agent_uid, make_checkers

    agent_uid(config.hub.agent_user, make_checkers(config))


def _own_client(config: Config) -> None:
    """Try what the commands need of files; munge has a line of the doctor."""
    from gpuwaste.wire.client import HubClient
    from gpuwaste.wire.tokens import TokenIssuer

    common = config.common
    HubClient(common.hub_url, TokenIssuer(Path(common.token_file)) if common.token_file else None, ca=common.hub_ca)


def _metrics_of(section: str) -> Attempt:
    def attempt(config: Config) -> None:
        from gpuwaste.wire.exporter import server_tls, server_token

        own = getattr(config, section)
        if own.listen and own.tls_cert:
            server_tls(own.tls_cert, own.tls_key, section)
        if own.listen and section == "agent" and own.metrics_token_file:
            server_token(own.metrics_token_file, section)

    return attempt


_VALUES: Final[tuple[Attempt, ...]] = (_hub_url, _slurmrestd_url, _notices, _collectors, _xids)
_STARTS: Final[dict[Role, tuple[Attempt, ...]]] = {
    Role.AGENT: (_agent_client, _metrics_of("agent")),
    Role.HUB: (_callers, _metrics_of("hub"), _slurmrestd_token),
    Role.ADVISOR: (_advisor_client, _slurm_user, _metrics_of("advisor")),
    Role.LOGIN: (_own_client,),
}
_FILES: Final = (
    (Role.HUB, "hub", "tls_key"),
    (Role.HUB, "hub", "node_tokens_file"),
    (Role.HUB, "notify", "smtp_password_file"),
    (Role.HUB, "notify", "smtp_ca"),
    (Role.HUB, "notify", "address_file"),
    (Role.HUB, "notify", "opt_out_file"),
    (Role.ADVISOR, "advisor", "tls_key"),
    (Role.ADVISOR, "common", "token_file"),
)
"""Files that root may read and the service may not; the agent's capabilities open all of them to it."""


def _placed(words: str) -> str:
    """Return an error with its section in front, where it names a key of [common] alone."""
    return f"[common] {words}" if words.startswith(("hub_url", "hub_ca", "slurmrestd_url")) else words


def _user_of(role: Role, config: Config) -> str:
    return config.agent.hub_user if role is Role.HUB else config.plugin.advisor_user


def _hidden(cause: BaseException | None, config: Config) -> bool:
    """Tell whether a file is closed to the caller alone: an ordinary user is no measure of what a service may read."""
    services = {config.hub.agent_user, config.agent.hub_user, config.plugin.advisor_user}
    return isinstance(cause, PermissionError) and bool(os.geteuid()) and _caller() not in services


def _caller() -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return ""


def _file(key: str, path: Path, user: str, config: Config) -> Iterator[str]:
    """Look whether the service's user may read a file, by owner and mode; access lists are not looked at."""
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


def _socket(section: str, text: str, *, here: bool) -> Iterator[str]:
    """Look at the place of a Unix socket."""
    if len(os.fsencode(text)) > _MAX_SOCKET:
        yield f"[{section}] socket: the path is longer than {_MAX_SOCKET} bytes: set a shorter one"
    elif text and here:
        path = Path(text)
        try:
            if not stat.S_ISSOCK(path.lstat().st_mode):
                yield f"[{section}] socket {path}: is no socket: remove it or set another path"
        except FileNotFoundError:
            if section == "hub" and not path.parent.is_dir():
                yield f"[{section}] socket {path}: {path.parent} is no directory: make it or set another path"
        except OSError as error:
            yield f"[{section}] socket {path}: {error.strerror}"


def _address(section: str, listen: str) -> Iterator[str]:
    """Try an address of this host at a port that the kernel chooses: the service may run at its own."""
    host = listen.rpartition(":")[0].strip("[]")
    if not host:
        return  # empty, or another line says what it lacks
    try:
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM) as sock:
            sock.bind((host, 0))
    except (OSError, UnicodeError) as error:
        words = getattr(error, "strerror", None) or error
        yield f"[{section}] listen {listen}: {words}: name an address of this host, or 0.0.0.0 for all"
