"""What training leaves beside a bundle so that others go on where it stopped: the history and the corrections."""

from pathlib import Path
from typing import Final

from gpuwaste.advice.predict.bundle import Bundle
from gpuwaste.advice.predict.rolling import Rolling
from gpuwaste.core import log_event
from gpuwaste.core.errors import GpuwasteError
from gpuwaste.jobs.history.state import HistoryState

HISTORY: Final = "history.state"
CORRECTIONS: Final = "rolling.npz"
_UNUSABLE: Final = log_event.info("corrections-unusable: saved corrections of the model not used: {error}")


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
                _UNUSABLE.log(error=error)
    return Rolling(bundle.manifest, bundle.hash)
