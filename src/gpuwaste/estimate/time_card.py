"""The card of a bundle of step times (card.json), which `gpuwaste estimate train --json` prints too."""

from collections.abc import Mapping
from typing import Annotated, Literal

from msgspec import Meta, Struct

from gpuwaste.core.fields import Document, Ratio, Utc


class TimeFigures(Struct, kw_only=True, frozen=True):
    """Relative errors of one case of the table; no program was predicted by a model that had seen it."""

    case: Annotated[str, Meta(description="seen, or which share of an unseen family was measured.")]
    programs: int
    additive_mape: Annotated[float, Meta(description="Mean absolute relative error of the roofline by itself.")]
    mape: Annotated[float, Meta(description="The same with the Gaussian process.")]
    median: Annotated[float, Meta(description="Median absolute relative error.")]
    p90: Annotated[float, Meta(description="90th percentile of the absolute relative error.")]
    coverage: Annotated[Ratio, Meta(description="Share of the programs inside the 90 % interval.")]


class TimeCardType(Struct, kw_only=True, frozen=True):
    """One type of GPU."""

    gpu: str
    basis: Annotated[str, Meta(description="What its estimates rest on.")]
    hardware: Annotated[str, Meta(description="Name of the GPU, driver, framework, highest clock.")]
    programs: int
    families: int
    own_runs: Annotated[int, Meta(description="Runs of the site's users among the programs.")]
    left_out: Annotated[Mapping[str, int], Meta(description="Records that were not learnt from, by reason.")]
    figures: list[TimeFigures]


class TimeCard(Document, kw_only=True, frozen=True):
    """What a bundle of step times was measured on and how far it is off."""

    document: Literal["time-card"] = "time-card"
    name: str
    created_utc: Utc
    seconds: Annotated[Mapping[str, float], Meta(description="What each stage of the training took.")]
    promoted: Annotated[bool, Meta(description="Whether it was put in use at once.")]
    types: list[TimeCardType]
