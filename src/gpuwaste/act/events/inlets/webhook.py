"""Inlet webhook: POST /v1/inlets/NAME of the hub, signed according to Standard Webhooks 1.0."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gpuwaste.act.events.inlet_store import SentRequest
from gpuwaste.act.events.webhook_signing import check_signature, read_secrets
from gpuwaste.core.errors import ConfigError
from gpuwaste.core.typed_toml import key


@dataclass(frozen=True, slots=True)
class WebhookInletSettings:
    """Table [webhook]."""

    secret_file: str = key(
        "", "File with the secrets of senders, whsec_BASE64, a line each; not readable by other users."
    )


SETTINGS: Final = WebhookInletSettings


class SignedWebhook:
    """Accepts requests of holders of a secret; a second secret is for the time in which one is replaced."""

    def __init__(self, secrets: Sequence[bytes]) -> None:
        self._secrets = secrets

    def check(self, headers: Mapping[str, str], body: bytes, now_utc: int) -> SentRequest:
        """Return the request. Raises UnsignedError if it was not signed with a secret, or not now."""
        return check_signature(self._secrets, headers, body, now_utc)


def make(settings: WebhookInletSettings, where: str) -> SignedWebhook:
    """Return the inlet. Raises ConfigError."""
    if not settings.secret_file:
        raise ConfigError(f"{where} secret_file is empty: without a secret anybody could send events")
    return SignedWebhook(read_secrets(Path(settings.secret_file)))
