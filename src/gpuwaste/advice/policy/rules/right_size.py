"""Prints a smaller request that past runs would have fitted, where the policy has a table [right_size].

The hub draws these findings from past runs every 6 hours: a smaller GPU, less memory, a shorter time limit, fewer CPUs
(docs/reference/findings.md). The lines are printed in mode warn and reject, the smaller GPU first, for a job in the
partition of those runs that requests more. They never raise an action. They are held back with other advice: where the
job history is too old, below the policy's floor, for an override, and for a reject that is accepted at random.
"""

from typing import Final

from gpuwaste.advice.policy.policy_case import PolicyCase
from gpuwaste.advice.policy.user_message import line

ORDER: Final = 620


def apply(case: PolicyCase) -> None:
    """Add the lines."""
    table, sizes, request = case.policy.right_size, case.facts.sizes, case.facts.request
    if table is None or sizes is None or not request.gpus or case.facts.op != "submit" or case.action == "reject":
        return
    found = sizes.of(request)
    if not found:
        return
    case.step("right_size", f"{len(found)} smaller requests would have fitted past runs")
    if not case.silent:
        words = [f"{row.option} would have been enough for the last {row.runs} runs" for row in found[: table.lines]]
        case.notes = (*case.notes, *map(line, words))
