"""Refusal: the only way for a handler to refuse; the application turns it into a status and {"error": "..."}."""

from typing import Any, Final

from gpuwaste.core.errors import GpuwasteError
from gpuwaste.core.text import words_of


class Refusal(GpuwasteError):  # noqa: N818 an answer, not a failure of gpuwaste
    """A request that is not served: HTTP status, one line of text, and further fields of the answer's object."""

    def __init__(self, status: int, words: str, **extra: Any) -> None:
        super().__init__(words)
        self.status = status
        self.extra = extra
        self.closes = False  # true: the rest of the body is not read, the connection ends with the answer

    def body(self) -> dict[str, Any]:
        """Return the answer's JSON object."""
        return {"error": words_of(self), **self.extra}


BAD: Final = 400
UNAUTHORIZED: Final = 401
FORBIDDEN: Final = 403
NOT_FOUND: Final = 404
TOO_SLOW: Final = 408
CONFLICT: Final = 409
TOO_LARGE: Final = 413
NO_SUCH_ENCODING: Final = 415
UPGRADE: Final = 426
TOO_MANY: Final = 429
NOT_INSTALLED: Final = 501
LATER: Final = 503


def not_found() -> Refusal:
    """Return the answer for what does not exist and for what the caller may not see: the same bytes for both."""
    return Refusal(NOT_FOUND, "job, user or account not found, or not visible to you")
