"""The control files of a Debian package, from the header of its RPM."""

import gzip
import re
from collections.abc import Callable, Iterable
from email.utils import formatdate
from pathlib import Path
from typing import Final

from gpuwaste.core.errors import GpuwasteError
from tools.deb.header import RpmHeader, RpmNeed
from tools.rpm.wheels import ROOT

PACKAGING: Final = ROOT / "packaging" / "deb"
MAINTAINER: Final = "gpuwaste <maintainers@gpuwaste.invalid>"
ARCHITECTURES: Final = {"noarch": "all", "x86_64": "amd64", "aarch64": "arm64"}
_OURS: Final = re.compile(r"gpuwaste(-[a-z]+)*")
_OWN: Final = re.compile(
    r"(user|group)\(gpuwaste(-actor)?\)$|rpmlib\(|config\(|rtld\(|/bin/sh$|/usr/bin/python|libc\.so"
)
"""What an RPM asks of rpm itself, what the names below ask for too, and the users that preinst makes."""
_PYTHON: Final = re.compile(r"python3\.\d+")
_SYMBOLS: Final = re.compile(r"libc\.so\.6\(GLIBC_(\d+)\.(\d+)[.\d]*\)")
_GLIBC: Final = (2, 28)
"""The oldest that the wheels run on."""


def _slurm(version: str) -> list[str]:
    """Return one release of Debian's Slurm, in whatever revision."""
    *most, last = version.split(".")
    after = ".".join([*most, str(int(last) + 1)])
    plugins = "slurm-wlm-basic-plugins"
    return [f"{plugins} (>= {version})", f"{plugins} (<< {after}~)"]


_OTHERS: Final[dict[str, Callable[[str], list[str]]]] = {
    "glibc": lambda version: [f"libc6 (>= {version})", "libstdc++6"],
    "shadow-utils": lambda _: [],  # in Pre-Depends: preinst calls it
    "slurm": _slurm,
}
"""What Debian calls packages of Enterprise Linux."""


def depends(needs: Iterable[RpmNeed]) -> list[str]:
    """Return the needs in Debian's names. Raises GpuwasteError at one that has none here."""
    found: list[str] = []
    for need in needs:
        if _OURS.fullmatch(need.name):
            found.append(f"{need.name} (= {need.version})")
        elif _PYTHON.fullmatch(need.name):
            found.append(need.name)
        elif need.name in _OTHERS:
            found += _OTHERS[need.name](need.version)
        elif not _OWN.match(need.name):
            raise GpuwasteError(f"tools/deb/control.py: no Debian name for {need.name}, which an RPM requires")
    return sorted(dict.fromkeys(found))


def _libc(header: RpmHeader) -> str:
    """Return the C library that compiled files need: the newest symbol's version, or the wheels'."""
    named = [found for need in header.requires if (found := _SYMBOLS.match(need.name))]
    newest = max([(int(found[1]), int(found[2])) for found in named], default=_GLIBC)
    return f"libc6 (>= {newest[0]}.{newest[1]})"


def control(header: RpmHeader, installed_kib: int) -> str:
    """Return DEBIAN/control."""
    pre = [need.name for need in header.requires if need.name == "shadow-utils"]
    needs = depends(header.requires)
    if "tmpfiles" in header.scripts.get("POSTIN", ""):
        needs.append("systemd | systemd-standalone-tmpfiles")
    if header.architecture != "noarch" and not any(need.startswith("libc6 ") for need in needs):
        needs.append(_libc(header))
    recommended = depends(header.recommends)
    fields = {
        "Package": header.name,
        "Version": header.version,
        "Architecture": ARCHITECTURES[header.architecture],
        "Maintainer": MAINTAINER,
        "Installed-Size": str(installed_kib),
        "Pre-Depends": "passwd" if pre else "",
        "Depends": ", ".join(needs),
        "Recommends": ", ".join(recommended),
        "Section": "admin",
        "Priority": "optional",
        "Homepage": header.homepage,
        "Description": _description(header),
    }
    return "".join(f"{name}: {value}\n" for name, value in fields.items() if value)


def _description(header: RpmHeader) -> str:
    summary = header.summary.removeprefix("The ")
    lines = [f" {line}" if line.strip() else " ." for line in header.description.splitlines()]
    return "\n".join([summary, *lines])


def scripts(header: RpmHeader) -> dict[str, str]:
    """Return the maintainer scripts by their names: the RPM's scriptlets in dpkg's cases, owners, and the purge.

    The one with the interpreter as a dependency refuses a host that has another one, before a file is unpacked.
    """
    owned = [file for file in header.files if file.user != "root"]
    python = next((need.name for need in header.requires if _PYTHON.fullmatch(need.name)), "")
    words = {
        "NAME": header.name,
        "PYTHON": python,
        "PRE": header.scripts.get("PREIN", ""),
        "POST": header.scripts.get("POSTIN", ":"),
        "POSTTRANS": header.scripts.get("POSTTRANS", ":"),
        "PREUN": header.scripts.get("PREUN", ""),
        "OWN": "\n".join(f"  own {file.path} {file.user} {file.group} {file.mode:o}" for file in owned),
        "PURGE": "\n".join(_purge(header, [file.path for file in owned])),
    }
    wanted = {
        "preinst": bool(words["PRE"] or python),
        "postinst": bool(owned) or "POSTIN" in header.scripts,
        "prerm": bool(words["PREUN"]),
        "postrm": bool(words["PURGE"]),
    }
    return {name: _filled(name, words) for name, needed in wanted.items() if needed}


def _purge(header: RpmHeader, owned: list[str]) -> list[str]:
    lines = [f"  rm -rf {path}" for path in owned]
    if any(file.path == "/var/lib/gpuwaste" for file in header.files):
        lines.append("  rm -rf /run/gpuwaste /run/gpuwaste-jobs /var/cache/gpuwaste /etc/gpuwaste/gpuwaste.toml.d")
    if lines:  # tmpfiles.d makes the first one on every host
        lines.append("  rmdir /var/lib/gpuwaste/models /var/lib/gpuwaste 2>/dev/null || :")
    return lines


def _filled(name: str, words: dict[str, str]) -> str:
    text = (PACKAGING / f"{name}.in").read_text(encoding="utf-8")
    return re.sub(r"@([A-Z]+)@", lambda found: words[found[1]].rstrip("\n"), text)


def documents(header: RpmHeader) -> dict[str, bytes]:
    """Return copyright, changelog and lintian's overrides by their paths."""
    place = f"/usr/share/doc/{header.name}"
    text = (PACKAGING / "copyright.in").read_text(encoding="utf-8")
    copyright_text = text.replace("@NAME@", header.name).replace("@LICENSE@", header.licence)
    changes = f"gpuwaste ({header.version}) unstable; urgency=medium\n\n  * See CHANGELOG.md.\n\n"
    changes += f" -- {MAINTAINER}  {formatdate(header.built_s, localtime=False)}\n"
    found = {
        f"{place}/copyright": copyright_text.encode(),
        f"{place}/changelog.Debian.gz": gzip.compress(changes.encode(), 9, mtime=0),
    }
    if overrides := overrides_of(header.name, (PACKAGING / "lintian-overrides").read_text(encoding="utf-8")):
        found[f"/usr/share/lintian/overrides/{header.name}"] = overrides.encode()
    return found


def overrides_of(name: str, text: str) -> str:
    """Return the blocks of our overrides that are for a package: one begins with `[names or *]`."""
    found = []
    for names, lines in re.findall(r"^\[(.*?)\]\n(.*?)(?=^\[|\Z)", text, flags=re.DOTALL | re.MULTILINE):
        if names == "*" or name in names.split():
            found.append(lines.strip())
    return "\n".join(found) + "\n" if found else ""


def renamed(path: str, name: str) -> str:
    """Return where Debian has a file of the RPM."""
    return re.sub(rf"^/usr/share/doc/{re.escape(name)}-[^/]+", f"/usr/share/doc/{name}", path)


def preset() -> Path:
    """Return the file by which Debian leaves our units disabled."""
    return PACKAGING / "80-gpuwaste.preset"
