"""The hub client of agents and advisors: with munge, where only the hub's user can acknowledge, or with a token."""

import pwd
from pathlib import Path

from gpuwaste.core.config import Config
from gpuwaste.core.errors import ConfigError
from gpuwaste.net.hub_client import HubClient
from gpuwaste.net.munge_credentials import Munge, MungeIssuer
from gpuwaste.net.tokens import TokenIssuer


def daemon_client(config: Config) -> HubClient:
    """Return the client for the hub with this site's credentials. Raises ConfigError, AuthError."""
    common = config.common
    if common.token_file:
        return HubClient(common.hub_url, TokenIssuer(Path(common.token_file)), ca=common.hub_ca)
    uid = hub_uid(config)  # before munge's library is searched: a wrong user name is an error on any host
    return HubClient(common.hub_url, MungeIssuer(Munge(common.munge_socket), uid), ca=common.hub_ca)


def hub_uid(config: Config) -> int:
    """Return the uid in the hub's credentials. Raises ConfigError."""
    user = config.agent.hub_user
    try:
        return pwd.getpwnam(user).pw_uid
    except KeyError as error:
        raise ConfigError(
            f"[agent] hub_user: {user!r} is not a user on this host: set the user that the hub runs as"
        ) from error
