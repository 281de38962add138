"""The card of a bundle of waits (card.json), which `gpuwaste train --waits --json` prints too."""

from collections.abc import Mapping
from typing import Annotated, Literal

from msgspec import Meta, Struct

from gpuwaste.core.fields import Document, Ratio, Utc


class WaitFigures(Struct, kw_only=True, frozen=True):
    """How good one way to predict waits was on jobs that it had not seen."""

    method: str
    coverage: Annotated[Ratio, Meta(description="Share of the waits from p10 to p90; 0.8 is aimed at.")]
    below: Annotated[Ratio, Meta(description="Share of the waits below p10.")]
    above: Annotated[Ratio, Meta(description="Share of the waits above p90.")]
    pinball_s: Annotated[float, Meta(description="Mean pinball loss of p10, p50 and p90, in seconds.")]
    beside_best: Annotated[float, Meta(description="Loss beside that of the best baseline, as a share: -0.25 is less.")]


class WaitCard(Document, kw_only=True, frozen=True):
    """Where a bundle of waits is from and how good its like was, judged in the order of time."""

    document: Literal["wait-card"] = "wait-card"
    name: str
    cluster: str
    source: str
    created_utc: Utc
    window: Annotated[tuple[int, int], Meta(description="The first and the last submission learnt from, UTC seconds.")]
    rows: Annotated[int, Meta(description="Jobs learnt from: those that started.")]
    judged: Annotated[int, Meta(description="Jobs that the figures are of.")]
    draws: Annotated[int, Meta(description="Simulations of the queue at each submission.")]
    seconds: Annotated[Mapping[str, float], Meta(description="What each stage of the training took.")]
    promoted: Annotated[bool, Meta(description="Whether it was put in use at once.")]
    figures: list[WaitFigures]
