"""The effect of campaigns: /v1/effects and the page /effects, for operators."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from gpuwaste.act.campaigns.effect_types import EffectsDocument, SplitDocument
from gpuwaste.core.fields import Name, Number
from gpuwaste.core.scope import Scope
from gpuwaste.show.resource import FORMS, Page, PageRequest, Reading, Resource

if TYPE_CHECKING:
    from gpuwaste.act.campaigns.effect_reads import EffectReads


@dataclass(frozen=True)
class EffectsQuestion:
    """Which campaign."""

    campaign: Annotated[Name | None, Meta(description="only this campaign")] = None


@dataclass(frozen=True)
class SplitQuestion:
    """Around which instant, UTC seconds, and how many weeks on either side."""

    at: Number
    weeks: Annotated[int, Meta(ge=1, le=52, description="weeks before and after")] = 4


def _effects(reading: Reading) -> "EffectReads":
    from gpuwaste.act.campaigns.effect_reads import EffectReads

    return reading.get(EffectReads)


def effects(reading: Reading, scope: Scope, question: EffectsQuestion) -> EffectsDocument:
    """Return the campaigns and what they have shown, with intervals of 95 %; for operators."""
    return _effects(reading).effects(scope, question.campaign)


def split(reading: Reading, scope: Scope, question: SplitQuestion) -> SplitDocument:
    """Return the GPU-hours before and after an instant: a difference, and no effect; for operators."""
    return _effects(reading).split(scope, question.at, question.weeks)


def _document(asked: PageRequest) -> EffectsDocument:
    return effects(asked.reading, asked.scope, EffectsQuestion())


def _page(asked: PageRequest, document: EffectsDocument) -> str:
    from gpuwaste.act.campaigns.effect_page import effects_page

    return effects_page(document, asked.frame)


RESOURCES = (
    Resource(path="/v1/effects", question=EffectsQuestion, document=EffectsDocument, read=effects, pool="reports"),
    Resource(path="/v1/effects/split", question=SplitQuestion, document=SplitDocument, read=split, pool="reports"),
    Page(path="/effects", document=_document, html=_page, forms=FORMS, long=True),
)
