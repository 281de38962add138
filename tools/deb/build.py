"""Debian packages in build/deb, made of the RPMs of this tree by dpkg-deb."""

import gzip
import hashlib
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from gpuwaste.core.errors import GpuwasteError
from tools.deb.control import ARCHITECTURES, control, documents, preset, renamed, scripts
from tools.deb.header import RpmHeader, read_header
from tools.rpm.build import current as current_rpms
from tools.rpm.kept import kept
from tools.rpm.scratch import scratch
from tools.rpm.wheels import ROOT

OUT: Final = ROOT / "build" / "deb"
_PRESETS: Final = "/usr/lib/systemd/system-preset"


def current() -> list[Path]:
    """Return the Debian packages of this tree in build/deb, made now where they are of other RPMs."""
    packages = binary_rpms()
    mark = hashlib.sha256()
    for file in [*packages, *sorted(Path(__file__).parent.glob("*.py")), *sorted(preset().parent.iterdir())]:
        mark.update(file.read_bytes())
    return kept(OUT, mark.hexdigest(), lambda folder: convert(packages, folder))


def binary_rpms() -> list[Path]:
    """Return the RPMs of this tree but their source."""
    return [package for package in current_rpms() if not package.name.endswith(".src.rpm")]


def convert(packages: Sequence[Path], out: Path, *, without: str = "", level: int = 7) -> list[Path]:
    """Make the Debian package of each binary RPM in `out`, `without` the files below a directory, compressed so much.

    Raises GpuwasteError with dpkg's words.
    """
    out.mkdir(parents=True, exist_ok=True)
    return [_converted(read_header(package), out, without, level) for package in packages]


def _converted(header: RpmHeader, out: Path, without: str, level: int) -> Path:
    target = out / f"{header.name}_{header.version}_{ARCHITECTURES[header.architecture]}.deb"
    with scratch() as place:
        tree = place / "tree"
        tree.mkdir(mode=0o755)
        unpack(header.file, tree, without)
        _move(header, tree)
        for path, content in documents(header).items():
            _write(tree, path, content)
        if header.name == "gpuwaste":
            _write(tree, f"{_PRESETS}/{preset().name}", preset().read_bytes())
        _write_control(header, tree)
        argv = ["dpkg-deb", "--root-owner-group", "-Zzstd", f"-z{level}", "--build", str(tree), str(target)]
        _run(argv, SOURCE_DATE_EPOCH=str(header.built_s))
    return target


def unpack(package: Path, tree: Path, without: str = "") -> None:
    """Unpack an RPM into a folder, `without` the files below a directory. Raises GpuwasteError with cpio's words.

    cpio ends at the archive's last entry, while rpm2cpio may still have padding to write: what cpio leaves is read
    too, or rpm2cpio ends with SIGPIPE and without a word, now and then.
    """
    options = "--quiet -idm --no-absolute-filenames"
    if without:
        options += ' --nonmatching ".$3/*"'
    script = f'cd "$2"; rpm2cpio "$1" | {{ cpio {options} || code=$?; cat >/dev/null; exit "${{code:-0}}"; }}'
    _run(["bash", "-euo", "pipefail", "-c", script, "unpack", str(package), str(tree), without])


def _move(header: RpmHeader, tree: Path) -> None:
    """Bring documentation where Debian has it, and leave out copies of the licence."""
    shutil.rmtree(tree / "usr/share/licenses", ignore_errors=True)
    for place in (tree / "usr/share/doc").glob(f"{header.name}-*"):
        place.rename(place.with_name(header.name))
    for file in header.files:
        path = tree / renamed(file.path, header.name).lstrip("/")
        if path.exists() and not path.is_symlink():
            path.chmod(file.mode)
    if (changes := tree / "usr/share/doc" / header.name / "CHANGELOG.md").exists():
        changes.with_name("changelog.gz").write_bytes(gzip.compress(changes.read_bytes(), 9, mtime=0))
        changes.unlink()


def _write(tree: Path, path: str, content: bytes, mode: int = 0o644) -> None:
    target = tree / path.lstrip("/")
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(content)
    target.chmod(mode)


def _write_control(header: RpmHeader, tree: Path) -> None:
    files = sorted(path for path in tree.rglob("*") if path.is_file() and not path.is_symlink())
    lines = [
        f"{hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest()}  {path.relative_to(tree)}"
        for path in files
    ]
    size_kib = sum(-(-path.stat().st_size // 1024) for path in files)
    _write(tree, "DEBIAN/md5sums", ("\n".join(lines) + "\n").encode())
    _write(tree, "DEBIAN/control", control(header, size_kib).encode())
    if conffiles := [file.path for file in header.files if file.config]:
        _write(tree, "DEBIAN/conffiles", ("\n".join(conffiles) + "\n").encode())
    for name, text in scripts(header).items():
        _write(tree, f"DEBIAN/{name}", text.encode(), 0o755)


def _run(argv: Sequence[str], **env: str) -> None:
    done = subprocess.run(argv, capture_output=True, text=True, check=False, env={**os.environ, **env})
    if done.returncode:
        words = (done.stdout + done.stderr).strip()[-2000:] or f"exit code {done.returncode}, no output"
        raise GpuwasteError(f"{' '.join(argv)}: {words}")
