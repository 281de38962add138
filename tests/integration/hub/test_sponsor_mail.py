"""Mail to who answers for an account: by the site's file or command, else its coordinators; bounded, each once."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.integration.hub.rig import running_hub
from tests.integration.hub.test_actions import intent

from gpuwaste.act.actions.action_parts import ActionParts
from gpuwaste.act.notify.account_sponsors import MOST, SponsorBook, read_sponsors
from gpuwaste.act.notify.mail_addresses import AddressError
from gpuwaste.core.act_config import NotifyConfig
from gpuwaste.core.errors import ConfigError
from gpuwaste.testing.mail_server import running_mail_server

TEXT = {"subject": "Job 7 is idle", "text": "Job 7 of alice is idle.", "to": "sponsor"}


@contextmanager
def told(tmp_path: Path, **notify: Any) -> Iterator[Any]:
    """Yield a function that has a mail to the sponsor sent, and returns receivers, status and reason."""
    with running_mail_server() as server:
        address = {"smtp_host": "127.0.0.1", "smtp_port": server.port, "sender": "gw@example.org"}
        config = NotifyConfig(**{**address, "address": "{user}@example.org", "dry_run": False, **notify})
        with running_hub(tmp_path, notify=config) as rig:
            numbers = iter(range(1000))

            def tell(**other: Any) -> tuple[list[str], str, str]:
                before = len(server.received)
                one = intent("notify", f"s{next(numbers)}", options=TEXT, **other)
                parts = rig.hub.get(ActionParts)
                assert parts.manager.intend([one]) == [one.id]
                parts._mail.send_due()
                row = parts.store.found(one.id)[0]
                return [to for mail in server.received[before:] for to in mail.to], row.status, row.reason

            yield tell


def test_the_coordinator_of_the_account_is_told(tmp_path: Path) -> None:
    """Carol coordinates proj1; of an account without coordinators nobody is told, with the reason."""
    with told(tmp_path) as tell:
        assert tell() == (["carol@example.org"], "confirmed", "")
        to, status, reason = tell(account="proj9")
        assert (to, status) == ([], "moot")
        assert reason.startswith("the sponsor of account proj9 is unknown: ")
        assert tell(account="")[1] == "moot"
        assert tell(cluster="elsewhere")[:2] == ([], "moot"), "coordinators are those of the cluster"


def test_a_sponsor_who_is_the_user_gets_no_second_mail(tmp_path: Path) -> None:
    """Their mail is the one to the user; another sponsor still gets theirs."""
    sponsors = tmp_path / "sponsors.toml"
    sponsors.write_text('proj1 = ["alice", "frank"]\nproj2 = "alice"\n')
    with told(tmp_path / "hub", sponsor_file=str(sponsors)) as tell:
        assert tell()[0] == ["frank@example.org"]
        assert tell(account="proj2")[1:] == ("moot", "the only sponsor of account proj2 is the job's user")


def test_the_file_goes_before_the_coordinators_and_is_watched(tmp_path: Path) -> None:
    """Several users get a mail each; one address gets one; a bad file leaves the old content; `[]` is nobody."""
    sponsors, addresses = tmp_path / "sponsors.toml", tmp_path / "addresses"
    sponsors.write_text('proj1 = ["frank", "grace", "heidi"]\nproj2 = []\n')
    addresses.write_text("grace lab@example.org\nheidi lab@example.org\n")
    with told(tmp_path / "hub", sponsor_file=str(sponsors), address_file=str(addresses)) as tell:
        assert tell()[0] == ["frank@example.org", "lab@example.org"]
        assert tell(account="proj2")[1] == "moot"
        sponsors.write_text("proj1 = [")
        assert tell()[0] == ["frank@example.org", "lab@example.org"]
        sponsors.write_text('proj3 = "frank"\n')
        assert tell()[0] == ["carol@example.org"]


def test_a_command_of_the_site(tmp_path: Path) -> None:
    """Its output is names; exit code 1 is "not known here"; one that does not run lets the mail wait."""
    program = tmp_path / "sponsors"
    program.write_text('#!/bin/sh\n[ "$1" = proj1 ] || exit 1\necho "frank, -x grace@evil;rm"\n')
    program.chmod(0o755)
    with told(tmp_path / "hub", sponsor_command=(str(program), "{account}")) as tell:
        assert tell()[0] == ["frank@example.org"]
        assert tell(account="proj9")[1] == "moot"
    missing = SponsorBook(lambda *_: (), None, (str(tmp_path / "gone"), "{account}"))
    with pytest.raises(AddressError, match="sponsor_command"):
        missing.sponsors("gw", "proj1")
    assert missing.sponsors("gw", "-rf /") == [], "such a name is no word of a command"
    with pytest.raises(ConfigError, match=r"expected \{account\}"):
        SponsorBook(lambda *_: (), None, ("/bin/echo", "x"))


def test_at_most_some_sponsors_are_told() -> None:
    """An account with a thousand coordinators is no mailing list; odd names are none."""
    many = [f"user{number}" for number in range(1000)]
    assert len(SponsorBook(lambda *_: many).sponsors("gw", "a")) == MOST
    assert SponsorBook(lambda *_: ["a b", "-x", "ok", ""]).sponsors("gw", "a") == ["ok"]


@pytest.mark.parametrize(
    "data",
    [
        b"\xff\xfe", b"proj1", b"a = 1", b"a = [1]", b'a = "b c"', b'a = "x\\ny"', b"a = {}", b'a = "-rf"',
        b"a = [" + b'"u",' * 50 + b"]", b"#" * (2 << 20), b"\x00" * 50,
    ],
    ids=["utf-8", "cut", "number", "numbers", "blank", "break", "table", "option", "many", "huge", "nul"],
)  # fmt: skip
def test_a_bad_file_is_refused_in_one_line(tmp_path: Path, data: bytes) -> None:
    """With its path; a hub does not start with it."""
    path = tmp_path / "sponsors.toml"
    path.write_bytes(data)
    with pytest.raises(ConfigError) as caught:
        read_sponsors(path)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)
    with pytest.raises(ConfigError):
        SponsorBook(lambda *_: (), path)
    path.unlink()
    with pytest.raises(ConfigError, match="sponsors"):
        SponsorBook(lambda *_: (), path)
