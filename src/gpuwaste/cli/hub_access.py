"""The hub as the commands reach it: with the caller's munge credential, a token, or over a Unix socket."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from gpuwaste.core.config import Config
from gpuwaste.core.errors import WireError

if TYPE_CHECKING:
    from gpuwaste.net.hub_client import HubClient

PATIENCE_S: Final = 20.0
COMPILING_S: Final = 120.0  # for expected starts: the hub compiles at the first request
LONG_PATIENCE_S: Final = 600.0  # for what a large site's hub has to sum first
_LINK: Final = re.compile(r"https?://[A-Za-z0-9\[\]:._-]{1,260}/enter#[A-Za-z0-9_-]{43}", re.ASCII)


def ask_hub(
    config: Config, path: str, parameters: Mapping[str, str | int] | None = None, timeout_s: float = PATIENCE_S
) -> dict[str, Any]:
    """Return the document at `path`. Raises NoDataError, AuthError, WireError."""
    document: dict[str, Any] = hub_client(config, timeout_s).get(path, parameters)
    return document


def hub_client(config: Config, timeout_s: float = PATIENCE_S) -> "HubClient":
    """Return the caller's client for the hub. Raises AuthError where there is no credential."""
    from gpuwaste.net.hub_client import HubClient

    common = config.common
    return HubClient(common.hub_url, _issuer(config), ca=common.hub_ca, timeout_s=timeout_s)


def _issuer(config: Config) -> Any:
    """Return the issuer of credentials; None where the socket itself identifies the caller."""
    common = config.common
    if common.hub_url.startswith("unix:"):
        return None
    if common.token_file:
        from gpuwaste.net.tokens import TokenIssuer

        return TokenIssuer(Path(common.token_file))
    from gpuwaste.net.munge_credentials import Munge, MungeIssuer

    return MungeIssuer(Munge(common.munge_socket))


def url_of(answer: Mapping[str, Any]) -> tuple[str, int]:
    """Return the link and the seconds for which it is good. Raises WireError where there is none."""
    match answer:
        case {"url": str(url), "expires_s": int(seconds)} if _LINK.fullmatch(url):
            return url, seconds
    raise WireError("the hub's answer has no link: does it run another version?")
