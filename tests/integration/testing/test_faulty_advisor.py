"""The advisor at fault: each way is at fault as its name says, and none of them is a rejection in good form."""

import contextlib
import socket
import threading

import pytest

from gpuwaste.advice.submit_frames import decode_reply, encode_frame
from gpuwaste.core.errors import ParseError
from gpuwaste.testing.faulty_advisor import WAYS


def _answer(way: str) -> bytes:
    """Return all that a way sends in answer to a request, up to its end or half a second of silence."""
    ours, theirs = socket.socketpair()
    ours.settimeout(0.5)
    ours.sendall(encode_frame({"op": "submit", "job": {}}))

    def serve() -> None:
        with theirs, contextlib.suppress(OSError):
            WAYS[way](theirs)

    thread = threading.Thread(target=serve)
    thread.start()
    data = b""
    with ours, contextlib.suppress(TimeoutError, ConnectionResetError):
        while part := ours.recv(65536):
            data += part
    thread.join()
    return data


def test_only_one_way_refuses_in_good_form() -> None:
    """What plays another user's advisor would be believed, were it the advisor's."""
    assert decode_reply(_answer("refuse-all"))["action"] == "reject"


@pytest.mark.parametrize("way", sorted(set(WAYS) - {"refuse-all", "slow", "drip", "wrong-types", "hostile"}))
def test_a_way_gives_no_reply(way: str) -> None:
    """What comes is no reply: nothing, a part, another length, version or action."""
    with pytest.raises(ParseError):
        decode_reply(_answer(way))


def test_the_hostile_warning_is_well_formed() -> None:
    """Its frame and its action are right: only its texts and its id are hostile."""
    reply = decode_reply(_answer("hostile"))
    assert reply["action"] == "warn"
    assert any("\x1b" in line for line in reply["msg"])
