"""The card's plots as SVG. Equal figures give equal bytes: no date, a fixed salt for the ids."""

import io
import math
from collections.abc import Callable, Sequence
from typing import Any, Final

from matplotlib import rc_context, rcParams
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from gpuwaste.advice.predict.targets import Target
from gpuwaste.advice.renewal.card_types import CardFigures
from gpuwaste.models.holdout_figures import Curves

_STYLE: Final[dict[Any, Any]] = {"svg.hashsalt": "gpuwaste", "svg.fonttype": "none", "font.size": 9}
_INK: Final = "#1f4e79"
_FAINT: Final = "#999999"


def plots(target: Target, figures: CardFigures, curves: Curves) -> dict[str, bytes]:
    """Return the plots of one target by file name; none where there are no curves."""
    drawn: dict[str, bytes] = {}
    if "precision_recall" in curves:
        drawn[f"{target.name}.precision_recall.svg"] = _drawn(lambda axes: _precision_recall(axes, figures, curves))
        drawn[f"{target.name}.calibration.svg"] = _drawn(lambda axes: _calibration(axes, curves))
    if "coverage" in curves:
        drawn[f"{target.name}.coverage.svg"] = _drawn(lambda axes: _coverage(axes, curves))
        drawn[f"{target.name}.limits.svg"] = _drawn(lambda axes: _limits(axes, target, curves))
    return drawn


def _precision_recall(axes: Axes, figures: CardFigures, curves: Curves) -> None:
    recall, precision = curves["precision_recall"]
    axes.step(recall, precision, where="post", color=_INK)
    axes.axhline(figures.base_rate or 0.0, color=_FAINT, linestyle=":", label="base rate")
    for name, point in (figures.operating_points or {}).items():
        x, y = point.recall.value, point.precision.value
        if x is not None and y is not None:
            axes.plot([x], [y], "o", label=f"{name} (p ≥ {point.threshold:.2f})")
    axes.set(xlabel="recall", ylabel="precision", xlim=(0, 1.02), ylim=(0, 1.02))
    axes.legend(loc="lower left", frameon=False)


def _calibration(axes: Axes, curves: Curves) -> None:
    said, came, jobs = curves["calibration"]
    axes.plot([0, 1], [0, 1], color=_FAINT, linestyle=":")
    axes.plot(said, came, color=_INK, linewidth=0.8)
    most = max(jobs)
    axes.scatter(said, came, s=[10 + 90 * n / most for n in jobs], color=_INK)
    axes.set(
        xlabel="probability said (dot: share of the jobs)", ylabel="share that came true", xlim=(0, 1), ylim=(0, 1)
    )


def _coverage(axes: Axes, curves: Curves) -> None:
    nominal, achieved = curves["coverage"]
    axes.plot([0, 1], [0, 1], color=_FAINT, linestyle=":")
    axes.plot(nominal, achieved, "o-", color=_INK)
    axes.set(xlabel="quantile asked for", ylabel="share of jobs at or below it", xlim=(0.4, 1.01), ylim=(0.4, 1.01))


def _limits(axes: Axes, target: Target, curves: Curves) -> None:
    used, said = (_positive(values) for values in curves["cloud"])
    pairs = [(x, y) for x, y in zip(used, said, strict=True) if x and y]
    if not pairs:
        return
    low, high = min(min(pair) for pair in pairs), max(max(pair) for pair in pairs)
    axes.plot([low, high], [low, high], color=_FAINT, linestyle=":")
    axes.scatter([x for x, _ in pairs], [y for _, y in pairs], s=4, color=_INK, alpha=0.4, linewidths=0)
    axes.set(xlabel=f"used, {target.unit}", ylabel=f"said with q = 0.95, {target.unit}", xscale="log", yscale="log")


def _positive(values: Sequence[float]) -> list[float | None]:
    """Return values that a logarithmic axis can show, None for the others."""
    return [value if math.isfinite(value) and 0 < value < 1e18 else None for value in values]  # noqa: PLR2004 an exabyte


def _drawn(draw: Callable[[Axes], None]) -> bytes:
    with rc_context():
        rcParams.update(_STYLE)
        figure = Figure(figsize=(4.5, 3.4), layout="constrained")
        FigureCanvasSVG(figure)
        draw(figure.add_subplot())
        stream = io.BytesIO()
        figure.savefig(stream, format="svg", metadata={"Date": None, "Creator": None})
    return stream.getvalue()
