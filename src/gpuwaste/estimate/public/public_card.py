"""The card of the model of public measurements: `gpuwaste model show --times public`."""

from collections.abc import Mapping
from typing import Annotated, Literal

from msgspec import Meta
from tabulate import tabulate

from gpuwaste.core.fields import Document
from gpuwaste.estimate.public.coefficients import Coefficients, MeasurementSource, PublicError, Widths

NAME = "public"
"""Under this name the card is shown; a bundle cannot be told from it."""
_BASIS = "public measurements"


class PublicCard(Document, kw_only=True, frozen=True):
    """What the shipped model of step times was fitted to, and its errors."""

    document: Literal["public-times-card"] = "public-times-card"
    basis: str = _BASIS
    version: Annotated[str, Meta(description="Version of the coefficients.")]
    made: Annotated[str, Meta(description="Day on which they were fitted, YYYY-MM-DD.")]
    sources: Annotated[Mapping[str, MeasurementSource], Meta(description="Who measured, and under which licence.")]
    measured: Annotated[Mapping[str, list[str]], Meta(description="Sources by GPU type.")]
    errors: Annotated[Mapping[str, PublicError], Meta(description="By case, on GPUs that the fit had not seen.")]
    widths: Annotated[Widths, Meta(description="Half widths of the 90 % interval, in the logarithm of time.")]


def public_card(known: Coefficients) -> PublicCard:
    """Return the card of coefficients."""
    return PublicCard(
        version=known.version, made=known.made, sources=known.sources, measured=known.measured, errors=known.errors,
        widths=known.widths,
    )  # fmt: skip


def public_card_text(card: PublicCard) -> str:
    """Return the card as Markdown."""
    rows = [
        (case, str(one.steps), f"{100 * one.mean:.1f} %", f"{100 * one.inside:.1f} %")
        for case, one in card.errors.items()
    ]
    heads = ("CASE", "STEPS", "MEAN ERROR", "INSIDE")
    table = tabulate(rows, headers=heads, tablefmt="github", disable_numparse=True, colalign=("left", *["right"] * 3))
    sources = [
        f"- {name}: {each.title}. {each.authors}, {each.licence}. {each.url}" for name, each in card.sources.items()
    ]
    measured = [f"- {gpu}: {', '.join(sources)}" for gpu, sources in card.measured.items()]
    lines = [
        f"# Step times from {card.basis}, version {card.version}",
        "",
        f"Fitted on {card.made} to measurements of others; gpuwaste has measured none of these GPUs.",
        "",
        *sources,
        "",
        "Data sheets, and the rates of large products that users have published, have their sources in gpu_types.toml.",
        "",
        "GPU types that were measured:",
        "",
        *measured,
        "",
        "Errors on steps of whole models, each by a fit that had not seen the GPU:",
        "",
        table,
        "",
        "INSIDE: share of the steps in the 90 % interval. A step is disturbed where its forward pass took more than",
        "0.65 of the backward pass: something else was measured with it.",
        "",
    ]
    return "\n".join(lines)
