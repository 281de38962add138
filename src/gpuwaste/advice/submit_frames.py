"""The frames between a submit plugin and the advisor (docs/reference/wire.md): a header of six bytes, then JSON.

Header: the length of the JSON, u32, and the version, u16, both in network byte order. A connection carries one request
and one reply. The plugin treats any other reply as "pass".
"""

import json
import struct
from collections.abc import Sequence
from typing import Any, Final

from gpuwaste.core.errors import ParseError
from gpuwaste.jobs.verdict import ACTIONS, MAX_LINE, MAX_LINES, Action

VERSION: Final = 1
HEADER: Final = struct.Struct("!IH")
MAX_REQUEST: Final = 64 * 1024
MAX_REPLY: Final = 2 * 1024
_encode: Final = json.JSONEncoder(separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode


def encode_frame(document: dict[str, Any], version: int = VERSION) -> bytes:
    """Return header and JSON."""
    body = _encode(document).encode()
    return HEADER.pack(len(body), version) + body


def decode_header(header: bytes, limit: int = MAX_REQUEST) -> int:
    """Return the length of the JSON that follows. Raises ParseError for another version or more than `limit` bytes."""
    length, version = HEADER.unpack(header)
    if version != VERSION:
        raise ParseError(
            f"advice: version {version} of the peer, {VERSION} here: plugin and advisor are of different releases"
        )
    if not 0 < length <= limit:
        raise ParseError(f"advice: a frame of {length} bytes, at most {limit} are allowed")
    return int(length)


def decode_body(body: bytes) -> dict[str, Any]:
    """Return the JSON object of a frame. Raises ParseError."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise ParseError("advice: invalid JSON") from error
    if not isinstance(value, dict):
        raise ParseError("advice: not a JSON object")
    return value


def encode_reply(
    verdict_id: str,
    action: Action,
    lines: Sequence[str] = (),
    *,
    code: int = 0,
    as_of: int = 0,
    time_min: int | None = None,
    model: str | None = None,
) -> bytes:
    """Return a complete reply of at most MAX_REPLY bytes.

    `code` is the ESLURM number of a rejection, 0 for the plugin's own choice; `as_of` is the UTC second up to which the
    advisor knows the history; `time_min` is in minutes, None to leave it; `model` is the hash of the model in use, ""
    for none: it answers a ping. Lines that do not fit are cut.
    """
    cut = [line[:MAX_LINE] for line in lines[:MAX_LINES]]
    document: dict[str, Any] = {"v": VERSION, "id": verdict_id, "action": action, "code": code, "msg": cut}
    document["as_of"] = as_of
    if time_min is not None:
        document["time_min"] = time_min
    if model is not None:
        document["model"] = model
    while len(frame := encode_frame(document)) > MAX_REPLY + HEADER.size:
        cut[:] = [line[: len(line) // 2] for line in cut]
    return frame


def decode_reply(frame: bytes) -> dict[str, Any]:
    """Return the reply of a complete frame, as tests and tools read it. Raises ParseError."""
    if len(frame) < HEADER.size or decode_header(frame[: HEADER.size], MAX_REPLY) != len(frame) - HEADER.size:
        raise ParseError("advice: the length of the reply differs from its header")
    reply = decode_body(frame[HEADER.size :])
    if reply.get("action") not in ACTIONS:
        raise ParseError("advice: a reply without an action")
    return reply
