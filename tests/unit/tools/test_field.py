"""The field's reading of the install page, its watch of the network, and where it finds this host's cgroups."""

import struct
import tomllib
from pathlib import Path

import pytest
from tools.field import cgroups, install, page, watch
from tools.field.checks import ORDER, checks_named, logs

from gpuwaste.core.errors import GpuwasteError

_TEXT = page.PAGE.read_text(encoding="utf-8")
_OF_THE_OTHER = ("dnf", "rpm", "yum")
_ABORTED = "Main process exited, code=killed, status=6/ABRT"
_FAILED = "Failed with result '{}'."


def test_every_step_of_the_page_has_words_for_debian() -> None:
    """No step that the field takes is typed in the words of Enterprise Linux, and none is lost."""
    for part in (*install.PARTS, "Check", "Remove"):
        steps = page.steps(_TEXT, part)
        assert steps, part
        for step in steps:
            assert not any(word in step.script.replace("/", " ").split() for word in _OF_THE_OTHER), step
            assert step.script or step.file.startswith("/etc/"), step


def test_repository_is_the_one_of_the_other_column() -> None:
    """The file of dnf's repository becomes apt's, with its line and the command that reads its index."""
    first, line, update = page.steps(_TEXT, "A repository")
    assert "cp build/deb/gpuwaste*.deb /srv/gpuwaste/\n" in first.script
    assert "dpkg-scanpackages" in first.script
    assert line.file == "/etc/apt/sources.list.d/gpuwaste.list"
    assert line.text.startswith("deb ")
    assert line.text.endswith("\n")
    assert update.script == "apt-get update"


def test_block_without_a_file_is_told() -> None:
    """A block that is neither a script nor the text of a file stops the field instead of being passed over."""
    text = f"{_TEXT}\n## New part\n\nSee:\n\n```ini\n[a]\n```\n"
    with pytest.raises(GpuwasteError, match="New part: the text before this block names no file"):
        page.steps(text, "New part")


def test_command_without_a_word_of_debian_is_told() -> None:
    """A command of Enterprise Linux that the table does not have is told with its line."""
    with pytest.raises(GpuwasteError, match="no Debian command for: rpm -qa"):
        page.in_debian("true\nrpm -qa\n", page.commands(_TEXT))


def test_missing_part_is_told() -> None:
    """A heading that the page does not have any more is told."""
    with pytest.raises(GpuwasteError, match="no section 'Nowhere'"):
        page.section(_TEXT, "Nowhere")


def test_keys_are_set_below_their_sections() -> None:
    """Keys of the page's block are set in a file that has them as comments, and a section that it lacks is added."""
    text = page.with_keys("[hub]\n#listen = 1\nother = 2\n", '[hub]\nlisten = "a"\n[agent]\nx = [1]\n')
    assert tomllib.loads(text) == {"hub": {"listen": "a", "other": 2}, "agent": {"x": [1]}}


def test_question_of_dns_has_its_name() -> None:
    """The name in a question is told, and a cut question ends with what it has."""
    question = b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x07example\x03org\x00\x00\x01\x00\x01"
    assert watch.name_asked(question) == "example.org"
    assert watch.name_asked(question[:22]) == "example.o"
    assert watch.name_asked(b"") == ""


def test_packets_are_told_by_their_target() -> None:
    """A packet of IPv4 or IPv6 is told with address, protocol and port; what a kernel sends to groups is not."""
    four = struct.pack(">BBHHHBBH4s4sHH", 0x45, 0, 40, 0, 0, 64, 6, 0, bytes(4), bytes([192, 0, 2, 1]), 1024, 443)
    assert watch.told(four) == "packet to 192.0.2.1, protocol 6, port 443"
    target = bytes.fromhex("20010db8000000000000000000000001")
    six = struct.pack(">IHBB16s16sHH", 6 << 28, 8, 17, 64, bytes(16), target, 1024, 53)
    assert watch.told(six) == "packet to 2001:db8::1, protocol 17, port 53"
    solicitation = struct.pack(
        ">IHBB16s16s4s", 6 << 28, 4, 58, 255, bytes(16), b"\xff\x02" + bytes(13) + b"\x02", bytes(4)
    )
    assert watch.told(solicitation) == ""
    assert watch.told(b"") == ""


def test_cgroups_of_a_hybrid_host(tmp_path: Path) -> None:
    """Cgroup v2 is found where it is mounted, beside v1 or alone; a host without it is told what to do."""
    mounts = tmp_path / "mountinfo"
    first = "31 25 0:26 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
    mounts.write_text(f"{first}42 25 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n")
    assert cgroups.mounted(mounts) == Path("/sys/fs/cgroup/unified")
    mounts.write_text(first)
    with pytest.raises(GpuwasteError, match="mount -t cgroup2"):
        cgroups.mounted(mounts)


def test_checks_in_their_order() -> None:
    """Every file of a check is in the order, each with a name of its own; upgrade and removal come after the others."""
    files = {path.stem for path in (Path(install.__file__).parent / "checks").glob("[a-z]*.py")}
    assert files == set(ORDER)
    checks = checks_named()
    assert len({check.name for check in checks}) == len(ORDER)
    assert [check.file for check in checks_named(("purge", "job"))] == ["job", "purge"]
    assert ORDER.index("upgrade") > ORDER.index("reboot")


@pytest.mark.parametrize(
    ("journal", "bad"),
    [
        ("agent-started: agent 0.1.0\n", False),
        ("Traceback (most recent call last):\n", True),
        ("ValueError: no number\n", True),
        ("a.service: code=killed, status=6/ABRT\n", False),
        ("slurmstepd: error: Unrecognized request: 16777216\n", True),
    ],
)
def test_what_no_log_may_have(journal: str, bad: bool) -> None:
    """Tracebacks and requests that Slurm does not know are found; a daemon's end is for systemd's messages."""
    assert bool(logs._BAD.search(journal)) is bad


@pytest.mark.parametrize(
    ("manager", "unit"),
    [
        ([("a", "Main process exited, code=killed, status=11/SEGV"), ("a", _FAILED.format("signal"))], "a"),
        ([("a", _ABORTED), ("a", _FAILED.format("watchdog"))], None),
        ([("a", _ABORTED), ("b", _ABORTED), ("a", _FAILED.format("watchdog")), ("b", _FAILED.format("signal"))], "b"),
        ([("a", _ABORTED), ("a", _FAILED.format("watchdog")), ("a", _ABORTED), ("a", _FAILED.format("signal"))], "a"),
        ([("a", _ABORTED), ("a", _FAILED.format("signal")), ("a", _ABORTED), ("a", _FAILED.format("watchdog"))], "a"),
        ([("a", _ABORTED), ("a", _FAILED.format("signal")), ("a", _FAILED.format("watchdog"))], "a"),
        ([("a", _ABORTED), ("a", "Consumed 3s CPU time.")], "a"),
        ([("a", _FAILED.format("exit-code"))], None),
    ],
)
def test_a_crash_is_what_the_watchdog_did_not_do(manager: list[tuple[str, str]], unit: str | None) -> None:
    """The messages of systemd say which unit crashed, also among those of others; the watchdog's abort is no crash."""
    line = logs.crash("".join(f"{unit}.service: {message}\n" for unit, message in manager))
    assert (line and line.split(".service")[0]) == unit
