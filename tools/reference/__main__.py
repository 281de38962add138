"""`python -m tools.reference`: write every generated page; with --check, only say which are stale."""

import argparse
import sys
from pathlib import Path

from tools.reference import PAGES

ROOT = Path(__file__).parents[2]


def main() -> int:
    """Write the pages, or return 1 where --check finds a stale one."""
    parser = argparse.ArgumentParser(prog="tools/generate-docs", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 where a page is stale")
    check = parser.parse_args().check
    stale = [path for path, make in PAGES.items() if _read(ROOT / path) != make()]
    for path in stale:
        sys.stdout.write(f"{path}: {'stale: make docs' if check else 'written'}\n")
        if not check:
            (ROOT / path).parent.mkdir(parents=True, exist_ok=True)
            (ROOT / path).write_text(PAGES[path](), encoding="utf-8")
    return 1 if check and stale else 0


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


if __name__ == "__main__":
    sys.exit(main())
