"""The agent's own errors."""

from gpuwaste.core.errors import GpuwasteError
from gpuwaste.ledger.sample import UnknownReason


class CollectorError(GpuwasteError):
    """One collector could not read; `reason` is the key under which the time becomes unknown."""

    def __init__(self, message: str, reason: UnknownReason = UnknownReason.DRIVER) -> None:
        super().__init__(message)
        self.reason = reason
