"""Packages of this tree that tests need besides: an older and a newer version, and the plugin for another Slurm.

Each is built once for all tests, quickly: hardly compressed, without a source package.
"""

import hashlib
import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from gpuwaste.store.database import schema_number
from tools.rpm.build import Build, build, current, mark, rebuild, spec_version
from tools.rpm.kept import kept
from tools.rpm.wheels import ROOT

OLDER: Final = "0.0.9"
OTHER_SLURM: Final = "22.05.7"
"""A release that is not the one of this host."""
OLDER_SET: Final = ("gpuwaste", "gpuwaste-runtime", "gpuwaste-agent", "gpuwaste-hub")
HEADERS: Final = Path("/usr/include/slurm")


def newer_version() -> str:
    """Return the version after the spec's."""
    return f"{spec_version()}.1"


def older() -> list[Path]:
    """Return packages of a version before this one, with another example of the configuration."""
    example = (ROOT / "etc/gpuwaste.toml").read_text(encoding="utf-8")
    changed = {"etc/gpuwaste.toml": f"# The example of {OLDER}.\n{example}"}

    def make(folder: Path) -> list[Path]:
        return build(Build(folder, OLDER, without=("lake", "onnx", "plugin"), changed=changed, quick=True))

    return [package for package in _variant("older", make) if _name(package) in OLDER_SET]


def newer() -> list[Path]:
    """Return the packages of the version after this one, but the plugin's; its hub's store has a migration."""
    number = schema_number("hub") + 1
    changed = {f"src/gpuwaste/store/hub/migrations/{number:04d}_example.sql": "CREATE TABLE example (n BIGINT);\n"}

    def make(folder: Path) -> list[Path]:
        return build(Build(folder, newer_version(), without=("lake", "plugin"), changed=changed, quick=True))

    return _variant("newer", make)


def other_plugin() -> Path:
    """Return the plugin that the source package gives for the headers of another Slurm."""

    def make(folder: Path) -> list[Path]:
        source = next(package for package in current() if package.name.endswith(".src.rpm"))
        include = changed_headers(folder, OTHER_SLURM)
        return rebuild(source, Build(folder, without=("python",), defines={"slurm_include": str(include)}))

    (plugin,) = _variant("other-plugin", make)
    return plugin


def changed_headers(folder: Path, release: str) -> Path:
    """Return an include folder with the headers of this host's Slurm, which say that they are of another release."""
    headers = folder / "include" / "slurm"
    shutil.copytree(HEADERS, headers)
    number = "0x{:02x}{:02x}{:02x}".format(*map(int, release.split(".")))
    text = (headers / "slurm_version.h").read_text(encoding="utf-8")
    text = re.sub(r"(define\s+SLURM_VERSION_NUMBER\s+)\S+", rf"\g<1>{number}", text)
    (headers / "slurm_version.h").write_text(text, encoding="utf-8")
    return headers.parent


def _name(package: Path) -> str:
    return re.split(r"-\d", package.name)[0]


def _variant(name: str, make: Callable[[Path], Sequence[Path]]) -> list[Path]:
    """Return a variant in build/rpm-NAME: of this tree, for this host's Slurm, built by these tools."""
    tools = Path(__file__).parent
    parts = [tools / "build.py", tools / "variants.py", tools / "wheels.py", HEADERS / "slurm_version.h"]
    whole = hashlib.sha256(mark().encode() + b"".join(part.read_bytes() for part in parts))
    return kept(ROOT / "build" / f"rpm-{name}", whole.hexdigest(), make)
