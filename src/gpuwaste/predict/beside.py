"""What training leaves beside a bundle so that others go on where it stopped: the history and the corrections."""

import logging
from pathlib import Path
from typing import Final

from gpuwaste.core.errors import GpuwasteError
from gpuwaste.history.state import HistoryState
from gpuwaste.predict.bundle import Bundle
from gpuwaste.predict.rolling import Rolling

HISTORY: Final = "history.state"
CORRECTIONS: Final = "rolling.npz"
_log = logging.getLogger(__name__)


def history_beside(directory: Path) -> HistoryState | None:
    """Return the history that was kept with a bundle, None where none was. Raises StoreError, ParseError."""
    path = directory / HISTORY
    return HistoryState.load(path) if path.exists() else None


def corrections_of(bundle: Bundle, *newer: Path) -> Rolling:
    """Return the first of `newer` that is this bundle's, else what training left, else validation's corrections."""
    for path in (*newer, bundle.directory / CORRECTIONS):
        if path.exists():
            try:
                return Rolling.load(path, bundle.manifest, bundle.hash)
            except GpuwasteError as error:
                _log.info("%s", error)
    return Rolling(bundle.manifest, bundle.hash)
