"""The card of a bundle of step times, as card.json and as Markdown.

`gpuwaste model train --times --json` also prints the former, `gpuwaste model show --times` the latter.
"""

import time
from collections.abc import Mapping
from typing import Annotated, Literal

from msgspec import Meta, Struct
from tabulate import tabulate

from gpuwaste.core.fields import Document, Ratio, Utc
from gpuwaste.estimate.public.coefficients import Part

_PAPER_HEADS = ("MODEL", "SEEN", "UNSEEN, 20 % OF THE DATA")
_PAPER = (
    ("random forest on a table", "3.7", "88"),
    ("XGBoost on a table", "1.63", "10 to 77"),
    ("graph network", "11.16", "13.5 to 75"),
    ("XGBoost and graph network", "", "10.55"),
)


class TimeFigures(Struct, kw_only=True, frozen=True):
    """Relative errors of one case of the table; no program was predicted by a model that had seen it."""

    case: Annotated[str, Meta(description="seen, or which share of an unseen family was measured.")]
    programs: int
    additive_mape: Annotated[float, Meta(description="Mean absolute relative error of the roofline by itself.")]
    mape: Annotated[float, Meta(description="The same with the Gaussian process.")]
    median: Annotated[float, Meta(description="Median absolute relative error.")]
    p90: Annotated[float, Meta(description="90th percentile of the absolute relative error.")]
    coverage: Annotated[Ratio, Meta(description="Share of the programs inside the 90 % interval.")]


class PublicFigures(Struct, kw_only=True, frozen=True):
    """The model of public measurements on the same programs, which it has never seen."""

    programs: int
    mape: Annotated[float, Meta(description="Mean absolute relative error as shipped.")]
    corrected_mape: Annotated[
        float | None,
        Meta(description="The same with factors from the other families of programs; null: too few programs."),
    ]
    factors: Annotated[Mapping[Part, float], Meta(description="Measured over computed time, by part of a step.")]


class TimeCardType(Struct, kw_only=True, frozen=True):
    """One type of GPU."""

    gpu: str
    basis: Annotated[str, Meta(description="What its estimates are based on.")]
    hardware: Annotated[str, Meta(description="Name of the GPU, driver, framework, highest clock.")]
    programs: int
    families: int
    own_runs: Annotated[int, Meta(description="Runs of the site's users among the programs.")]
    left_out: Annotated[Mapping[str, int], Meta(description="Records left out of the training, by reason.")]
    figures: list[TimeFigures]
    public: Annotated[PublicFigures | None, Meta(description="Null: the table does not have this GPU.")] = None


class TimeCard(Document, kw_only=True, frozen=True):
    """What a bundle of step times was measured on, and its errors."""

    document: Literal["time-card"] = "time-card"
    name: str
    created_utc: Utc
    seconds: Annotated[Mapping[str, float], Meta(description="Duration of each stage of the training, seconds.")]
    promoted: Annotated[bool, Meta(description="Whether it was promoted at once.")]
    types: list[TimeCardType]


def card_text(card: TimeCard) -> str:
    """Return the card as Markdown."""
    lines = [f"# Step times: {card.name}", "", f"Made {time.strftime('%Y-%m-%d', time.gmtime(card.created_utc))}.", ""]
    for each in card.types:
        lines += [f"## {each.gpu}", "", f"{each.basis}. {each.hardware or 'Hardware not recorded'}.", ""]
        if each.figures:
            lines += [figures_table(each, "github"), ""]
        else:
            lines += ["Too few programs: the errors on this type are unknown.", ""]
        if each.public is not None:
            lines += [public_line(each.public), ""]
        if each.left_out:
            left = ", ".join(f"{count} {why}" for why, count in sorted(each.left_out.items()))
            lines += [f"Left out: {left}.", ""]
    lines += [
        "CASE: *seen*: one fifth of the programs is left out at a time; *unseen*: one family of programs is left out",
        "at a time, except for the given share. ROOFLINE: mean error of the roofline model without the correction.",
        "MEAN, MEDIAN, P90: mean, median and 90th percentile of the error with the correction. INSIDE: programs in",
        "the 90 % interval. All errors are relative, on programs that the model was not trained on.",
        "",
        "Vallabhajosyula and Ramnath report these mean errors in %, on other programs and GPUs:",
        "",
        tabulate(_PAPER, headers=_PAPER_HEADS, tablefmt="github", disable_numparse=True),
        "",
        "The model does not include: input pipelines, dynamic shapes, kernels of users, several GPUs, other jobs.",
        "",
    ]
    return "\n".join(lines)


def public_line(public: PublicFigures) -> str:
    """Return the errors of the public model on a type's programs, and its factors."""
    text = f"Model of public measurements: mean error {_percent(public.mape)} on {public.programs} programs"
    if public.corrected_mape is not None:
        text += f", {_percent(public.corrected_mape)} with this site's factors from other families"
    factors = ", ".join(f"{part} x {factor:.2f}" for part, factor in public.factors.items())
    return f"{text}. Factors: {factors or 'none, too few programs'}."


def figures_table(card: TimeCardType, style: str = "plain") -> str:
    """Return a row for each case, errors and shares in percent."""
    rows = [
        (
            one.case,
            str(one.programs),
            *map(_percent, (one.additive_mape, one.mape, one.median, one.p90, one.coverage)),
        )
        for one in card.figures
    ]
    heads = ("CASE", "PROGRAMS", "ROOFLINE", "MEAN", "MEDIAN", "P90", "INSIDE")
    return tabulate(rows, headers=heads, tablefmt=style, disable_numparse=True, colalign=("left", *["right"] * 6))


def _percent(error: float) -> str:
    """Print an error with one decimal: those of two models differ by less than a whole percent."""
    return f"{100 * error:.1f} %"
