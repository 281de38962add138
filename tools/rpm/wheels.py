"""The locked wheels of each package: which ones, downloaded with their hashes, in one tar file, always the same."""

import hashlib
import re
import subprocess
import sys
import tarfile
import tomllib
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Final

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from gpuwaste.core.errors import GpuwasteError

ROOT: Final = Path(__file__).resolve().parents[2]
LOCK: Final = ROOT / "requirements.lock"
_GLIBC: Final = ("2_28", "2_27", "2_26", "2_24", "2_17")
"""Wheels for these versions of glibc and older run on Enterprise Linux 8, whose is 2.28."""


@dataclass(frozen=True)
class Target:
    """The interpreter and the processor that wheels are for."""

    python: str  # such as "3.12"
    machine: str  # x86_64, aarch64

    @property
    def name(self) -> str:
        """As in the file names of the spec."""
        return f"python{self.python}-{self.machine}"

    @property
    def options(self) -> list[str]:
        """What pip is told of it; the platforms rule out wheels that need a newer glibc."""
        tags = [f"manylinux_{glibc}_{self.machine}" for glibc in _GLIBC] + [f"manylinux2014_{self.machine}"]
        return [f"--python-version={self.python}", "--implementation=cp", *(f"--platform={tag}" for tag in tags)]


def groups() -> dict[str, set[str]]:
    """Return the distributions of each list.

    The lists: runtime (all programs), web (the hub), onnx (predictions, training), sim, lake (DuckDB's extensions for
    it), lake-s3 (the one for S3). What two of them need is in the first, and what onnx and sim need is in onnx, which
    sim requires. Read off the dependencies that are installed here, which are the locked ones.
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    runtime = _closure(project["dependencies"])
    web = _closure(extras["hub"])
    onnx = _closure([*extras["predict"], *(line for line in extras["train"] if not line.startswith("gpuwaste"))])
    runtime |= web & onnx
    sim = _closure(extras["sim"]) - runtime - onnx
    lake = _closure(extras["lake"]) - runtime - web
    lake_s3 = _closure([line for line in extras["lake-s3"] if not line.startswith("gpuwaste")]) - runtime
    parts = {"sim": sim, "lake": lake, "lake-s3": lake_s3}
    return {"runtime": runtime, "web": web - runtime, "onnx": onnx - runtime, **parts}


def _closure(lines: list[str], extras: frozenset[str] = frozenset()) -> set[str]:
    """Return the distributions that requirements name, and what those need, all the way down."""
    found: set[str] = set()
    for line in lines:
        needed = Requirement(line)
        contexts = [{"extra": extra} for extra in extras or {""}]
        if needed.marker and not any(needed.marker.evaluate(context) for context in contexts):
            continue
        name = canonicalize_name(needed.name)
        if name not in found:
            found |= {name} | _closure(metadata.requires(name) or [], frozenset(needed.extras))
    return found


def locked() -> dict[str, str]:
    """Return the lock's lines of each distribution: version and hashes."""
    lines = re.findall(r"^[A-Za-z0-9._-]+==.*\\\n(?:\s+--hash=.*\n?)+", LOCK.read_text(encoding="utf-8"), re.MULTILINE)
    return {canonicalize_name(text.partition("==")[0]): text for text in lines}


def collect(target: Target, folder: Path) -> Path:
    """Download the wheels of all groups into `folder` and return the tar file beside them; nothing where it is there.

    The tar's name carries the hash of the lock and of the groups. Raises GpuwasteError with pip's words.
    """
    wanted = {group: sorted(names) for group, names in groups().items()}
    mark = hashlib.sha256(f"{target.name}{wanted}{LOCK.read_text(encoding='utf-8')}".encode()).hexdigest()[:12]
    ready = folder / f"{target.name}-{mark}.tar"
    if ready.exists():
        return ready
    here, lock = folder / f"{target.name}-{mark}", locked()
    here.mkdir(parents=True, exist_ok=True)
    for group, names in wanted.items():
        wheels = _download(target, here / group, "".join(lock[name] for name in names))
        (here / f"{group}.list").write_text("".join(f"{wheel.name}\n" for wheel in wheels), encoding="utf-8")
    _pack(here, ready)
    return ready


def _download(target: Target, folder: Path, requirements: str) -> list[Path]:
    folder.mkdir(exist_ok=True)
    wanted = folder.with_suffix(".txt")
    wanted.write_text(requirements, encoding="utf-8")
    argv = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes", "--only-binary=:all:"]
    argv += [*target.options, f"--dest={folder}", f"--requirement={wanted}"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode:
        raise GpuwasteError(f"the wheels of {wanted} cannot be downloaded: {done.stderr.strip()[-1000:]}")
    return sorted(folder.glob("*.whl"))


def _pack(folder: Path, target: Path) -> None:
    """Write lists and wheels, in order, without times and owners."""
    new = target.with_suffix(".new")
    with tarfile.open(new, "w", format=tarfile.GNU_FORMAT) as archive:
        for file in sorted([*folder.glob("*.list"), *folder.glob("*/*.whl")], key=lambda path: path.name):
            entry = tarfile.TarInfo(file.name)
            entry.size, entry.mode = file.stat().st_size, 0o644
            with file.open("rb") as content:
                archive.addfile(entry, content)
    new.replace(target)
