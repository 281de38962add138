"""Visitors: who reads a page, by their session or by the proxy that signed them in, and what they may see."""

import math
from collections.abc import Callable
from typing import Final

from fastapi import Request
from prometheus_client import CollectorRegistry, Counter, Gauge

from gpuwaste.core import log_event
from gpuwaste.core.clock import Clock
from gpuwaste.core.config import Config
from gpuwaste.core.errors import ConfigError, StoreError
from gpuwaste.core.hub_config import WebConfig
from gpuwaste.core.parts import Part, Parts
from gpuwaste.core.refusal import FORBIDDEN, NOT_INSTALLED, UNAUTHORIZED, Refusal
from gpuwaste.core.repeat_suppressor import EventLog
from gpuwaste.core.scope import Scope
from gpuwaste.core.units import HOUR_S
from gpuwaste.hub.hub_metrics import HubMetrics
from gpuwaste.hub.roles import Roles
from gpuwaste.hub.sign_in.lake_tokens import LakeTokens, tokens_of
from gpuwaste.hub.sign_in.origins import (
    LINK,
    REASONS,
    Origins,
    ProxyHeader,
    Rejection,
    cookie_of,
    require_same_origin,
    uids_of,
)
from gpuwaste.hub.sign_in.token_table import TokenLimits, Tokens, TokenTable
from gpuwaste.jobs.host_ports import HostPorts

LINK_S: Final = 60
REFRESH: Final = "gpuwaste-refresh"  # header of a page that refreshes itself: its reader may be away
LONGEST_SESSION_H: Final = 12.0
_LINKS: Final = TokenLimits(per_user=4, in_all=4096, life_s=LINK_S, idle_s=LINK_S)
_SESSIONS_PER_USER: Final = 8
_SESSIONS: Final = 16_384
_SIGNED_IN: Final = log_event.info("page-sign-in: {user} has signed in to the pages by a one-time link")
_SIGNED_OUT: Final = log_event.info("page-sign-out: {user} has signed out of the pages")
_REJECTED: Final = log_event.warning(
    "page-rejected: rejected requests for pages ({reason}): {error}",
    "A user requests pages of others, or `[web] url` or the proxy is not as in docs/how-to/web.md.",
)


class SignInNeeded(Refusal):
    """A 401: nobody is signed in; the application answers with the page that says how to."""

    def __init__(self) -> None:
        super().__init__(UNAUTHORIZED, "nobody is signed in: run `gpuwaste web` and open its link")


class Visitors(Part):
    """Links, sessions and the proxy's header; for any thread. Rejections are counted, their reasons logged.

    Methods that read a link or a session raise StoreError where these are in a lake that does not answer.
    """

    def __init__(
        self,
        settings: WebConfig,
        origins: Origins,
        scope_of: Callable[[str], Scope],
        tokens: Callable[[str, TokenLimits], Tokens],
        *,
        registry: CollectorRegistry,
        clock: Clock,
    ) -> None:
        """`scope_of` returns the API's scope of a user; `tokens` makes the storage of a kind. Raises ConfigError."""
        self.enabled = settings.enabled
        self._proxy = ProxyHeader(settings.proxy_header, uids_of(settings.proxy_users))
        self._origins = origins
        self._scope_of = scope_of
        self._links = tokens("link", _LINKS)
        self._sessions = tokens("session", _session_limits(settings))
        self._metrics = SignInMetrics(registry, self._sessions.count)
        self._log = EventLog(clock)

    @classmethod
    def part_of(cls, parts: Parts) -> "Visitors":
        """Return the part of a hub."""
        config, clock = parts.get(Config), parts.get(HostPorts).clock
        return make_visitors(config, parts.get(Roles).scope, clock, parts.get(HubMetrics).registry)

    @property
    def proxy_uids(self) -> frozenset[int]:
        """The uids that act for other users, never for themselves."""
        return self._proxy.uids

    @property
    def url(self) -> str:
        """The URL of the pages, "" for unknown."""
        return self._origins.base

    def scope(self, request: Request) -> Scope:
        """Return what the visitor may see; may block. Raises SignInNeeded, and Refusal for other origins."""
        user = self.user(request)
        if user is None:
            raise SignInNeeded
        return self._scope_of(user)

    def user(self, request: Request) -> str | None:
        """Return who is signed in, None for nobody. Raises Refusal."""
        origin = self.origin(request)
        find = self._sessions.peek if REFRESH in request.headers else self._sessions.use
        return self._named(request) or find(cookie_of(request, origin))

    def watching(self, request: Request) -> Scope | None:
        """Return what the visitor may see while a page follows events, None for nobody; no session is prolonged.

        Raises Refusal.
        """
        origin = self.origin(request)
        user = self._named(request) or self._sessions.peek(cookie_of(request, origin))
        return None if user is None else self._scope_of(user)

    def claim(self, request: Request) -> str:
        """Return what distinguishes visitors before authentication: the proxy's user, or the cookie; "" for none.

        Does not block. Raises Refusal for other origins.
        """
        origin = self.origin(request)
        return self._named(request) or cookie_of(request, origin)

    def origin(self, request: Request) -> str:
        """Return the origin of the page, once the request is known to be for it and from it. Raises Refusal."""
        self._require_pages()
        try:
            origin = self._origins.of(request)
            require_same_origin(request, origin)
        except Rejection as rejection:
            raise self._noted(rejection) from None
        return origin

    def link(self, scope: Scope) -> str:
        """Return the URL by which the sender of a request signs in once. Raises Refusal."""
        self._require_pages()
        if not self._origins.base:
            raise Refusal(NOT_INSTALLED, "the hub does not know the URL of its pages: set [web] url on its host")
        if not scope.user:
            raise Refusal(FORBIDDEN, "this token is a node's: pages are for users")
        return f"{self._origins.base}/enter#{self._links.give(scope.user)}"

    def enter(self, request: Request, origin: str, link: str) -> str | None:
        """Use a link up; return the token of the new session, None where the link is used or expired."""
        user = self._links.take(link.rpartition("#")[2].strip())
        if user is None:
            self._noted(Rejection(LINK, "the link is used, expired or unknown"))
            return None
        self._sessions.take(cookie_of(request, origin))
        self._metrics.signed_in.inc()
        _SIGNED_IN.log(user=user)
        return self._sessions.give(user)

    def leave(self, request: Request, origin: str) -> bool:
        """End the session; return whether a proxy keeps the user signed in. Raises Refusal."""
        user = self._sessions.take(cookie_of(request, origin))
        if user is not None:
            _SIGNED_OUT.log(user=user)
        return self._named(request) is not None

    def close(self) -> None:
        """Disconnect from the storage of links and sessions."""
        self._links.close()
        self._sessions.close()

    def _named(self, request: Request) -> str | None:
        try:
            return self._proxy.user(request)
        except Rejection as rejection:
            raise self._noted(rejection) from None

    def _require_pages(self) -> None:
        if not self.enabled:
            raise Refusal(NOT_INSTALLED, "this hub serves no pages: [web] enabled is false")

    def _noted(self, rejection: Rejection) -> Rejection:
        self._metrics.rejected(rejection.reason)
        self._log.caused(_REJECTED, rejection.reason, reason=rejection.reason, error=rejection)
        return rejection


def make_visitors(
    config: Config, scope_of: Callable[[str], Scope], clock: Clock, registry: CollectorRegistry
) -> Visitors:
    """Return the visitors of the hub's pages, as configured in [web]. Raises ConfigError."""
    if config.web.proxy_users and not config.hub.socket:
        raise ConfigError("[web] proxy_users needs [hub] socket: the proxy connects to it")
    origins = Origins(config.web.url, config.hub.listen, tls=bool(config.hub.tls_cert))
    catalog = tokens_of(config.hub.lake_catalog) if config.hub.store == "lake" else None

    def tokens(kind: str, limits: TokenLimits) -> Tokens:
        return TokenTable(limits, clock) if catalog is None else LakeTokens(catalog, kind, limits)

    return Visitors(config.web, origins, scope_of, tokens, registry=registry, clock=clock)


def _session_limits(settings: WebConfig) -> TokenLimits:
    if not 0 < settings.idle_h <= LONGEST_SESSION_H:
        raise ConfigError(
            f"[web] idle_h {settings.idle_h:g}: expected more than 0 and at most {LONGEST_SESSION_H:g} hours"
        )
    return TokenLimits(_SESSIONS_PER_USER, _SESSIONS, LONGEST_SESSION_H * HOUR_S, settings.idle_h * HOUR_S)


class SignInMetrics:
    """Counts sign-ins and rejections; for any thread."""

    def __init__(self, registry: CollectorRegistry, sessions: Callable[[], int]) -> None:
        """`sessions` is read at each scrape; the figure is NaN where it raises StoreError."""

        def counted() -> float:
            try:
                return sessions()
            except StoreError:
                return math.nan

        self.signed_in = Counter(
            "gpuwaste_hub_sign_ins", "Sign-ins to the pages by a one-time link.", registry=registry
        )
        self._rejected = Counter(
            "gpuwaste_hub_page_rejections",
            "Requests for pages that were rejected: a foreign host name, no TLS, a foreign origin, a forged header,"
            " a link that is used or expired.",
            ["reason"],
            registry=registry,
        )
        for reason in REASONS:
            self._rejected.labels(reason)
        Gauge("gpuwaste_hub_page_sessions", "Sessions; of all hubs of a lake.", registry=registry).set_function(counted)

    def rejected(self, reason: str) -> None:
        """Note a rejection."""
        self._rejected.labels(reason).inc()
