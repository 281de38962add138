"""Where public logs are looked for: ../shared/data of a folder above, $GPUWASTE_DATA, data/ of the checkout."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
VARIABLE: Final = "GPUWASTE_DATA"


def own_place(environ: Mapping[str, str] = os.environ, root: Path = ROOT) -> Path:
    """Return the folder that `make data` fills."""
    return Path(environ.get(VARIABLE) or root / "data").absolute()


def places(environ: Mapping[str, str] = os.environ, root: Path = ROOT) -> Iterator[Path]:
    """Yield the folders that exist, the first one to be looked at first."""
    candidates = [*(parent / "shared" / "data" for parent in root.parents), own_place(environ, root)]
    yield from (place for place in candidates if place.is_dir())


def find(name: str, environ: Mapping[str, str] = os.environ, root: Path = ROOT) -> Path | None:
    """Return the file of this name (`swf/KTH-SP2-1996-2.1-cln.swf.xz`), None where no place has it."""
    return next((place / name for place in places(environ, root) if (place / name).is_file()), None)
