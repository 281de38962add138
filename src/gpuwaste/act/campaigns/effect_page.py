"""/effects: what each campaign has shown."""

from dataclasses import replace

from gpuwaste.act.campaigns.effect_text import effect_rows
from gpuwaste.act.campaigns.effect_types import EffectsDocument
from gpuwaste.show.environment import Frame, page


def effects_page(document: EffectsDocument, frame: Frame) -> str:
    """Return the page."""
    rows = {one.name: effect_rows(one) for one in document.campaigns}
    links = {"csv": "/effects.csv", "json": "/effects.json"}
    return page("effects", replace(frame, links=links), document=document, rows=rows)
