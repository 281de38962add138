"""Addresses: from the file, the command, the pattern; hostile names and answers give none."""

from pathlib import Path

import pytest

from gpuwaste.act.notify.mail_addresses import AddressBook, AddressError, is_address, read_names
from gpuwaste.core.errors import ConfigError


def book(tmp_path: Path, lines: str = "", pattern: str = "", command: tuple[str, ...] = ()) -> AddressBook:
    """Return a book that has read its file."""
    file = tmp_path / "addresses"
    file.write_bytes(lines.encode("utf-8", "surrogateescape"))
    made = AddressBook(pattern, file, command)
    made.refresh()
    return made


def test_the_file_comes_first(tmp_path: Path) -> None:
    """A line of the file wins over the pattern, a dash says that nobody is written to."""
    found = book(tmp_path, "alice a@x.org # moved\nbob\t-\n\n# remark\n", "{user}@example.org")
    assert [found.address_of(user) for user in ("alice", "bob", "carol")] == ["a@x.org", "", "carol@example.org"]


def test_a_bad_line_is_nobody(tmp_path: Path) -> None:
    """A line that holds no plain address keeps its user from mail, and others have theirs."""
    found = book(tmp_path, "eve eve@x.org,root@x.org\nmal \udcff@x\nalice a@x.org\n", "{user}@example.org")
    assert [found.address_of(user) for user in ("eve", "mal", "alice")] == ["", "", "a@x.org"]


def test_the_command_prints_a_passwd_line(tmp_path: Path) -> None:
    """The address in the GECOS field of getent's line is found; without one the pattern counts."""
    script = tmp_path / "lookup"
    script.write_text('#!/bin/sh\n[ "$2" = alice ] && echo "alice:x:1:1:Alice,a.b+c@x.org,,:/home/alice:/bin/sh"\n')
    script.chmod(0o755)
    found = book(tmp_path, "", "{user}@example.org", (str(script), "passwd", "{user}"))
    assert found.address_of("alice") == "a.b+c@x.org"
    assert found.address_of("bob") == "bob@example.org"


@pytest.mark.parametrize(
    "user",
    ["-f", "a b", "a\nBcc: x@y.org", "", "a@b.org", "a;reboot", "../x", "a" * 65, "\x1b[31m", "ü"],
)
def test_a_hostile_name_has_no_address(tmp_path: Path, user: str) -> None:
    """A name that could mean something to a shell, a header or SMTP is never part of an address or a command."""
    marker = tmp_path / "ran"
    found = book(tmp_path, "", "{user}@example.org", ("/usr/bin/touch", str(marker)))
    assert found.address_of(user) == ""
    assert not marker.exists()


def test_a_command_that_does_not_work_is_no_answer(tmp_path: Path) -> None:
    """A missing program postpones; a user whom the command does not know has no address."""
    with pytest.raises(AddressError, match="failed: "):
        book(tmp_path, command=("/nonexistent/lookup", "{user}")).address_of("alice")
    assert book(tmp_path, command=("/bin/false",)).address_of("alice") == ""
    assert book(tmp_path, command=("/bin/echo", "no address here")).address_of("alice") == ""


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    """A file that cannot be read stops everything: nobody may be written to in spite of his line in it."""
    with pytest.raises(AddressError, match="cannot be read"):
        AddressBook("", tmp_path / "none").refresh()
    with pytest.raises(AddressError, match="cannot be read"):
        read_names(tmp_path / "none")


def test_plain_addresses() -> None:
    """One local part and one host; everything that could be two, or a route, or a line, is refused."""
    assert all(map(is_address, ["a@b", "a.b+c@x-y.example.org", "root@localhost"]))
    bad = ["a", "a@", "@b", "a@b@c", "a@b,c@d", "<a@b>", "a b@c", "a@b\n", "a\r\n@b", '"a"@b', "a@b..c", "a@-b", "a@b-"]
    assert not any(map(is_address, bad))


def test_a_pattern_must_be_one(tmp_path: Path) -> None:
    """A pattern that gives no address is refused at the start."""
    with pytest.raises(ConfigError, match="expected a pattern"):
        AddressBook("{user}")
