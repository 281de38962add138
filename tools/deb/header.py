"""What an RPM says of itself: name, dependencies, files, scriptlets."""

import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gpuwaste.core.errors import GpuwasteError

SCRIPTLETS: Final = ("PREIN", "POSTIN", "PREUN", "POSTTRANS")
_NONE: Final = "(none)"


@dataclass(frozen=True, slots=True)
class RpmFile:
    """A file or a directory of a package."""

    path: str
    user: str
    group: str
    mode: int
    config: bool


@dataclass(frozen=True, slots=True)
class RpmNeed:
    """A package that is required or recommended; `relation` is empty or one of rpm's, such as ">="."""

    name: str
    relation: str
    version: str


@dataclass(frozen=True, slots=True)
class RpmHeader:
    """One binary package."""

    file: Path
    name: str
    version: str  # with its release
    architecture: str  # as rpm calls it
    summary: str
    description: str
    licence: str
    homepage: str
    built_s: int
    requires: tuple[RpmNeed, ...]
    recommends: tuple[RpmNeed, ...]
    files: tuple[RpmFile, ...]
    scripts: dict[str, str]
    """Bodies of the scriptlets that it has, by their tags."""


def read_header(file: Path) -> RpmHeader:
    """Return what a binary RPM says. Raises GpuwasteError."""
    one = {
        tag: _query(file, f"%{{{tag}}}")
        for tag in ("NAME", "ARCH", "SUMMARY", "DESCRIPTION", "LICENSE", "URL", "BUILDTIME", *SCRIPTLETS)
    }
    rows = _query(
        file, "[%{FILENAMES}\\t%{FILEUSERNAME}\\t%{FILEGROUPNAME}\\t%{FILEMODES:octal}\\t%{FILEFLAGS:fflags}\\n]"
    )
    files = []
    for row in rows.splitlines():
        path, user, group, mode, flags = row.split("\t")
        files.append(RpmFile(path, user, group, int(mode, 8) & 0o7777, "c" in flags))
    return RpmHeader(
        file=file,
        name=one["NAME"],
        version=_query(file, "%{VERSION}-%{RELEASE}"),
        architecture=one["ARCH"],
        summary=one["SUMMARY"],
        description=one["DESCRIPTION"],
        licence=one["LICENSE"],
        homepage=one["URL"],
        built_s=int(one["BUILDTIME"]),
        requires=_needs(file, "REQUIRE"),
        recommends=_needs(file, "RECOMMEND"),
        files=tuple(files),
        scripts={tag: one[tag] for tag in SCRIPTLETS if one[tag] != _NONE},
    )


def _needs(file: Path, tag: str) -> tuple[RpmNeed, ...]:
    rows = _query(file, f"[%{{{tag}NAME}}\\t%{{{tag}FLAGS:depflags}}\\t%{{{tag}VERSION}}\\n]")
    found = dict.fromkeys(RpmNeed(*(part.strip() for part in row.split("\t"))) for row in rows.splitlines() if row)
    return tuple(found)


def _query(file: Path, form: str) -> str:
    argv = ["rpm", "-qp", "--nosignature", "--qf", form, str(file)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode:
        raise GpuwasteError(f"rpm cannot read {file}: {done.stderr.strip()[-500:]}")
    return done.stdout
