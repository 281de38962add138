"""Figures of sign-ins for Prometheus: by result and reason, never by user."""

import math
from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge

from gpuwaste.core.errors import StoreError
from gpuwaste.hub.sign_in.rejection import REASONS


class SignInMetrics:
    """Counts sign-ins and what was refused; for any thread."""

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
