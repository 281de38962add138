"""The source archive of a checkout, and rpmbuild on it."""

import functools
import gzip
import hashlib
import io
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from gpuwaste.core.errors import GpuwasteError
from tools.rpm.kept import kept
from tools.rpm.scratch import scratch
from tools.rpm.wheels import ROOT, Target, collect

SPEC: Final = ROOT / "packaging" / "rpm" / "gpuwaste.spec"
OUT: Final = ROOT / "build" / "rpm"
WHEELS: Final = ROOT / "build" / "wheels"
_LEFT_OUT: Final = (
    ".ci/", "bench/", "docs/decisions/", "docs/explanation/", "docs/figures.md", "native/", "packaging/deb/",
    "testing/", "tests/", "tools/",
)  # fmt: skip
"""What no package is made of."""
_DEBIAN_PLUGINS: Final = "lib/*-linux-gnu/slurm-wlm"
_QUICK: Final = {"gpuwaste_payload": "w1.zstdio"}
"""What builds for tests alone set: a third of the time of a build is compression."""
_MAGIC: Final = "0 string \\177ELF ELF 64-bit\n0 string #! a script text executable\n"
"""What those builds ask of each file: the kinds by which rpm finds needs. To ask for all kinds takes seconds more."""


@dataclass(frozen=True)
class Build:
    """One run of rpmbuild; `changed` replaces files of the source archive, None leaves one out.

    `quick` is for tests: packages that are hardly compressed, unless `defines` say otherwise, and no source RPM.
    """

    out: Path = OUT
    version: str = ""
    without: Sequence[str] = ()
    defines: Mapping[str, str] = field(default_factory=dict)
    changed: Mapping[str, str | None] = field(default_factory=dict)
    quick: bool = False


def here() -> Target:
    """Return this interpreter and this processor."""
    return Target(f"{sys.version_info.major}.{sys.version_info.minor}", platform.machine())


def spec_version() -> str:
    """Return the version that the spec builds."""
    found = re.search(r"global gpuwaste_version (\S+?)}", SPEC.read_text(encoding="utf-8"))
    if not found:
        raise GpuwasteError(f"{SPEC}: names no version")
    return found[1]


def current() -> list[Path]:
    """Return the packages of this tree in build/rpm, built now where they are of other files."""
    return kept(OUT, mark(), lambda folder: build(Build(folder)))


@functools.cache
def mark() -> str:
    """Return what the packages are made of, as one hash: the tracked files and this Python."""
    return hashlib.sha256(source_archive(f"{spec_version()}-{here().name}", {})).hexdigest()


def build(order: Build) -> list[Path]:
    """Build the source RPM and the RPMs into `order.out`; return all of them. Raises GpuwasteError with rpm's words."""
    lay_sources(order, here())
    return rpmbuild(order, ["-bb" if order.quick else "-ba", str(SPEC)])


def lay_sources(order: Build, target: Target) -> None:
    """Write what rpmbuild reads, for the interpreter of a target, into `order.out`. Raises GpuwasteError."""
    version = order.version or spec_version()
    sources = order.out / "SOURCES"
    sources.mkdir(parents=True, exist_ok=True)
    (sources / f"gpuwaste-{version}.tar.gz").write_bytes(source_archive(version, order.changed))
    wheels = sources / f"gpuwaste-wheels-{target.name}.tar"
    wheels.unlink(missing_ok=True)
    if "python" in order.without:
        wheels.write_bytes(b"")
    else:
        wheels.hardlink_to(collect(target, WHEELS))


def rebuild(source_rpm: Path, order: Build) -> list[Path]:
    """Build the RPMs from a source RPM, as a site does for another Slurm."""
    return rpmbuild(order, ["--rebuild", str(source_rpm)])


def rpmbuild(order: Build, words: Sequence[str]) -> list[Path]:
    """Run rpmbuild in `order.out` and return what it wrote."""
    with scratch() as place:
        return _rpmbuild(order, words, place)


def _rpmbuild(order: Build, words: Sequence[str], place: Path) -> list[Path]:
    defines = {"_topdir": str(order.out), "gpuwaste_python": f"python{here().python}", **_host(), **order.defines}
    defines |= {"_builddir": str(place / "BUILD"), "_buildrootdir": str(place / "BUILDROOT")}
    if "--rebuild" in words:
        defines["_sourcedir"] = str(place / "SOURCES")
    (place / "BUILD").mkdir()
    environment = dict(os.environ)
    if order.quick:
        defines = _QUICK | defines
        environment["MAGIC"] = str(place / "magic")
        (place / "magic").write_text(_MAGIC, encoding="ascii")
    if order.version:
        defines["gpuwaste_version"] = order.version
    argv = [*offline(), "rpmbuild", *words]
    for name in order.without:
        argv += ["--without", name]
    for name, value in defines.items():
        argv += ["--define", f"{name} {value}"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, env=environment)
    if done.returncode:
        raise GpuwasteError(f"rpmbuild: {(done.stdout + done.stderr).strip()[-3000:]}")
    return sorted(Path(path) for path in re.findall(r"^Wrote: (\S+)$", done.stdout, re.MULTILINE))


def offline() -> list[str]:
    """Return the command that runs another one without a network; nothing where this user may not say so."""
    command = ["unshare", "--net", "--"]
    if not shutil.which(command[0]):
        return []
    tried = subprocess.run([*command, "true"], capture_output=True, check=False)
    return command if tried.returncode == 0 else []


def _host() -> dict[str, str]:
    """Return what Debian's Slurm and Lua have in places of their own."""
    found = {}
    for path in Path("/usr").glob(_DEBIAN_PLUGINS):
        found["slurm_plugindir"] = str(path)
    if Path("/usr/include/lua5.1/lua.h").exists():
        found["lua_include"] = "/usr/include/lua5.1"
    return found


def source_archive(version: str, changed: Mapping[str, str | None]) -> bytes:
    """Return the tracked files as they are now, in order, without times and owners."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    names = sorted({*listed.split("\0"), *changed} - {""})
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for name in names:
            text = changed.get(name, "")
            file = ROOT / name
            if text is None or name.startswith(_LEFT_OUT) or not (text or file.is_file()):
                continue
            content = text.encode() if text else file.read_bytes()
            entry = tarfile.TarInfo(f"gpuwaste-{version}/{name}")
            entry.size = len(content)
            entry.mode = 0o755 if file.exists() and file.stat().st_mode & 0o100 else 0o644
            archive.addfile(entry, io.BytesIO(content))
    return gzip.compress(whole.getvalue(), mtime=0)
