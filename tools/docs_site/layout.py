"""The site's pages: which file of the repository each is, its links, and the navigation."""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, Final

from gpuwaste.core.errors import GpuwasteError
from tools.docs_site.markdown_dialect import translated

ROOT: Final = Path(__file__).parents[2]
MAP: Final = "docs/README.md"
_OWN: Final = {"README.md": "overview.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
_LINK: Final = re.compile(r"\]\(([^)#:\s]+)(#[^)\s]*)?\)")
_BLOCK: Final = re.compile(r"(^ *```.*?^ *```$|`[^`\n]*`)", re.DOTALL | re.MULTILINE)
_SECTION: Final = re.compile(r"^## (.*?)\n(.*?)(?=^## |\Z)", re.DOTALL | re.MULTILINE)


def places(root: Path) -> dict[str, str]:
    """Return for each page in the repository its place in the site: docs/README.md is the first page."""
    pages = {f"docs/{path.relative_to(root / 'docs')}" for path in (root / "docs").rglob("*.md")}
    own = {name: place for name, place in _OWN.items() if (root / name).exists()}
    return {**{page: page.removeprefix("docs/") for page in sorted(pages)}, **own}


def page(root: Path, path: str, where: Mapping[str, str], source: str) -> str:
    """Return a page's text with links for the site; what is no page is linked at `source`, the URL of the repository.

    Raises GpuwasteError at a link that leads to no file.
    """

    def link(found: re.Match[str]) -> str:
        target = os.path.normpath(PurePosixPath(path).parent / found[1])
        if not (root / target).exists():
            raise GpuwasteError(f"{path}: {found[1]} is no file of the repository")
        if target in where or target.startswith("docs/pictures/"):
            place = where.get(target, target.removeprefix("docs/"))
            return f"]({os.path.relpath(place, PurePosixPath(where[path]).parent)}{found[2] or ''})"
        kind = "tree" if (root / target).is_dir() else "blob"
        return f"]({source}/{kind}/main/{target})"

    parts = _BLOCK.split((root / path).read_text(encoding="utf-8"))
    parts[::2] = [_LINK.sub(link, part) for part in parts[::2]]
    return translated("".join(parts))


def navigation(root: Path, where: Mapping[str, str]) -> list[Any]:
    """Return MkDocs' navigation: the sections of the map with their pages, then the pages that it does not have."""
    text = (root / MAP).read_text(encoding="utf-8")
    placed = {MAP}
    nav: list[Any] = [{"Documentation": where[MAP]}]
    for title, part in _SECTION.findall(text):
        rows = [name for name in _linked(part) if name in where and name not in placed]
        pages = list(dict.fromkeys(rows))
        placed |= set(pages)
        if pages:
            nav.append({title: [where[name] for name in pages]})
    rest = [where[name] for name in where if name not in placed]
    return [*nav, {"Decisions": rest}] if rest else nav


def _linked(part: str) -> Iterator[str]:
    for target, _ in _LINK.findall(part):
        yield os.path.normpath(PurePosixPath(MAP).parent / target)
