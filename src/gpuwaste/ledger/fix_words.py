"""A finding and its proposed changes as text, one step per change: the same in reports, mails and on pages."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from gpuwaste.core.units import GpuTimeUnit
from gpuwaste.ledger.reports.report_types import FindingRow, FixRow
from gpuwaste.show.layout import Look, wrapped
from gpuwaste.show.terminal_cells import uncut

_NAMED: Final = 3  # jobs that a note names
_LAUNCH: Final = re.compile(r" \((torchrun --[^()]{1,120})\)(?=[.,:])")


@dataclass(frozen=True, slots=True)
class FixStep:
    """One sentence of a proposal, and the lines to copy for it."""

    text: str
    lines: Sequence[str]


def fix_steps(fixes: Sequence[FixRow]) -> list[FixStep]:
    """Return the proposed change, or "Either ... or ..." where there are several."""
    steps = []
    for place, fix in enumerate(fixes):
        text = fix.text[:1].upper() + fix.text[1:]
        if len(fixes) > 1:
            text = f"{'or' if place else 'Either'} {fix.text}"
        end = ":" if fix.lines else "." if place == len(fixes) - 1 else ","
        steps.append(FixStep(text + end, fix.lines))
    return steps


def page_steps(fixes: Sequence[FixRow]) -> list[FixStep]:
    """Return the steps of fix_steps for a page, where a launch command in the text is a line that can be copied."""
    steps = []
    for step in fix_steps(fixes):
        launch = None if step.lines else _LAUNCH.search(step.text)
        steps.append(step if launch is None else FixStep(f"{step.text[: launch.start()]}:", [launch[1]]))
    return steps


def finding_lines(finding: FindingRow, unit: GpuTimeUnit, look: Look, user: str = "") -> list[str]:
    """Return a finding as a note that ends with the proposed change; `user` names whose job it is."""
    runs = [run.printed_id for run in finding.runs]
    more = len(runs) - _NAMED
    named = ", ".join(uncut(run) for run in runs[:_NAMED]) + (f" and {more} more" if more > 0 else "")
    so_far = " so far" if finding.provisional else ""
    gain = f" ({unit.words(finding.wasted_gpu_s)}{so_far})" if finding.wasted_gpu_s else ""
    whose = f" of user {user}" if user else ""
    lines = look.bullet(f"{'Jobs' if len(runs) > 1 else 'Job'} {named}{whose}: {finding.title}{gain}")
    for step in fix_steps(finding.fixes):
        lines += wrapped(step.text, look.prose, "    ", "    ")
        lines += (f"        {line}" for line in step.lines)
    return lines
