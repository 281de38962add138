"""What is answered on the time of a step; without numpy, which only the computation needs."""

from msgspec import Struct


class StepTime(Struct, kw_only=True, frozen=True):
    """A step's time on one type of GPU with its 90 % interval; None with `refused` where there is no estimate."""

    gpu: str
    step_s: float | None = None
    low_s: float | None = None
    high_s: float | None = None
    basis: str = ""
    """What the estimate rests on."""
    refused: str = ""
    """Why there is none."""
    notes: tuple[str, ...] = ()
