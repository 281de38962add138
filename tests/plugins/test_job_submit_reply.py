"""What the submit plugins take for a reply, and what they do with its texts."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.plugins.client_driver import Client

from gpuwaste.advice.submit_frames import HEADER, encode_reply
from gpuwaste.jobs.verdict import MAX_LINE, Action
from gpuwaste.slurm.formats.printed_run import token_of
from gpuwaste.testing.patience import patient

pytestmark = pytest.mark.core

VERDICT = "0123456789abcdef"
GOOD: dict[str, Any] = {"v": 1, "id": VERDICT, "action": "warn", "code": 0, "msg": ["a", "b"], "as_of": 1700000000}
CASES = 300_000


def body(**changes: Any) -> bytes:
    """Return a good reply's JSON with these members instead; None takes one away."""
    document = {key: value for key, value in {**GOOD, **changes}.items() if value is not None}
    return json.dumps(document).encode()


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        (("", "pass"), {}),
        ((VERDICT, "annotate", ["not shown"]), {"as_of": 1}),
        ((VERDICT, "warn", ["one", "two", "three"]), {"as_of": 1_700_000_000, "time_min": 30}),
        ((VERDICT, "reject", ["grüße \u65e5\u672c \U0001f642"]), {"code": 2051, "as_of": 2}),
        ((VERDICT, "warn", ["\U0001f642" * 200] * 3), {"as_of": 3}),
    ],
)
def test_every_reply_of_an_advisor_is_taken(harness: Path, arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
    """What encode_reply writes is read back member for member."""
    frame = encode_reply(*arguments, **options)
    expected = json.loads(frame[HEADER.size :])
    with Client(harness) as client:
        taken, reply = client.parse(frame[HEADER.size :])
    assert taken
    assert (reply.action, reply.id, reply.code) == (expected["action"], expected["id"], expected["code"])
    assert (reply.as_of, reply.time_min) == (expected["as_of"], expected.get("time_min", 0))
    shown = expected["action"] in ("warn", "reject")
    assert reply.message == ("\n".join(expected["msg"]) if shown else "")


def test_order_and_blanks_do_not_matter(harness: Path) -> None:
    """Another writer of JSON may order members and put blanks between them as it likes."""
    text = json.dumps(dict(reversed(GOOD.items())), indent=2).encode() + b" \r\n\t"
    with Client(harness) as client:
        assert client.parse(text)[0]


@pytest.mark.parametrize(
    "reply",
    [
        b"",
        b"{}",
        b"[]",
        b"null",
        b"\x00",
        body()[:-1],
        body() + b"x",
        body() + body(),
        body().replace(b'"v"', b'"v": 1, "v"'),
        body().replace(b'"id"', b"id"),
        body().replace(b"}", b",}"),
        body(more=1),
        body(v=2),
        body(v=None),
        body(v=True),
        body(v=1.0),
        body(id=None),
        body(id=5),
        body(id="x" * 40),
        body(action=None),
        body(action="Reject"),
        body(action="allow"),
        body(action=["reject"]),
        body(code=None),
        body(code=-1),
        body(code=65536),
        body(code=10**30),
        body(code="2050"),
        body(code=2050.5),
        body().replace(b'"code": 0', b'"code": 02050'),
        body().replace(b'"code": 0', b'"code": '),
        body(msg=None),
        body(msg="a"),
        body(msg=[1]),
        body(msg=[None]),
        body(msg=["a", "b", "c", "d"]),
        body(msg=["x" * (MAX_LINE + 1)]),
        body(msg=[["a"]]),
        body().replace(b'["a", "b"]', b'["a" "b"]'),
        body().replace(b'["a", "b"]', b'["a",]'),
        body(msg=["\ud800"]),
        body(msg=["\udc00x"]),
        body().replace(b'"a"', b'"\\ud83dx"'),
        body().replace(b'"a"', b'"\\ud83d\\u0041"'),
        body().replace(b'"a"', b'"\\u12g4"'),
        body().replace(b'"a"', b'"\\x41"'),
        body().replace(b'"a"', b'"\xff"'),
        body().replace(b'"a"', b'"\xc0\xaf"'),
        body().replace(b'"a"', b'"\n"'),
        body().replace(b'"a"', b'"\x00"'),
        body(as_of=-1),
        body(as_of=1 << 50),
        body(time_min=-1),
        body(time_min=1 << 33),
        body(time_min="30"),
    ],
)
def test_whatever_else_is_refused(harness: Path, reply: bytes) -> None:
    """A reply that no advisor of this version writes is refused as a whole: it says pass and nothing more."""
    with Client(harness) as client:
        taken, parsed = client.parse(reply)
    assert not taken
    assert (parsed.action, parsed.id, parsed.code, parsed.time_min, parsed.message) == ("pass", "", 0, 0, "")


def test_control_characters_become_blanks(harness: Path) -> None:
    """No line breaks a user's terminal or steers it: ASCII's control characters and those of Latin-1 are blanks."""
    line = "a\x00b\x1b[2Jc\x07d\ne\x7ff\x85g\x9bh\r"
    with Client(harness) as client:
        escaped = client.parse(body(msg=[line]))
        plain = client.parse(body().replace(b'"a"', '"x\x7f\x85\x9b\xa0y"'.encode()))
    assert escaped[1].message == _blank(line) == "a b [2Jc d e f g h "
    assert plain[1].message == "x     \xa0y\nb"


def _blank(text: str) -> str:
    return "".join(" " if ord(c) < 32 or 127 <= ord(c) < 160 else c for c in text)


@pytest.mark.parametrize(
    "verdict", ["short", "0123456789ABCDEF", "0123456789abcde;", "0123456789abcdeg\n", "grüße-grüße-"]
)
def test_id_of_another_form_is_none(harness: Path, verdict: str) -> None:
    """Only an id of 16 characters [0-9a-z] can reach admin_comment; the rest of the reply holds."""
    with Client(harness) as client:
        taken, reply = client.parse(body(id=verdict))
    assert (taken, reply.id, reply.message) == (True, "", "a\nb")


def test_refusal_without_a_reason_says_so(harness: Path) -> None:
    """A rejected user never sees an empty message."""
    with Client(harness) as client:
        _, reply = client.parse(body(action="reject", msg=[]))
    assert reply.message.startswith("gpuwaste: this site's policy refuses the job")


@pytest.mark.parametrize(
    ("old", "verdict", "new"),
    [
        ("", VERDICT, f";gw={VERDICT}"),
        ("ticket 7", VERDICT, f"ticket 7;gw={VERDICT}"),
        ("ticket 7", "", "ticket 7"),
        ("a;gw=aaaaaaaaaaaaaaaa", VERDICT, f"a;gw={VERDICT}"),
        ("gw=aaaaaaaaaaaaaaaa", VERDICT, f";gw={VERDICT}"),
        ("gw=aaaaaaaaaaaaaaaa;gw=bbbbbbbbbbbbbbbb;b", VERDICT, f"b;gw={VERDICT}"),
        ("a;gw=aaaaaaaaaaaaaaaa;b;gw=bbbbbbbbbbbbbbbb", "", "a;b"),
        ("a;gw=aaaaaaaaaaaaaaaaa", VERDICT, f"a;gw=aaaaaaaaaaaaaaaaa;gw={VERDICT}"),
        ("a;gw=AAAAAAAAAAAAAAAA", VERDICT, f"a;gw=AAAAAAAAAAAAAAAA;gw={VERDICT}"),
        ("agw=aaaaaaaaaaaaaaaa", VERDICT, f"agw=aaaaaaaaaaaaaaaa;gw={VERDICT}"),
        ("gw=short", "", "gw=short"),
        ("a;gw=aaaaaaaaaaaaaaaa\n", VERDICT, f"a\n;gw={VERDICT}"),
        ("a;gw=aaaaaaaaaaaaaaaa\n", "", "a\n"),
        ("gw=aaaaaaaaaaaaaaaa \r\n", "", " \r\n"),
        ("a\ngw=aaaaaaaaaaaaaaaa\n;gw=bbbbbbbbbbbbbbbb;b", "", "a\n\n;b"),
        ("x gw=aaaaaaaaaaaaaaaa, (gw=bbbbbbbbbbbbbbbb)", "", "x , ()"),
        (";gw=aaaaaaaaaaaaaaaa;gw=bbbbbbbbbbbbbbbb\t;gw=cccccccccccccccc", "", "\t"),
        ("a;;gw=aaaaaaaaaaaaaaaagw=bbbbbbbbbbbbbbbb", "", "a;;gw=aaaaaaaaaaaaaaaagw=bbbbbbbbbbbbbbbb"),
        (";gw=grüße;gw=aaaaaaaaaaaaaaaaü", "", ";gw=grüßeü"),
        (";;", VERDICT, f";;;gw={VERDICT}"),
        ("x" * 5000, VERDICT, "x" * 5000 + f";gw={VERDICT}"),
        ('{"k": "grüße"}', VERDICT, f'{{"k": "grüße"}};gw={VERDICT}'),
    ],
)
def test_token_beside_the_text(harness: Path, old: str, verdict: str, new: str) -> None:
    """The token stands beside what admin_comment holds, in place of an older one, and nothing else is touched."""
    with Client(harness) as client:
        assert client.comment(old, verdict) == new
    assert token_of(new) == verdict


def test_fuzzed_replies(harness: Path, tmp_path: Path) -> None:
    """Hundreds of thousands of broken replies neither touch memory that is not theirs nor say what they must not."""
    seeds: list[Path] = []
    said: list[tuple[Action, list[str]]] = [
        ("pass", []),
        ("warn", ["one", "two", "three"]),
        ("reject", ["grüße \U0001f642" * 9]),
        ("warn", ["x" * 160] * 3),
    ]
    for index, (action, lines) in enumerate(said):
        frame = encode_reply(VERDICT, action, lines, code=2050, as_of=1_700_000_000, time_min=index)
        seeds.append(tmp_path / f"seed-{index}")
        seeds[-1].write_bytes(frame[HEADER.size :])
    argv = [str(harness / "test" / "fuzz-reply"), str(CASES), str(os.getpid()), *map(str, seeds)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=patient(150), check=False)
    assert done.returncode == 0, done.stderr
    cases, taken = (int(pair.split("=")[1]) for pair in done.stdout.split())
    assert cases == CASES
    assert CASES // 1000 < taken < CASES // 2
