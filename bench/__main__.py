"""python -m bench [NAME [ARGUMENT...]]: runs a bench in this process' place; without a name lists all of them.

A bench is a file of this folder whose first line begins with "Figure: "; its name may be written with - for _.
"""

import ast
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parent
_FIGURE: Final = "Figure: "


def benches() -> dict[str, str]:
    """Return what each bench measures, by its name as users write it."""
    lines = {file.stem: _first_line(file) for file in sorted(FOLDER.glob("*.py"))}
    return {
        name.replace("_", "-"): line.removeprefix(_FIGURE).removesuffix(".")
        for name, line in lines.items()
        if line.startswith(_FIGURE)
    }


def _first_line(file: Path) -> str:
    return (ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or "").partition("\n")[0]


def main(arguments: Sequence[str]) -> int:
    """List or run; 2 where there is no such bench."""
    known = benches()
    if not arguments:
        width = max(map(len, known))
        sys.stdout.writelines(f"  {name:<{width}}  {line}\n" for name, line in known.items())
        return 0
    name, *rest = arguments
    if name.replace("_", "-") not in known:
        sys.stderr.write(f"bench: {name}: no such bench; `make bench` lists them\n")
        return 2
    return os.execv(sys.executable, [sys.executable, "-m", f"bench.{name.replace('-', '_')}", *rest])  # noqa: S606


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
