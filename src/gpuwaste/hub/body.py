"""A request's body, read under a limit of bytes and of time: what is too much is refused before it is in memory."""

import asyncio
from collections.abc import AsyncIterator
from typing import Final

from gpuwaste.core.refusal import BAD, NO_SUCH_ENCODING, TOO_LARGE, TOO_SLOW, Refusal

_PLAIN: Final = frozenset({"", "identity"})


async def read_body(
    chunks: AsyncIterator[bytes], *, length: str | None, encoding: str, max_bytes: int, deadline_s: float
) -> bytes:
    """Return the whole body. `length` and `encoding` are the values of Content-Length and Content-Encoding.

    Raises Refusal: 413 beyond `max_bytes`, 408 beyond `deadline_s`, 415 for a compressed body, 400 for a bad length.
    """
    if encoding.strip().lower() not in _PLAIN:
        raise Refusal(NO_SUCH_ENCODING, f"Content-Encoding {encoding[:40]!r}: send the batch uncompressed")
    if length is not None and not (length.isascii() and length.isdigit()):
        raise Refusal(BAD, "Content-Length is not a number")
    if length is not None and int(length) > max_bytes:
        raise _too_large(max_bytes)
    parts = bytearray()
    try:
        async with asyncio.timeout(deadline_s):
            async for chunk in chunks:
                parts += chunk
                if len(parts) > max_bytes:
                    raise _too_large(max_bytes)
    except TimeoutError as error:
        raise Refusal(TOO_SLOW, f"the body was not complete within {deadline_s:g} s: send smaller batches") from error
    return bytes(parts)


def _too_large(max_bytes: int) -> Refusal:
    return Refusal(TOO_LARGE, f"the body is larger than {max_bytes} bytes: send smaller batches", max_bytes=max_bytes)
