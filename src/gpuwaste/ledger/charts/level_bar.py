"""A bar of GPU-time by level: one row, each part as wide as its share."""

from collections.abc import Mapping
from typing import Final

from markupsafe import Markup

from gpuwaste.show.page_words import share

LEVELS: Final = ("high", "moderate", "low", "idle", "unknown", "suspended")
_RECT: Final = Markup('<rect x="{:.3f}%" y="0" width="{:.3f}%" height="100%" class="{}"><title>{}</title></rect>')


def level_bar(gpu_s: Mapping[str, float]) -> Markup:
    """Return the bar of GPU-seconds by level; without any it is an empty frame."""
    whole = sum(gpu_s.get(level, 0.0) for level in LEVELS)
    parts, at = [], 0.0
    for level in LEVELS:
        width = 100 * gpu_s.get(level, 0.0) / whole if whole else 0.0
        if width:
            parts.append(_RECT.format(at, width, level, f"{level} {share(width, 100)}"))
            at += width
    said = ", ".join(f"{level} {share(gpu_s.get(level, 0.0), whole)}" for level in LEVELS if gpu_s.get(level))
    return Markup('<svg class="level-bar" width="100%" height="24" role="img" aria-label="{}">{}</svg>').format(
        said or "no GPU-time", Markup("").join(parts)
    )
