"""Prices of a GPU-hour by type: TYPE=NUMBER, as the option --price and the site's configuration write them."""

from collections.abc import Iterable
from math import isfinite

from gpuwaste.core.errors import ConfigError, UsageError
from gpuwaste.estimate.devices import types_asked

OPTION = "--price"


def given_prices(words: Iterable[str], where: str = OPTION) -> dict[str, float]:
    """Return the price of a GPU-hour by type; that of a100 is of both. Raises UsageError that begins with `where`."""
    found: dict[str, float] = {}
    for word in words:
        name, _, value = word.partition("=")
        price = _number(value)
        if price is None:
            raise UsageError(f"{where}: {word[:40]!r}: expected TYPE=NUMBER, the price of a GPU-hour")
        for device in types_asked(name, where):
            if device.name in found:
                raise UsageError(f"{where}: two prices of {device.name}: give one")
            found[device.name] = price
    return found


def site_prices(words: Iterable[str]) -> dict[str, float]:
    """Return the prices of section [estimate]. Raises ConfigError."""
    try:
        return given_prices(words, "prices")
    except UsageError as error:
        raise ConfigError(f"[estimate] {error}") from error


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if isfinite(value) and value >= 0 else None
