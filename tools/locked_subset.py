"""`python3 -m tools.locked_subset`: prints the part of requirements.lock that the short demo needs, with its hashes.

It runs before there is a virtual environment, so with the standard library only. A package is needed if the project or
one of EXTRAS names it, if it is one of TOOLS, or if the lock says that a needed package requires it.
"""

import re
import sys
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[1]
EXTRAS: Final = ("hub", "predict")
TOOLS: Final = ("editables", "hatchling", "nvidia-nvml-dev")
"""What installs the checkout, and the header with which the simulated NVML is built."""
_NAME: Final = re.compile(r"[A-Za-z0-9._-]+")


def demo_packages(project: Mapping[str, Any], lock: str) -> list[str]:
    """Return the entries of `lock` that the demo of `project` needs (a table of pyproject.toml).

    Raises ValueError for a package that the lock lacks.
    """
    entries = {name_of(entry): entry for entry in re.split(r"^(?=[A-Za-z0-9])", lock, flags=re.MULTILINE) if entry}
    wanted = {*_roots(project), *TOOLS}
    if missing := sorted(wanted - entries.keys()):
        raise ValueError(f"requirements.lock: lacks {', '.join(missing)}: make it anew (docs/decisions/0001)")
    while more := {name for name, entry in entries.items() if name not in wanted and wanted & required_by(entry)}:
        wanted |= more
    return [entry for name, entry in entries.items() if name in wanted]


def required_by(entry: str) -> set[str]:
    """Return the packages that require an entry, which uv writes after "# via"."""
    comments = (line.strip().lstrip("# ") for line in entry.splitlines() if line.lstrip().startswith("#"))
    return {name for comment in comments if (name := comment.removeprefix("via").strip())}


def name_of(requirement: str) -> str:
    """Return the package of a requirement as the lock writes it: msgspec of "msgspec>=0.20"."""
    found = _NAME.match(requirement)
    return re.sub(r"[-_.]+", "-", found[0]).lower() if found else ""


def _roots(project: Mapping[str, Any]) -> Iterable[str]:
    for requirements in (project["dependencies"], *(project["optional-dependencies"][extra] for extra in EXTRAS)):
        yield from map(name_of, requirements)


def main() -> int:
    """Print the entries, as pip reads them; returns the exit code."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    try:
        entries = demo_packages(project, (ROOT / "requirements.lock").read_text(encoding="utf-8"))
    except ValueError as error:
        sys.stderr.write(f"locked_subset: {error}\n")
        return 1
    sys.stdout.write("".join(entries))
    return 0


if __name__ == "__main__":
    sys.exit(main())
