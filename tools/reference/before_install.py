"""before-install.md: what the RPMs require, from the spec, and the lines of before-install.sh."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from tools.reference.markdown import code, document, table

ROOT: Final = Path(__file__).parents[2]
SPEC: Final = ROOT / "packaging" / "rpm" / "gpuwaste.spec"
SCRIPT: Final = ROOT / "src" / "gpuwaste" / "cli" / "before-install.sh"
_INTRO: Final = """
What a host needs before gpuwaste is installed, and how to check it without installing anything: copy
`src/gpuwaste/cli/before-install.sh` of the checkout to the host and run `sh before-install.sh`. On a host that has
gpuwaste, `gpuwaste doctor --before-install` runs the same file. How to use both:
[the doctor](../how-to/doctor.md#before-the-installation).
"""
_DECLARED: Final = """
## Requirements of the packages

As in `packaging/rpm/gpuwaste.spec`. `rpm -qp --requires FILE` prints them for a built package, and
`sh before-install.sh --packages DIR` asks rpm whether this host has them.
"""
_FOUND: Final = """
rpm adds these by itself. A test compares both tables with the packages that were built.
"""
_CHECKS: Final = """
## Lines of before-install.sh

`{}` stands for a value.
"""
_RELEASE: Final = "%{version}-%{release}"
_MACROS: Final = {
    "%{gpuwaste_python}": "python3.12 (another one: the packages' own)",
    "%{slurm_requires} = %{slurm_version}": "slurm, in exactly the release of the headers",
}
_CALL: Final = re.compile(r'\b(ok|warn|fail) ([a-z]+) ("(?:[^"\\]|\\.)*"|\S+)(?: ("(?:[^"\\]|\\.)*"))?')
_VALUE: Final = re.compile(r"\$\((?:[^()]|\([^()]*\))*\)|\$\{[^}]*\}|\$[\w#*]+")


class Requirement(NamedTuple):
    """A kind of line of `rpm -qp --requires` that rpm adds: its form, what it means, the check that looks at it."""

    shown: str
    form: str
    meaning: str
    check: str


ADDED: Final = (
    Requirement(
        "rpmlib(PayloadIsZstd)",
        r"rpmlib\(PayloadIsZstd\) .*",
        "rpm reads packages compressed with zstd: 4.14 or later",
        "rpm",
    ),
    Requirement("rpmlib(...)", r"rpmlib\(\w+\) .*", "other features of rpm, all older than 4.14", "rpm"),
    Requirement("/bin/sh", "/bin/sh", "scripts before and after the installation", ""),
    Requirement("/usr/bin/python3.12", r"/usr/bin/python3\.\d+", "the interpreter of /usr/bin/gpuwaste", "python"),
    Requirement(
        "user(...), group(...)",
        r"(?:user|group)\(gpuwaste(?:-actor)?\)(?: = .*)?",
        "only from rpm 4.19 on: the users, which the packages bring themselves",
        "user",
    ),
    Requirement("config(...)", r"config\(gpuwaste[\w-]*\) = .*", "the package's own configuration", ""),
    Requirement(
        "libc.so.6(GLIBC_...)",
        r"libc\.so\.6\(.*\)\(64bit\)",
        "only gpuwaste-slurm-plugin: the glibc of the host that built it, or a later one",
        "requires",
    ),
    Requirement("rtld(GNU_HASH)", r"rtld\(GNU_HASH\)", "the same", "requires"),
)


def declared() -> dict[str, list[str]]:
    """Return what the spec requires, by package, with macros as the spec has them."""
    found: dict[str, list[str]] = {}
    package = "gpuwaste"
    for line in SPEC.read_text(encoding="utf-8").partition("%prep")[0].splitlines():
        if line.startswith("%package "):
            package = f"gpuwaste-{line.split()[1]}"
        elif match := re.match(r"Requires(?:\(pre\))?: +(.+)", line):
            known = found.setdefault(package, [])
            known += [match[1]] if match[1] not in known else []
    return found


def is_told(package: str, requirement: str, settings: dict[str, str]) -> bool:
    """Whether a line of `rpm -qp --requires` is on the page; `settings` are values of the spec's macros."""
    if any(re.fullmatch(one.form, requirement) for one in ADDED):
        return True
    return requirement in {_filled(text, settings) for text in declared().get(package, ())}


def _filled(text: str, settings: dict[str, str]) -> str:
    for name, value in settings.items():
        text = text.replace(f"%{{{name}}}", value)
    return text


def lines() -> Iterator[tuple[str, str, str, str]]:
    """Yield name, status, what was found and what to do of each line that the script can print."""
    for row in SCRIPT.read_text(encoding="utf-8").splitlines():
        text = row.strip()
        if not text.startswith("#"):
            for status, name, found, mend in _CALL.findall(text):
                yield name, status, _words(found), _words(mend)


def page() -> str:
    """Return the page."""
    rows = [
        (code(package), "; ".join(_wording(text) for text in texts)) for package, texts in sorted(declared().items())
    ]
    added = [(code(one.shown), one.meaning, code(one.check)) for one in ADDED]
    checks = [(code(name), status, found, mend) for name, status, found, mend in lines()]
    return document(
        "Before the installation",
        _INTRO,
        _DECLARED,
        table(("package", "requires"), rows),
        _FOUND,
        table(("requirement", "meaning", "line of before-install.sh"), added),
        _CHECKS,
        table(("line", "status", "what was found", "what to do"), checks),
    )


def _wording(text: str) -> str:
    for macro, words in _MACROS.items():
        text = text.replace(macro, words)
    return text.replace(f" = {_RELEASE}", " of the same version")


def _words(text: str) -> str:
    return _VALUE.sub("{}", text.strip('"')).replace("<", "&lt;")
