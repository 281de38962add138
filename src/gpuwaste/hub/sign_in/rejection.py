"""Rejection: a request for a page that is not served because of how it came, with the reason that is counted."""

from typing import Final

from gpuwaste.core.refusal import FORBIDDEN, Refusal

HOST: Final = "host"
CLEAR: Final = "clear"
ORIGIN: Final = "origin"
HEADER: Final = "header"
LINK: Final = "link"
REASONS: Final = (HOST, CLEAR, ORIGIN, HEADER, LINK)


class Rejection(Refusal):
    """A 403; `reason` is one of REASONS."""

    def __init__(self, reason: str, words: str) -> None:
        super().__init__(FORBIDDEN, words)
        self.reason = reason
