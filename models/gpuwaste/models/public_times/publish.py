"""Makes the coefficients that are shipped, with the widths of their intervals."""

from typing import Final

from msgspec.structs import replace

from gpuwaste.estimate.public.coefficients import Coefficients
from gpuwaste.models.public_times.fit_all import Fits
from gpuwaste.models.public_times.judge import judged_steps, step_factors, widths_of

_DIGITS: Final = 4


def shipped_coefficients(fits: Fits, made: str) -> Coefficients:
    """Return the coefficients of all measured GPUs; `made` is the day, as YYYY-MM-DD."""
    unseen, seen = judged_steps(fits, "family"), judged_steps(fits, "nothing")
    return replace(fits.coefficients(), made=made, widths=widths_of(fits, unseen, seen), steps=step_factors(seen))


def rounded(value: object) -> object:
    """Return plain data whose numbers have the digits that a fit can give."""
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}")
    if isinstance(value, dict):
        return {key: rounded(each) for key, each in value.items()}
    return [rounded(each) for each in value] if isinstance(value, list | tuple) else value
