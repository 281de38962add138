"""Orders of callers: the JSON body of a request, bounded and read as a type."""

from typing import TypeVar

from gpuwaste.core.codec import convert
from gpuwaste.core.errors import ParseError
from gpuwaste.core.refusal import BAD, Refusal
from gpuwaste.core.typed import decode

_T = TypeVar("_T")


def read_order(body: bytes, kind: type[_T], most: int, *, what: str = "the body", hint: str = "") -> _T:
    """Return the order in a body of at most `most` bytes. Raises Refusal, whose line names `what`.

    `hint` says in the line on a larger body what of it is limited.
    """
    if len(body) > most:
        raise Refusal(BAD, f"the body has {len(body)} bytes, {most} at most{hint and f': {hint}'}")
    try:
        return convert(decode(body), kind, what)
    except ParseError as error:
        raise Refusal(BAD, str(error)) from error
    except (ValueError, RecursionError) as error:
        raise Refusal(BAD, f"{what}: {error}") from error
