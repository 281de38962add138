"""For which release a plugin was built, from files that the real compiler made and from broken ones."""

import random
import shutil
import subprocess
from pathlib import Path

import pytest

from gpuwaste.cli.checks.plugin import PluginFile, read_plugin, release_of
from gpuwaste.core.errors import ParseError

SOURCE = """
#include <stdint.h>
extern void only_slurmctld_has_this(void);
const char plugin_name[] = "a plugin";
const char plugin_type[] = "job_submit/gpuwaste";
const uint32_t plugin_version = %s;
int init(void) { only_slurmctld_has_this(); return 0; }
"""
COMPILER = shutil.which("cc") or shutil.which("gcc")


def build(directory: Path, version: str = "0x160508", *flags: str) -> Path:
    """Compile a plugin whose symbols nobody resolves."""
    if COMPILER is None:
        pytest.skip("no C compiler is installed")
    path = directory / "plugin.so"
    command = [COMPILER, "-shared", "-fPIC", *flags, "-o", str(path), "-x", "c", "-"]
    subprocess.run(command, input=SOURCE % version, text=True, check=True)
    return path


@pytest.mark.parametrize("flags", [(), ("-O2", "-s"), ("-fdata-sections", "-Wl,--gc-sections"), ("-Wl,-z,norelro",)])
def test_release_and_type_are_read_without_loading_the_file(tmp_path: Path, flags: tuple[str, ...]) -> None:
    """Whatever the compiler's and linker's options, stripped files included."""
    assert read_plugin(build(tmp_path, "0x160508", *flags)) == PluginFile("job_submit/gpuwaste", "22.05.8")


def test_releases_are_written_as_slurm_writes_them() -> None:
    """Two digits for the month, none in front of the micro release."""
    assert [release_of(number) for number in (0x160508, 0x180B05, 0x1A0500)] == ["22.05.8", "24.11.5", "26.05.0"]


def test_a_library_that_is_no_plugin_is_refused(tmp_path: Path) -> None:
    """A shared object without the two symbols, an empty file and a text are named as no plugin."""
    other = tmp_path / "other.so"
    if COMPILER is None:
        pytest.skip("no C compiler is installed")
    subprocess.run([COMPILER, "-shared", "-o", str(other), "-x", "c", "-"], input="int x;", text=True, check=True)
    for data in (other.read_bytes(), b"", b"#!/bin/sh\n", b"\x7fELF\x01\x01" + bytes(100)):
        other.write_bytes(data)
        with pytest.raises(ParseError, match="not a Slurm plugin"):
            read_plugin(other)


def test_damaged_files_are_errors_and_nothing_else(tmp_path: Path) -> None:
    """Cut and overwritten plugins give a reading or ParseError, whatever the bytes."""
    path = build(tmp_path)
    good = path.read_bytes()
    draw = random.Random(7)
    for _ in range(500):
        data = bytearray(good[: draw.randrange(1, len(good))] if draw.random() < 0.3 else good)
        for _ in range(draw.randrange(1, 40)):
            data[draw.randrange(len(data))] = draw.randrange(256)
        path.write_bytes(data)
        try:
            read_plugin(path)
        except ParseError:
            continue
