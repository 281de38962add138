"""Rules as text for a terminal: the list, how one applies to a job, a replay."""

from collections.abc import Mapping, Sequence
from typing import Any

from gpuwaste.act.rules.rule_types import (
    LookDocument,
    ReplayDocument,
    ReplayLadder,
    ReplayRow,
    ReplayRung,
    ReplayUser,
    RulesDocument,
    RuleStanding,
    SubjectLook,
)
from gpuwaste.core.units import HOUR_S, GpuTimeUnit, say_duration, say_percent
from gpuwaste.show.layout import Column, Look
from gpuwaste.show.terminal_cells import UNKNOWN, clock, fit, local_time, one_line, percent


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
        lines += [f"  {'':24}  {line}" for line in _precision(row, look)]
    if not document.rules:
        lines.append("no rules in use: the hub takes no actions")
    lines += [f"  not loaded: {one_line(error)}" for error in document.errors]
    return "\n".join(lines) + "\n"


def _precision(row: RuleStanding, look: Look) -> list[str]:
    """Return how often a rule was right, live beside the last replay, and whether it was demoted for it."""
    lines = []
    if row.demoted is not None:
        since = local_time(row.demoted, look.zone)
        lines.append(f"mode act in its file, notify since {since}: {one_line(row.demoted_why)};")
        lines.append(f"to act again: gpuwaste rules restore {row.name}")
    if live := row.live:
        said = f"live precision {percent(live.precision)} ({_interval(live.precision_low, live.precision_high)})"
        lines.append(f"{said}: {live.wrong:,} of {live.judged:,} judged runs wrong, {live.unknown:,} not judged")
        if live.unappealed:
            lines.append(f"{live.unappealed:,} judged runs were ended by the rule, and nobody appealed")
    if replayed := row.replayed:
        interval = _interval(replayed.precision_low, replayed.precision_high)
        window = f"{local_time(replayed.start, look.zone)[:10]} to {local_time(replayed.end, look.zone)[:10]}"
        lines.append(f"replayed {percent(replayed.precision)} ({interval}), {replayed.judged:,} runs, {window}")
    if row.precision_floor and (row.live or row.demoted is not None):
        lines.append(f"floor {percent(row.precision_floor)}")
    return lines


def look_text(document: LookDocument, look: Look) -> str:
    """Render the parts of a rule's condition, with their values for each run of the question."""
    lines = look.title(f"Rule {fit(document.name, 40)}") if look.header else []
    if document.demoted:
        lines.append(f"  in mode notify, though its file has act: {one_line(document.demoted)}")
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
    lines += look.bullet(
        f"{window}: {document.runs:,} runs with GPUs, {document.idle_to_end:,} of them idle to their end"
    )
    lines += look.heading("By delay")
    lines += _delays(document.rows, look)
    lines += _keeps(document, look)
    if document.users:
        lines += [*look.heading("Users, at the rule's last step"), *_users(document.users, look)]
    if document.ladders:
        lines += [*look.heading("By ladder"), *_ladders(document.ladders, look)]
        lines += [*look.heading("By step of this rule"), *_rungs(document.ladders[0].rungs, look)]
    notes = [
        "WRONG: a GPU of the job was active again before the end of the job.",
        "PRECISION: share of the ended jobs that are not in WRONG. RECALL: share of the runs idle to their end.",
        "FREED: GPU time from the step to the end of the jobs that stayed idle. LOST: the same of the jobs in WRONG.",
        "COST: GPU time from the start of the jobs in WRONG. AT LEAST: from the checkpoint, if every job saves one.",
        "PER WRONG: GPU time freed for each job in WRONG. SUBMIT: jobs in WRONG that their users must submit again.",
        f"Intervals: {document.interval}.",
    ]
    if document.by_day_ratio:
        notes.append(
            f"{say_percent(document.by_day_ratio)} of the GPU time is kept by day only ([hub] rollup_days): idle "
            "time that ended within such a day is not counted, so precision is too high."
        )
    lines += [*look.heading("Notes"), *(line for note in notes for line in look.bullet(note))]
    return "\n".join(lines) + "\n"


def _delays(rows: Sequence[ReplayRow], look: Look) -> list[str]:
    unit = GpuTimeUnit.of(hours * HOUR_S for row in rows for hours in (row.freed_gpu_h, row.lost_gpu_h))
    lines = look.fitted(
        [
            Column("AFTER", [clock(row.after_s) for row in rows]),
            Column("JOBS", [f"{row.jobs:,}" for row in rows]),
            Column("USERS", [f"{row.users:,}" for row in rows], rank=3),
            Column("WRONG", [f"{row.wrong:,}" for row in rows]),
            Column("PRECISION", [percent(row.precision) for row in rows]),
            Column("95 % INTERVAL", [_interval(row.precision_low, row.precision_high) for row in rows], rank=5),
            Column("RECALL", [percent(row.recall) for row in rows], rank=2),
            Column("95 % INTERVAL", [_interval(row.recall_low, row.recall_high) for row in rows], rank=4),
            Column("FREED", [unit.number(row.freed_gpu_h * HOUR_S) for row in rows]),
            Column("LOST", [unit.number(row.lost_gpu_h * HOUR_S) for row in rows], rank=1),
            Column("STEP", [row.step for row in rows], left=True, whole=True),
        ]
    )
    return [*lines, f"  FREED and LOST in {unit.name}"] if look.header and rows else lines


def _keeps(document: ReplayDocument, look: Look) -> list[str]:
    """Return what recorded keeps changed, and what more of them would."""
    lines: list[str] = []
    for row in document.keeps:
        if row.step:
            unit = GpuTimeUnit.of([row.spared_gpu_h * HOUR_S, row.not_freed_gpu_h * HOUR_S])
            kept, spared = (unit.words(hours * HOUR_S) for hours in (row.not_freed_gpu_h, row.spared_gpu_h))
            lines += look.bullet(
                f"{row.step} after {say_duration(row.after_s)}: {row.hits:,} runs were kept then, {row.avoided:,} of"
                f" them never hit; the hit would have been right for {row.right:,} ({kept} not freed) and wrong for"
                f" {row.wrong:,} ({spared} not lost)"
            )
    for one in document.asked:
        if one.share:
            lost = GpuTimeUnit.of([one.lost_gpu_h * HOUR_S]).words(one.lost_gpu_h * HOUR_S)
            who = "measured" if one.measured else "assumed"
            lines += look.bullet(
                f"had {say_percent(one.share)} of the owners of wrongly hit jobs requested a keep ({who}):"
                f" {one.wrong:.1f} wrong, precision {percent(one.precision)}, lost {lost}"
            )
    return [*look.heading("Keeps"), *lines] if lines else []


def _ladders(rows: Sequence[ReplayLadder], look: Look) -> list[str]:
    unit = GpuTimeUnit.of(hours * HOUR_S for row in rows for hours in (row.freed_gpu_h, row.cost_gpu_h))
    lines = look.fitted(
        [
            Column("JOBS", [f"{row.jobs:,}" for row in rows]),
            Column("WRONG", [f"{row.wrong:,}" for row in rows]),
            *_costs(rows, unit),
            Column("LADDER", [row.name for row in rows], left=True, whole=True),
        ]
    )
    return [*lines, f"  FREED, COST, AT LEAST and PER WRONG in {unit.name}"] if look.header else lines


def _rungs(rows: Sequence[ReplayRung], look: Look) -> list[str]:
    known = [hours or 0.0 for row in rows for hours in (row.freed_gpu_h, row.cost_gpu_h)]
    unit = GpuTimeUnit.of(hours * HOUR_S for hours in known)
    lines = look.fitted(
        [
            Column("AFTER", [clock(row.after_s) for row in rows]),
            Column("JOBS", [f"{row.jobs:,}" for row in rows]),
            Column("WRONG", [f"{row.wrong:,}" for row in rows]),
            *_costs(rows, unit),
            Column("STEP", [row.action for row in rows], left=True, whole=True),
        ]
    )
    return [*lines, f"  FREED, COST, AT LEAST and PER WRONG in {unit.name}"] if look.header else lines


def _costs(rows: Sequence[ReplayLadder] | Sequence[ReplayRung], unit: GpuTimeUnit) -> list[Column]:
    def hours(value: float | None) -> str:
        return UNKNOWN if value is None else unit.number(value * HOUR_S)

    return [
        Column("FREED", [hours(row.freed_gpu_h) for row in rows]),
        Column("COST", [hours(row.cost_gpu_h) for row in rows]),
        Column("AT LEAST", [hours(row.cost_low_gpu_h) for row in rows], rank=1),
        Column("PER WRONG", [hours(row.freed_per_wrong_gpu_h) for row in rows]),
        Column("SUBMIT", [f"{row.resubmitted:,}" for row in rows], rank=2),
    ]


def _users(rows: Sequence[ReplayUser], look: Look) -> list[str]:
    unit = GpuTimeUnit.of(row.freed_gpu_h * HOUR_S for row in rows)
    return look.fitted(
        [
            Column("JOBS", [f"{row.jobs:,}" for row in rows]),
            Column("WRONG", [f"{row.wrong:,}" for row in rows]),
            Column(f"{unit.name.upper()} FREED", [unit.number(row.freed_gpu_h * HOUR_S) for row in rows]),
            Column("USER", [row.user for row in rows]),
        ]
    )


def _interval(low: float | None, high: float | None) -> str:
    return UNKNOWN if low is None or high is None else f"{percent(low)} to {percent(high)}"


def _verdict(one: SubjectLook) -> str:
    if one.kept:
        return one_line(one.kept)
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
