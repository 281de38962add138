"""Prints when the job is expected to start, where the policy has a table [expected_start] and the mode warn or reject.

The start comes from the waits that the hub simulates about once a minute; without waits of the last minutes there is
no line. The line names a shorter time limit if a job with that limit is expected to start at once. In every mode but
off the expected start is part of the verdict, so that `gpuwaste policy verdicts --score` shows how often it held.
"""

from datetime import timedelta
from typing import Final

from gpuwaste.advice.policy.expected_waits import WaitRow
from gpuwaste.advice.policy.policy_case import PolicyCase
from gpuwaste.advice.policy.user_message import line
from gpuwaste.core.units import MINUTE_S, format_duration, instant_words

ORDER: Final = 610
AT_ONCE_S: Final = MINUTE_S


def apply(case: PolicyCase) -> None:
    """Set the case's expected start and its line."""
    table, waits, request = case.policy.expected_start, case.facts.waits, case.facts.request
    if table is None or waits is None or not request.gpus or case.facts.op != "submit" or case.action == "reject":
        return
    if not waits.fresh(request.submit):
        return
    rows = waits.of(request.partition, request.gpu_type, request.gpus, request.time_limit_s)
    if not rows:
        return
    first, middle, last = (max(waits.at + wait, request.submit) for wait in (rows[0].p10, rows[0].p50, rows[0].p90))
    case.expected_start = (first, middle, last)
    case.step("expected_start", f"expected to start in {format_duration(middle - request.submit)}")
    if case.policy.mode in {"warn", "reject"} and middle - request.submit >= table.min_wait_minutes * MINUTE_S:
        case.notes = (line(_words(case, (first, middle, last), rows)),)


def _words(case: PolicyCase, instants: tuple[int, int, int], rows: tuple[WaitRow, ...]) -> str:
    """Return the line: expected start 14:30 (80 %: 13:50 to 16:10); with --time=2:00:00 at once."""
    today, submit = case.facts.local_time, case.facts.request.submit
    first, middle, last = (instant_words(today + timedelta(seconds=at - submit), today) for at in instants)
    words = f"expected start {middle} (80 %: {first} to {last})"
    shorter = next((row for row in rows[1:] if row.p50 <= AT_ONCE_S), None)
    return words if shorter is None else f"{words}; with --time={format_duration(shorter.limit_s)} at once"
