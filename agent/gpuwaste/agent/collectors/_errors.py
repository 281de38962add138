"""What one call of a vendor's library may take away; the rest is CollectorError, which takes the collector."""

from gpuwaste.ledger.sample import UnknownReason


class GpuLostError(Exception):
    """This GPU fell off the bus or waits for a reset; the others go on."""


class FieldError(Exception):
    """This field cannot be read; `reason` is not_supported, or driver for an error that may pass."""

    def __init__(self, reason: UnknownReason) -> None:
        super().__init__(reason)
        self.reason = reason
