"""Printing a bundle of step times: its card."""

import sys
from typing import TYPE_CHECKING

from gpuwaste.core.errors import ModelError

if TYPE_CHECKING:
    from gpuwaste.estimate.time_bundle import TimeBundle


def show_times(bundle: "TimeBundle", *, as_json: bool) -> int:
    """Print the card of a bundle as text or JSON. Raises ModelError where it has none."""
    import json

    from gpuwaste.core.codec import convert
    from gpuwaste.core.errors import ParseError
    from gpuwaste.estimate.time_card import TimeCard
    from gpuwaste.estimate.time_card_text import card_text
    from gpuwaste.show.machine import to_json

    where = bundle.directory / "card.json"
    try:
        card = convert(json.loads(bundle.card), TimeCard, f"{where}: not a card")
    except (ValueError, RecursionError, ParseError) as error:
        raise ModelError(f"{where}: no card in this bundle: train it again with gpuwaste estimate train") from error
    sys.stdout.write(to_json(card.to_json()) if as_json else card_text(card))
    return 0
