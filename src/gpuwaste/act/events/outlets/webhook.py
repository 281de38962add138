"""Outlet webhook: CloudEvents, one or a batch, in HTTP requests signed according to Standard Webhooks 1.0."""

import hashlib
import ipaddress
import socket
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gpuwaste.act.events.outlet import DeliveryResult, OutletDownError
from gpuwaste.act.events.webhook_signing import read_secrets, signed
from gpuwaste.core.clock import Clock, SystemClock
from gpuwaste.core.config_files import expanded
from gpuwaste.core.errors import ConfigError, WireError
from gpuwaste.core.text import decoded, words_of
from gpuwaste.core.typed_toml import key
from gpuwaste.jobs.events.envelope import BATCH_TYPE, MEDIA_TYPE, StoredEvent, encoded
from gpuwaste.net.addresses import Endpoint, embedded_address, ip_address, is_public, parse_target_url
from gpuwaste.net.http import HttpAnswer, HttpExchange, HttpRequest, tls_context

MAX_BODY: Final = 1 << 20
_MAX_ANSWER: Final = 64 * 1024
_NEVER: Final = frozenset({400, 406, 410, 411, 413, 415, 422})  # a later request of the same bytes would fail too
_GOOD: Final = range(200, 300)
_OVERHEAD: Final = 2  # of a batch: its brackets
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True, slots=True)
class WebhookOutletSettings:
    """Table [webhook]."""

    url: str = key("", "URL of the receiver, https://HOST[:PORT]/PATH.")
    secret_file: str = key("", "File with the secret of the signature, whsec_BASE64; not readable by other users.")
    ca: str = key("", "PEM file of the CA of the receiver's certificate; empty: the system's CAs.")
    timeout_s: float = key(20.0, "Timeout of a whole request.")
    batch: int = key(100, "Largest number of events of a request; 1: each event in a request of its own.")
    networks: tuple[str, ...] = key(
        (),
        "Networks inside the site that the URL may lead to, such as 10.1.2.0/24; others than public ones are refused.",
    )


SETTINGS: Final = WebhookOutletSettings


class Webhook:
    """Sends requests one after the other, each with its own connection; redirects are not followed."""

    def __init__(
        self,
        settings: WebhookOutletSettings,
        receiver: tuple[Endpoint, str],
        secret: bytes,
        networks: Sequence[Network],
        clock: Clock,
    ) -> None:
        """`receiver` is the server and the target of its requests."""
        self._settings = settings
        self._endpoint, self._target = receiver
        self._secret = secret
        self._networks = networks
        self._clock = clock
        self._tls = tls_context(settings.ca) if self._endpoint.scheme == "https" else None

    def deliver(self, events: Sequence[StoredEvent], cluster: str) -> DeliveryResult:
        """Send the events. Raises OutletDownError."""
        bodies = [(event, encoded(event, cluster)) for event in events]
        dead: list[tuple[StoredEvent, str]] = []
        for part in _parts(bodies, self._settings.batch):
            refused = self._send(part)
            if refused and len(part) > 1:  # the receiver may reject only one of them
                dead += [(one[0], why) for one in part if (why := self._send([one]))]
            elif refused:
                dead.append((part[0][0], refused))
        return DeliveryResult(dead)

    def close(self) -> None:
        """Do nothing: no connection outlasts a request."""

    def _send(self, part: Sequence[tuple[StoredEvent, bytes]]) -> str:
        """Return why the receiver will never accept these, "" if it has accepted them. Raises OutletDownError."""
        self._check_address()
        texts = [text for _, text in part]
        single = self._settings.batch == 1
        body = texts[0] if single else b"[" + b",".join(texts) + b"]"
        ids = "\0".join(event.id for event, _ in part)
        name = part[0][0].id if single else hashlib.sha256(ids.encode()).hexdigest()
        headers = {"Content-Type": MEDIA_TYPE if single else BATCH_TYPE, "User-Agent": "gpuwaste"}
        headers |= signed(self._secret, name, self._clock.utc_s(), body)
        # The name is resolved again for the connection, and may have another address by then.
        exchange = HttpExchange(
            self._endpoint, self._tls, self._settings.timeout_s, _MAX_ANSWER, check_peer=self._check_permitted
        )
        try:
            answer = exchange.send(HttpRequest("POST", self._target, body, headers))
        except WireError as error:
            raise OutletDownError(str(error)) from error
        if answer.status in _GOOD:
            return ""
        if answer.status in _NEVER:
            return _said(answer)
        raise OutletDownError(f"{self._endpoint.url}: {_said(answer)}")

    def _check_address(self) -> None:
        """Raise OutletDownError if the name resolves to an address inside the site that is in no listed network."""
        host = self._endpoint.host
        try:
            found = {info[4][0] for info in socket.getaddrinfo(host, self._endpoint.port, type=socket.SOCK_STREAM)}
        except (OSError, UnicodeError) as error:
            raise OutletDownError(f"{self._endpoint.url}: {host[:80]} has no address: {words_of(error)}") from error
        for text in sorted(map(str, found)):
            self._check_permitted(text)

    def _check_permitted(self, text: str) -> None:
        """Raise OutletDownError for an address inside the site that is in no listed network."""
        address = ip_address(text)
        ends = (address, embedded_address(address)) if address else ()
        known = any(end in network for network in self._networks for end in ends)
        if not known and (address is None or not is_public(address)):
            raise OutletDownError(
                f"{self._endpoint.url}: {text} is an address inside the site: add it to [webhook] networks"
            )


def make(settings: WebhookOutletSettings, where: str) -> Webhook:
    """Return the outlet. Raises ConfigError."""
    receiver = parse_target_url(settings.url, "is the receiver running?", f"{where} url")
    if not 0 < settings.timeout_s <= 600:  # noqa: PLR2004 ten minutes
        raise ConfigError(f"{where} timeout_s {settings.timeout_s:g}: expected more than 0, at most 600")
    if not 1 <= settings.batch <= 1000:  # noqa: PLR2004 a page of the stream
        raise ConfigError(f"{where} batch {settings.batch}: expected 1 to 1000")
    networks = [_network(text, f"{where} networks") for text in settings.networks]
    secret = read_secrets(Path(expanded(settings.secret_file)))[0] if settings.secret_file else b""
    return Webhook(settings, receiver, secret, networks, SystemClock())


def _parts(bodies: Sequence[tuple[StoredEvent, bytes]], most: int) -> Iterator[list[tuple[StoredEvent, bytes]]]:
    """Yield the events of each request: at most `most` of them and MAX_BODY bytes, at least one."""
    part: list[tuple[StoredEvent, bytes]] = []
    size = _OVERHEAD
    for event, text in bodies:
        if part and (len(part) == most or size + len(text) + 1 > MAX_BODY):
            yield part
            part, size = [], _OVERHEAD
        part.append((event, text))
        size += len(text) + 1
    if part:
        yield part


def _network(text: str, where: str) -> Network:
    try:
        return ipaddress.ip_network(text)
    except ValueError as error:
        raise ConfigError(f"{where} {text!r:.60}: expected a network such as 10.1.2.0/24: {error}") from error


def _said(answer: HttpAnswer) -> str:
    words = words_of(decoded(answer.body[:400]), 200)
    return f"HTTP {answer.status}" + (f": {words}" if words else "")
