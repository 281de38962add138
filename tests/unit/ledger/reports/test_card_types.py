"""A bundle's card as it was written while it was a mapping: read as its type, and written again byte for byte."""

import json
from pathlib import Path

from gpuwaste.advice.renewal.card_types import ModelCard
from gpuwaste.core.codec import convert
from gpuwaste.models.card_text import card_text

CARDS = Path(__file__).parents[3] / "fixtures" / "cards"
PLOTS = (
    "failure.calibration.svg", "failure.precision_recall.svg", "walltime.coverage.svg", "walltime.limits.svg",
)  # fmt: skip


def test_the_bytes_are_as_they_were() -> None:
    """What `train --json` printed, and card.md, come out of the type unchanged, fields in their order."""
    text = (CARDS / "site.json").read_text()
    card = convert(json.loads(text), ModelCard, "card.json")
    assert json.dumps(card.to_json(), indent=1) + "\n" == text
    assert card_text(card, PLOTS) == (CARDS / "site.md").read_text()


def test_a_card_of_another_version_is_read() -> None:
    """What a later version adds, also deep inside, is ignored."""
    now = json.loads((CARDS / "site.json").read_text())
    later = json.loads((CARDS / "site.json").read_text()) | {"later": 1}
    later["targets"]["failure"]["test"]["later"] = {"value": 1}
    assert convert(later, ModelCard, "card.json") == convert(now, ModelCard, "card.json")
