"""Rules as text for a terminal: the list, how one applies to a job, a replay."""

from collections.abc import Mapping
from typing import Any

from gpuwaste.act.rules.rule_types import LookDocument, ReplayDocument, ReplayRow, RulesDocument, SubjectLook
from gpuwaste.core.units import say_duration, say_percent
from gpuwaste.show.layout import Look
from gpuwaste.show.terminal_cells import fit, local_time, one_line

_HOUR_MIN = 60


def rules_text(document: RulesDocument, look: Look) -> str:
    """Render the rules in use with what they did."""
    lines = look.title("Rules") if look.header else []
    for row in document.rules:
        matching = "not evaluated yet" if row.matching is None else f"{row.matching:,} match now"
        lines.append(f"  {fit(row.name, 24):<24}  {row.mode:<8}{matching}; {', '.join(row.steps)}")
        if row.left:
            lines.append(f"  {'':24}  skipped: {', '.join(f'{count:,} {why}' for why, count in row.left.items())}")
        if row.steps_30d:
            last = "" if row.last is None else f", the last {local_time(row.last, look.zone)}"
            lines.append(
                f"  {'':24}  30 days: {row.steps_30d:,} steps ({row.recorded_30d:,} only recorded) for"
                f" {row.subjects_30d:,} subjects of {row.users_30d:,} users{last}"
            )
    if not document.rules:
        lines.append("no rules: the hub does nothing")
    lines += [f"  not used: {one_line(error)}" for error in document.errors]
    return "\n".join(lines) + "\n"


def look_text(document: LookDocument, look: Look) -> str:
    """Render the parts of a rule's condition, with their values for each run of the question."""
    lines = look.title(f"Rule {fit(document.name, 40)}") if look.header else []
    lines.append(f"  mode {document.mode}; {document.matching:,} of {document.candidates:,} match now")
    for one in document.found:
        lines += ["", f"  {one.printed_id}  {one.subject}"]
        for part in one.parts:
            facts = ", ".join(f"{name} = {_value(value)}" for name, value in part.facts.items())
            lines.append(f"    {_truth(part.value):<9}{one_line(part.text)}" + (f"   ({facts})" if facts else ""))
        lines.append(f"    {_verdict(one)}")
    return "\n".join(lines) + "\n"


def replay_text(document: ReplayDocument, look: Look) -> str:
    """Render the table by delay, then the users with the most hits."""
    lines = look.title(f"Replay of {fit(document.name, 40)}") if look.header else []
    window = f"{local_time(document.start, look.zone)} to {local_time(document.end, look.zone)}"
    lines.append(f"  {window}: {document.runs:,} runs with GPUs, {document.idle_to_end:,} idle to their end")
    shares = f"{'precision':<20}{'recall':<20}"
    lines += ["", f"  {'after':>8}{'jobs':>8}{'users':>7}{'wrong':>7}  {shares}{'GPU-h freed':>11}{'lost':>9}"]
    lines += [_row(row) for row in document.rows]
    if document.users:
        lines += ["", "  At the last step:"]
        lines += [
            f"    {fit(row.user, 20):<20}{row.jobs:>6,} jobs{row.wrong:>6,} wrong{row.freed_gpu_h:>9,.0f} GPU-h freed"
            for row in document.users
        ]
    lines += ["", "  wrong: a GPU of the job was active again before its end. Intervals: " + document.interval + "."]
    if document.by_day_ratio:
        lines.append(
            f"  {say_percent(document.by_day_ratio)} of the GPU time is kept by day only ([hub] rollup_days): idle "
            "time that ended within such a day is not counted, so precision is too high."
        )
    return "\n".join(lines) + "\n"


def _row(row: ReplayRow) -> str:
    shares = (
        f"  {_share(row.precision, row.precision_low, row.precision_high):<20}"
        f"{_share(row.recall, row.recall_low, row.recall_high):<20}"
    )
    counts = f"  {_delay(row.after_s):>8}{row.jobs:>8,}{row.users:>7,}{row.wrong:>7,}"
    return f"{counts}{shares}{row.freed_gpu_h:>11,.0f}{row.lost_gpu_h:>9,.0f}  {row.step}".rstrip()


def _share(value: float | None, low: float | None, high: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.3f}" if low is None or high is None else f"{value:.3f} [{low:.3f},{high:.3f}]"


def _delay(seconds: int) -> str:
    minutes = seconds // 60
    return f"{minutes} min" if minutes < 2 * _HOUR_MIN else f"{minutes / _HOUR_MIN:g} h"


def _verdict(one: SubjectLook) -> str:
    if one.exempt:
        return f"skipped: exempt by {one.exempt}"
    if not one.matches:
        unknown = any(part.value is None for part in one.parts)
        return "does not match: a fact is unknown" if unknown else "does not match"
    held = "" if one.held_s is None else f" for {say_duration(one.held_s)}"
    return f"matches{held}; due now: {one.due}" if one.due else f"matches{held}; {one.steps_done} steps done, none due"


def _truth(value: bool | None) -> str:
    return "unknown" if value is None else "true" if value else "false"


def _value(value: Mapping[str, Any] | Any) -> str:
    if value is None:
        return "unknown"
    return f"{value:g}" if isinstance(value, float) else one_line(str(value))
