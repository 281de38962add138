"""make docs-site: the documentation as a static site in build/docs-site, with search.

Fails at a link or an anchor that leads nowhere, and at a page that loads something from another host.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Final

from gpuwaste.core.errors import GpuwasteError
from tools.docs_site.layout import ROOT, navigation, page, places

PAGES: Final = ROOT / "build/docs-pages"
SITE: Final = ROOT / "build/docs-site"
_LOADED: Final = re.compile(
    r"<(?:script|img|iframe|link(?![^>]*rel=\"?canonical))\b[^>]*\b(?:src|href)=\"?(?:https?:)?//[^\s>\"]+"
)


def main() -> int:
    """Build the site. Return 1 where it has a dead link or loads something from elsewhere."""
    python = _python()
    lay_out()
    argv = [python, "-m", "mkdocs", "build", "--strict", "--config-file", str(PAGES / "mkdocs.yml")]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(argv, capture_output=True, text=True, check=False, cwd=PAGES, env=environment)
    if done.returncode:
        sys.stderr.write(done.stderr)
        return 1
    if foreign := [found for path in sorted(SITE.rglob("*.html")) for found in loaded(path)]:
        sys.stderr.write("".join(f"docs-site: loads from another host: {found}\n" for found in foreign))
        return 1
    sys.stdout.write(f"{SITE.relative_to(ROOT)}: {sum(1 for _ in SITE.rglob('*.html'))} pages\n")
    return 0


def lay_out() -> None:
    """Write the pages, the pictures and MkDocs' configuration into build/docs-pages. Raises GpuwasteError."""
    shutil.rmtree(PAGES, ignore_errors=True)
    where = places(ROOT)
    source = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]["Source"]
    for path, place in where.items():
        target = PAGES / "docs" / place
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(page(ROOT, path, where, source), encoding="utf-8")
    shutil.copytree(ROOT / "docs/pictures", PAGES / "docs/pictures")
    own = {
        "INHERIT": str(ROOT / "mkdocs.yml"),
        "docs_dir": "docs",
        "site_dir": str(SITE),
        "nav": navigation(ROOT, where),
    }
    (PAGES / "mkdocs.yml").write_text(json.dumps(own, indent=1), encoding="utf-8")


def loaded(path: Path) -> list[str]:
    """Return what a page loads from other hosts: scripts, pictures, style sheets."""
    return [f"{path.name}: {tag}" for tag in _LOADED.findall(path.read_text(encoding="utf-8"))]


def _python() -> str:
    done = subprocess.run([ROOT / "tools/framework-venvs", "docs"], capture_output=True, text=True, check=False)
    if done.returncode:
        raise GpuwasteError(done.stderr.strip())
    return done.stdout.strip()


if __name__ == "__main__":
    try:
        sys.exit(main())
    except GpuwasteError as error:
        sys.exit(f"docs-site: {error}")
