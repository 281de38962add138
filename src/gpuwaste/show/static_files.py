"""The static files of pages: each under a URL with a hash of its content, so that browsers can cache it forever."""

import hashlib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import PurePosixPath
from typing import Final

PREFIX: Final = "/static/"
_TYPES: Final = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_HASH: Final = 12


@dataclass(frozen=True, slots=True)
class StaticFile:
    """One file; `served` is its name in a URL."""

    served: str
    media_type: str
    content: bytes


@cache
def static_files() -> dict[str, StaticFile]:
    """Return the files by their own names."""
    folder = resources.files("gpuwaste.show") / "static"
    found: dict[str, StaticFile] = {}
    for entry in folder.iterdir():
        name = PurePosixPath(entry.name)
        if name.suffix in _TYPES:
            content = entry.read_bytes()
            digest = hashlib.sha256(content).hexdigest()[:_HASH]
            served = f"{name.stem}.{digest}{name.suffix}"
            found[entry.name] = StaticFile(served, _TYPES[name.suffix], content)
    return found


@cache
def served_files() -> dict[str, StaticFile]:
    """Return the files by their names in URLs."""
    return {file.served: file for file in static_files().values()}


def static_url(name: str) -> str:
    """Return the URL of a file."""
    return PREFIX + static_files()[name].served
