"""GPU-hours wasted by account and cause, and by the users who waste most."""

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from gpuwaste.analytics.answer import Answer
from gpuwaste.analytics.asking import Asking
from gpuwaste.analytics.chart import Chart, Role, Series
from gpuwaste.analytics.charting import CUT_NOTE, gpus_note, named, sideways, user_words
from gpuwaste.analytics.document import Column
from gpuwaste.analytics.facts import Facts, ratio
from gpuwaste.core.units import HOUR_S
from gpuwaste.waste.findings import CAUSE_ORDER, cause_name
from gpuwaste.waste.judged_runs import judged_runs
from gpuwaste.waste.load import Selection

TITLE: Final = "GPU-hours wasted"
QUESTION: Final = "Which accounts and users waste GPU-hours, and by what?"
SENTENCES: Final = (
    "{wasted_hours} of {held_hours} were wasted ({wasted_share}).",
    "What jobs did with {unknown_share+} of the GPU-hours is not known.",
    (
        "{top_user} wasted most: {top_user_hours}, {top_user_share} of all waste; "
        "the {most_users} who waste most made {most_users_share} of it."
    ),
    "Account {top_account} wasted most: {top_account_hours}, {top_account_share} of all waste.",
    "The largest cause is {top_cause}: {top_cause_hours}.",
    "Jobs held {held_only_hours+}; how much of it was wasted is not known, as no agent reports GPUs.",
)
_COLUMNS: Final = (
    Column(name="user", title="User"),
    Column(name="account", title="Account"),
    Column(name="held_hours", title="Held", unit="GPU-hours"),
    Column(name="wasted_hours", title="Wasted", unit="GPU-hours"),
    Column(name="wasted_share", title="Wasted of held", unit="share"),
    Column(name="unknown_hours", title="Unknown", unit="GPU-hours"),
)
_SUMS: Final = ("alloc_ms", "wasted_ms", "unknown_ms")
"""GPU-milliseconds of own GPUs, by user and account."""
_MS_H: Final = HOUR_S * 1000
_SHOWN: Final = 20
_TOP: Final = 10
CAUSE_ROLES: Final[Mapping[str, Role]] = {
    "one_gpu_of_many": "idle",
    "gpus_untouched": "moderate",
    "idle_interactive": "low",
    "gpus_opened_idle": "high",
    "idle_tail": "out_of_memory",
    "busy_hang": "node_fail",
    "few_sms": "third",
    "many_small_jobs": "muted",
    "cpu_starved": "other",
    "memory_resident": "cancelled",
}
"""The role of each finding: the same colour in every chart, and no two alike in either scheme."""


def answer(asking: Asking) -> Answer:
    """Ask the ledger where agents report, else accounting for what was held."""
    if not asking.rows("samples_kept")[0]["seen"]:
        return _held(asking)
    held: dict[tuple[str, str], Counter[str]] = {}
    causes: dict[str, Counter[str]] = {}
    blocks: list[dict[str, Any]] = []
    window = asking.window
    for cluster in window.clusters or (None,):
        selection = Selection(window.start, window.end, clusters=None if cluster is None else (cluster,))
        with judged_runs(asking.db, selection, asking.settings, window.now) as runs:
            for row in runs.wasted():
                own = held.setdefault((row["user"], row["account"]), Counter())
                own.update({name: row[name] for name in _SUMS})
            for account, kinds in runs.account_causes().items():
                causes.setdefault(account, Counter()).update(kinds)
            blocks += runs.blocks(window.block)
    facts = Facts("waste")
    _add_totals(facts, held, blocks, window.blocks)
    _add_top(facts, held, causes)
    lines = sorted((_line(key, own) for key, own in held.items()), key=lambda line: (-line[3], -line[2], line[:2]))
    notes = [
        CUT_NOTE,
        f"Each wasted GPU-hour has one cause, the first finding of: {', '.join(map(cause_name, CAUSE_ORDER))}.",
        "Of a job that an edge of the window cuts, each cause has the part of the inside that it has of the whole job.",
        "The interval of the wasted share is of whole jobs by the day of their end.",
    ]
    return Answer(facts, _COLUMNS, lines, _charts(lines, _whole(causes, lines)), notes)


def _whole(causes: Mapping[str, Counter[str]], lines: list[list[Any]]) -> dict[str, Counter[str]]:
    """Return the causes of each account in GPU-seconds with the waste that no finding explains, kind ""."""
    wasted: Counter[str] = Counter()
    for line in lines:
        wasted[line[1]] += line[3] * HOUR_S
    rest = {name: wasted_s - causes.get(name, Counter()).total() for name, wasted_s in wasted.items() if wasted_s}
    return {name: causes.get(name, Counter()) + Counter({"": max(0.0, rest_s)}) for name, rest_s in rest.items()}


def _add_totals(
    facts: Facts, sums: dict[tuple[str, str], Counter[str]], blocks: list[dict[str, Any]], count: int
) -> None:
    alloc_ms, wasted_ms, unknown = (sum(own[name] for own in sums.values()) for name in _SUMS)
    facts.add("held_hours", alloc_ms / _MS_H, "GPU-hours", "GPU-hours held")
    facts.add("wasted_hours", wasted_ms / _MS_H, "GPU-hours", "GPU-hours wasted")
    sample = ratio(blocks, "wasted_ms", "alloc_ms", count)
    facts.share("wasted_share", wasted_ms, alloc_ms, "share of the GPU-hours that was wasted", sample=sample)
    facts.share("unknown_share", unknown, alloc_ms, "share of the GPU-hours of which nothing is known")


def _add_top(facts: Facts, sums: dict[tuple[str, str], Counter[str]], causes: dict[str, Counter[str]]) -> None:
    users, accounts = Counter[str](), Counter[str]()
    for (user, account), own in sums.items():
        users[user] += own["wasted_ms"]
        accounts[account] += own["wasted_ms"]
    whole = users.total()
    if whole:
        for name, of in (("user", users), ("account", accounts)):
            first, ms = min(of.items(), key=lambda item: (-item[1], item[0]))
            facts.add(f"top_{name}", named(first, name), "", f"{name} that wasted most")
            facts.add(f"top_{name}_hours", ms / _MS_H, "GPU-hours", f"GPU-hours that this {name} wasted")
            facts.share(f"top_{name}_share", ms, whole, f"share of all waste that is this {name}'s")
        most = [ms for _, ms in users.most_common(_TOP) if ms]
        facts.add("most_users", len(most), "users", "users who wasted most")
        facts.share("most_users_share", sum(most), whole, "share of all waste that is theirs")
    kinds = sum(causes.values(), Counter[str]())
    if kinds:
        kind, wasted_s = min(kinds.items(), key=lambda item: (-item[1], item[0]))
        facts.add("top_cause", cause_name(kind), "", "cause of most waste")
        facts.add("top_cause_hours", wasted_s / HOUR_S, "GPU-hours", "GPU-hours wasted by it")


def _line(key: tuple[str, str], own: Counter[str]) -> list[Any]:
    alloc_ms, wasted_ms, unknown_ms = (own[name] for name in _SUMS)
    return [*key, alloc_ms / _MS_H, wasted_ms / _MS_H, wasted_ms / alloc_ms if alloc_ms else None, unknown_ms / _MS_H]


def _charts(lines: list[list[Any]], causes: dict[str, Counter[str]]) -> list[Chart]:
    shown = [line for line in lines if line[3]][:_SHOWN]
    users = sideways(
        "GPU-hours by user",
        [user_words(*line[:2]) for line in shown],
        "GPU-hours",
        [
            Series(name="wasted", role="idle", y=[round(line[3], 2) for line in shown]),
            Series(name="held, not wasted", role="muted", y=[round(line[2] - line[3], 2) for line in shown]),
        ],
        of="User and account",
    )
    accounts = sorted(causes, key=lambda name: (-causes[name].total(), name))[:_SHOWN]
    kinds = sorted(
        sum((causes[name] for name in accounts), Counter[str]()).items(), key=lambda item: (-item[1], item[0])
    )
    series = [
        Series(
            name=cause_name(kind) if kind else "no finding",
            role=CAUSE_ROLES.get(kind, "muted"),
            y=[round(causes[name][kind] / HOUR_S, 2) for name in accounts],
        )
        for kind, _ in kinds
    ]
    names = [named(name, "account") for name in accounts]
    by_cause = sideways("GPU-hours wasted by account and cause", names, "GPU-hours", series, of="Account")
    return [chart for chart, some in ((users, shown), (by_cause, accounts)) if some]


def _held(asking: Asking) -> Answer:
    rows = asking.rows("held_by_account")
    facts = Facts("held_by_account")
    held = sum(row["gpu_s"] for row in rows) / HOUR_S
    facts.add("held_only_hours", held, "GPU-hours", "GPU-hours held")
    lines = [[row["user"], row["account"], row["gpu_s"] / HOUR_S, None, None, row["gpu_s"] / HOUR_S] for row in rows]
    unknown = gpus_note(rows) or ["The store has no samples of GPUs: waste is not known."]
    return Answer(facts, _COLUMNS, lines, [], [CUT_NOTE, *unknown])
