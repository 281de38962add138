"""Signatures of webhooks: made by Standard Webhooks' own library they are accepted, and nothing else is."""

import base64
from datetime import UTC, datetime
from pathlib import Path

import pytest
from standardwebhooks import Webhook
from tests.unit.act.events.site import SECRET

from gpuwaste.act.events.webhook_signing import TOLERANCE_S, UnsignedError, check_signature, read_secrets, signed
from gpuwaste.core.errors import ConfigError

NOW = 1_700_000_000
BODY = b'{"id": "1"}'
KEY = base64.b64decode(SECRET.removeprefix("whsec_"))


def headers(body: bytes = BODY, at: int = NOW, secret: str = SECRET, name: str = "msg_1") -> dict[str, str]:
    """Return what a sender adds, by the library."""
    text = Webhook(secret).sign(name, datetime.fromtimestamp(at, UTC), body.decode())
    return {"webhook-id": name, "webhook-timestamp": str(at), "webhook-signature": text}


def test_both_sides_are_the_library_s() -> None:
    """What it signs is accepted, and it makes the same signature as ours."""
    check_signature([KEY], headers(), BODY, NOW)
    assert signed(KEY, "msg_1", NOW, BODY) == headers()


def test_what_was_signed_names_a_request() -> None:
    """Whatever signatures are with it, and in which order: the same id, time and body are the same request."""
    one = check_signature([KEY], headers(), BODY, NOW)
    several = {**headers(), "webhook-signature": f"v1,AAAA {headers()['webhook-signature']} v1,BBBB"}
    assert check_signature([KEY, b"x" * 32], several, BODY, NOW + 10) == one
    assert one.until_utc == NOW + TOLERANCE_S
    assert check_signature([KEY], headers(at=NOW + 1), BODY, NOW) != one
    assert check_signature([KEY], headers(name="msg_2"), BODY, NOW).digest != one.digest


def test_while_a_secret_is_replaced_both_are_good() -> None:
    """Any of the hub's secrets and any of the request's signatures will do; versions that are not known are passed."""
    other = "whsec_" + base64.b64encode(b"x" * 32).decode()
    check_signature([KEY, b"x" * 32], headers(secret=other), BODY, NOW)
    several = headers()
    several["webhook-signature"] = f"v1a,AAAA v1,AAAA {several['webhook-signature']}"
    check_signature([KEY], several, BODY, NOW)


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        ({}, "unsigned"),
        ({**headers(), "webhook-signature": ""}, "unsigned"),
        ({**headers(), "webhook-signature": "v1," + "A" * 2000}, "unsigned"),
        ({**headers(), "webhook-id": "x" * 300}, "unsigned"),
        ({**headers(), "webhook-timestamp": "now"}, "unsigned"),
        ({**headers(), "webhook-timestamp": "\u0661"}, "unsigned"),
        ({**headers(), "webhook-timestamp": "9" * 400}, "clock"),
        (headers(at=NOW - TOLERANCE_S - 1), "clock"),
        (headers(at=NOW + TOLERANCE_S + 1), "clock"),
        (headers(b'{"id": "2"}'), "signature"),
        ({**headers(), "webhook-id": "msg_2"}, "signature"),
        ({**headers(), "webhook-timestamp": str(NOW + 1)}, "signature"),
        (headers(secret="whsec_" + base64.b64encode(b"x" * 32).decode()), "signature"),
        ({**headers(), "webhook-signature": "v1,\udcff\xff"}, "signature"),
        ({**headers(), "webhook-signature": headers()["webhook-signature"].replace("v1,", "v2,")}, "signature"),
    ],
)
def test_what_was_not_signed_so_is_refused(found: dict[str, str], reason: str) -> None:
    """No header, another body, id or time, an old request, another secret, hostile text: each has a word."""
    with pytest.raises(UnsignedError) as raised:
        check_signature([KEY], found, BODY, NOW)
    assert raised.value.reason == reason
    assert "\n" not in str(raised.value)


def test_a_file_has_up_to_four_secrets(tmp_path: Path) -> None:
    """A line each; none, five, or one that is short is refused."""
    path = tmp_path / "key"
    for text, error in (("", "0 secrets"), (f"{SECRET}\n" * 5, "5 secrets"), ("whsec_QUJD\n", "3 bytes: expected 16")):
        path.write_text(text)
        path.chmod(0o600)
        with pytest.raises(ConfigError, match=error):
            read_secrets(path)
    path.write_text(f"{SECRET}\n{SECRET}\n")
    assert read_secrets(path) == (KEY, KEY)
