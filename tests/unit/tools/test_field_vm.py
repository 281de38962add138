"""The field's virtual machine: its command line, what is read of its packets and results."""

import struct
from pathlib import Path

import pytest
from tools.field.vm import __main__ as main
from tools.field.vm import packets, qemu, record
from tools.field.vm.checks import ORDER, checks_named
from tools.matrix.table import Column, Result

from gpuwaste.core.errors import GpuwasteError, ParseError


def test_command_line_names_what_is_in_the_folder() -> None:
    """Qemu gets the disks, port and packets of the folder; a comma in a path divides no words of an option."""
    words = " ".join(qemu.command(Path("/place/a,b"), Path("/image")))
    for name in (qemu.DISK, qemu.PARCEL, qemu.PORT, qemu.PACKETS):
        assert f"=/place/a,,b/{name}" in words, name
    assert "-kernel /image/vmlinuz -initrd /image/initrd" in words
    assert "restrict=on" in words


def _pcap(path: Path, *frames: bytes) -> None:
    parts = [struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)]
    parts += [struct.pack("<IIII", 0, 0, len(frame), len(frame)) + frame for frame in frames]
    path.write_bytes(b"".join(parts))


def _frame(source: bytes, target: bytes) -> bytes:
    packet = bytes([0x45]) + bytes(8) + bytes([6]) + bytes(2) + source + target + struct.pack(">HH", 40000, 80)
    return bytes(12) + b"\x08\x00" + packet


def test_packets_of_the_machine_are_read(tmp_path: Path) -> None:
    """Of frames in a file of qemu, those of IP from the machine are told; a cut last one ends the list."""
    path = tmp_path / "packets"
    own, other = bytes([10, 99, 0, 1]), bytes([192, 0, 2, 1])
    _pcap(path, _frame(own, other), _frame(other, own), bytes(12) + b"\x08\x06" + bytes(28))
    with path.open("ab") as file:
        file.write(b"cut")
    assert packets.told(path) == ["packet to 192.0.2.1, protocol 6, port 80"]
    path.write_bytes(b"no pcap, but long enough for one")
    with pytest.raises(GpuwasteError, match="no packets of qemu"):
        packets.told(path)


def test_results_are_kept(tmp_path: Path) -> None:
    """What a run gave is read as it was written; another file is refused with its name."""
    path = tmp_path / "record.json"
    record.save(path, Column("24.11", "a system", (Result("one", 1.23), Result("two", 2.0, "why")), {}))
    assert record.read(path) == ("a system", (Result("one", 1.2), Result("two", 2.0, "why")))
    record.save(path, Column("24.11", "a system", (Result("two", 3.0),), {}))
    assert record.read(path)[1] == (Result("one", 1.2), Result("two", 3.0)), "a run of one check leaves the others"
    record.save(path, Column("24.11", "another system", (Result("two", 3.0),), {}))
    assert record.read(path)[1] == (Result("two", 3.0),)
    path.write_text('{"system": "x"}')
    with pytest.raises(ParseError, match=r"record\.json"):
        record.read(path)


def test_checks_have_their_order() -> None:
    """Each check has a name of its own, and those that are named run in the order of all."""
    assert [check.file for check in checks_named(["oom", "units"])] == ["units", "oom"]
    assert len({check.name for check in checks_named()}) == len(ORDER)


def test_packages_that_lack_one_are_told(tmp_path: Path) -> None:
    """A folder without one of the packages that the page installs is refused before any machine starts."""
    with pytest.raises(GpuwasteError, match="has 0 packages gpuwaste, not one"):
        main.taken(tmp_path, tmp_path / "out")
