"""What a finding proposes in words, one step a change: the same in reports, mails and on pages."""

from collections.abc import Sequence
from dataclasses import dataclass

from gpuwaste.ledger.reports.report_types import FixRow


@dataclass(frozen=True, slots=True)
class FixStep:
    """A sentence of a proposal, and the lines to copy for it."""

    text: str
    lines: Sequence[str]


def fix_steps(fixes: Sequence[FixRow]) -> list[FixStep]:
    """Return the one change that is proposed, or "Either ... or ..." where there are several."""
    steps = []
    for place, fix in enumerate(fixes):
        text = fix.text[:1].upper() + fix.text[1:]
        if len(fixes) > 1:
            text = f"{'or' if place else 'Either'} {fix.text}"
        end = ":" if fix.lines else "." if place == len(fixes) - 1 else ","
        steps.append(FixStep(text + end, fix.lines))
    return steps
