"""The advisor of this host, queried over its socket as the plugin does: its answer, its job history, its model."""

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from gpuwaste.advice.submit_frames import HEADER, MAX_REPLY, decode_header, decode_reply, encode_frame
from gpuwaste.cli.check import Check, Role, Status, Surroundings
from gpuwaste.core.errors import GpuwasteError, ParseError
from gpuwaste.core.groups import user_name
from gpuwaste.core.unix_socket import connect_unix
from gpuwaste.net.peers import peer_of

PLACE: Final = 80
NAME: Final = "advisor"
ROLES: Final = frozenset({Role.ADVISOR})
_ASK_S: Final = 5.0
_AGAIN: Final = 2  # queries to an advisor whose history is old
_START: Final = "as root: systemctl start gpuwaste-advisor, and read its log"


def check(around: Surroundings) -> Iterator[Check]:
    """Send a ping; only root and SlurmUser get an answer, others see which user the listener runs as."""
    path = Path(around.config.advisor.socket)
    try:
        owner, reply = _ask(path)
    except OSError as error:
        yield Check(NAME, Status.FAIL, f"{path}: {error.strerror or error}", _START)
        return
    except ParseError as error:
        yield Check(NAME, Status.FAIL, f"{path}: {error}", "check [advisor] socket: is this the advisor's?")
        return
    wanted = around.config.plugin.advisor_user
    if owner not in {wanted, "root"}:
        yield Check(NAME, Status.FAIL, f"{path}: listener runs as {owner}, the plugins accept only {wanted}", _START)
        return
    if reply is None:
        found = f"{path}: listener runs as {owner} and answers only root and SlurmUser"
        yield Check(NAME, Status.OK if os.geteuid() else Status.FAIL, found, "" if os.geteuid() else _START)
        return
    yield Check(NAME, Status.OK, f"{path} answers")
    yield _caught_up(around, path, int(reply.get("as_of") or 0))
    if isinstance(model := reply.get("model"), str):
        yield from _same_model(around, model)


def _caught_up(around: Surroundings, path: Path, as_of: int) -> Check:
    """Check the job history; an advisor or a hub that has just been started may still load it: retry."""
    found = _history(around, as_of)
    for _ in range(_AGAIN):
        if found.status is not Status.FAIL or around.clock.wait(
            threading.Event(), around.config.advisor.history_every_s
        ):
            break
        try:
            _, reply = _ask(path)
        except (OSError, ParseError):
            break
        found = _history(around, int((reply or {}).get("as_of") or 0))
    return found


def _history(around: Surroundings, as_of: int) -> Check:
    """Check the age of the advisor's job history; `as_of` is UTC seconds, 0 for none."""
    mend = "check the connection to the hub; see the advisor's log"
    if not as_of:
        return Check("history", Status.WARN, "no job history yet: jobs are accepted without advice", mend)
    age_s = max(0.0, around.clock.utc_us() / 1e6 - as_of)
    figures = {"history_age_s": round(age_s)}
    if age_s > around.config.advisor.stale_s:
        return Check(
            "history", Status.FAIL, f"job history is {age_s:.0f} s old: jobs are accepted without advice", mend, figures
        )
    if age_s > around.config.advisor.stale_s / 2:
        return Check("history", Status.WARN, f"job history is {age_s:.0f} s old", mend, figures)
    return Check("history", Status.OK, f"job history is {age_s:.0f} s old", figures=figures)


def _same_model(around: Surroundings, ours: str) -> Iterator[Check]:
    """Compare the advisor's model with the hub's; a hub without an answer has its own line."""
    try:
        hub = around.hub_health().prediction
    except GpuwasteError:
        return
    if hub.state == "not installed":
        return
    if ours == hub.model_hash:
        yield Check("champion", Status.OK, f"the hub and this advisor use {_named(ours)}")
        return
    yield Check(
        "champion",
        Status.WARN,
        f"this advisor uses {_named(ours)}, the hub uses {_named(hub.model_hash)}",
        f"copy {around.config.common.models_dir} from the hub to this host; compare gpuwaste model list on both",
    )


def _named(digest: str) -> str:
    return f"model {digest[:12]}" if digest else "no model"


def _wants_more(data: bytes) -> bool:
    """Return whether a frame is still incomplete. Raises ParseError."""
    return len(data) < HEADER.size or len(data) - HEADER.size < decode_header(data[: HEADER.size], MAX_REPLY)


def _ask(path: Path) -> tuple[str, dict[str, Any] | None]:
    """Return who listens, and their answer, None where they closed the connection. Raises OSError, ParseError."""
    with connect_unix(path, _ASK_S) as sock:
        _, uid = peer_of(sock)
        owner = user_name(uid) or str(uid)
        try:
            sock.sendall(encode_frame({"op": "ping"}))
            data = b""
            while _wants_more(data) and (part := sock.recv(MAX_REPLY)):
                data += part
        except (BrokenPipeError, ConnectionResetError):
            return owner, None
    return owner, decode_reply(data) if data else None
