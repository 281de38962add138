"""GPU-hours wasted by account and cause, and by the users with the most waste."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

from gpuwaste.core.units import HOUR_S
from gpuwaste.ledger.findings import CAUSE_ORDER, cause_name
from gpuwaste.ledger.judged_runs import judged_runs
from gpuwaste.ledger.run_judging import Selection
from gpuwaste.show.chart import Chart, Role, Series
from gpuwaste.show.view_document import Column, ViewFacts, ratio
from gpuwaste.views.charting import CUT_NOTE, gpus_note, named, sideways
from gpuwaste.views.ranking import SHOWN, LostShare, Ranking, Superlative, ranking
from gpuwaste.views.view_query import Answer, ViewQuery

TITLE: Final = "GPU-hours wasted"
QUESTION: Final = "Which accounts and users waste GPU-hours, and by what?"
SENTENCES: Final = (
    "{wasted_hours} were wasted, {wasted_share} of the {held_hours} that jobs held.",
    "{unknown_share+} of the GPU-hours are unknown.",
    "User {top_user} wasted most: {top_user_hours}, {top_user_share} of all waste.",
    "{most_users_share} of all waste is by {most_users}.",
    "Account {top_account} wasted most: {top_account_hours}, {top_account_share} of all waste.",
    "The largest cause is {top_cause}: {top_cause_hours}.",
    "Jobs held {held_only_hours+}; their waste is unknown, because no agent reports GPUs.",
)
_WASTED: Final = "wasted"
_BY: Final = "GPU-hours by {}"
_CAUSES: Final = "GPU-hours wasted by account and cause"
MOST_OF: Final = {
    kind: Superlative(
        f"top_{kind}", f"top_{kind}_hours", "bars", _BY.format(kind), series=(_WASTED,), share=f"top_{kind}_share"
    )
    for kind in ("user", "account")
}
NO_CAUSE: Final = "no finding"
LARGEST_CAUSE: Final = Superlative(
    "top_cause", "top_cause_hours", "series", _CAUSES, series=tuple(map(cause_name, CAUSE_ORDER))
)
SUPERLATIVES: Final = (*MOST_OF.values(), LARGEST_CAUSE)
FINDING: Final = LostShare("wasted_share", "GPU-hours")
_COLUMNS: Final = (
    Column(name="user", title="User"),
    Column(name="account", title="Account"),
    Column(name="held_hours", title="Held", unit="GPU-hours"),
    Column(name="wasted_hours", title="Wasted", unit="GPU-hours"),
    Column(name="wasted_share", title="Wasted share", unit="share"),
    Column(name="unknown_hours", title="Unknown", unit="GPU-hours"),
)
_SUMS: Final = ("alloc_ms", "wasted_ms", "unknown_ms")
"""GPU-milliseconds of own GPUs, by user and account."""
_MS_H: Final = HOUR_S * 1000
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
"""The role of each finding: the same colour in every chart, and different ones for any two in both schemes."""


def answer(asking: ViewQuery) -> Answer:
    """Query the ledger where agents report, else accounting for the held GPU-time."""
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
                causes.setdefault(named(account, "account"), Counter()).update(kinds)
            blocks += runs.blocks(window.block)
    facts = ViewFacts("waste")
    _add_totals(facts, held, blocks, window.blocks)
    ranked = {kind: _ranked(held, place, kind) for place, kind in enumerate(MOST_OF)}
    _add_most(facts, ranked)
    every_cause = sum(causes.values(), Counter[str]())
    by_cause = ranking((kind, cause_name(kind), wasted_s / HOUR_S) for kind, wasted_s in every_cause.items())
    by_cause.add(facts, LARGEST_CAUSE, "GPU-hours", ("cause of most waste", "GPU-hours wasted by it"))
    lines = sorted((_line(key, own) for key, own in held.items()), key=lambda line: (-line[3], -line[2], line[:2]))
    notes = [
        CUT_NOTE,
        f"Each wasted GPU-hour has one cause, the first that applies of: {', '.join(map(cause_name, CAUSE_ORDER))}.",
        "Of a job partly outside the window, the GPU-hours inside have the same shares of causes as all of them.",
        *(
            ["The interval of the wasted share counts each job in full, on the day of its end."]
            if facts.samples
            else ()
        ),
    ]
    bars = _causes_of_accounts(causes, ranked["account"])
    charts = [*_by_whom(ranked), *_by_cause(bars, by_cause)]
    nothing = "" if any(own["alloc_ms"] for own in held.values()) else "No job held a GPU in this window."
    return Answer(facts, _COLUMNS, lines, charts, notes, nothing=nothing)


def _causes_of_accounts(
    causes: Mapping[str, Counter[str]], accounts: Ranking[Counter[str]]
) -> list[tuple[str, Counter[str]]]:
    """Return name and GPU-seconds by cause of each account with waste; kind "" is waste that no finding explains."""
    bars = []
    for own, name in zip(accounts.groups, accounts.names, strict=True):
        if own["wasted_ms"]:
            found = causes.get(name, Counter())
            bars.append((name, found + Counter({"": max(0.0, own["wasted_ms"] / 1000 - found.total())})))
    return bars


def _add_totals(
    facts: ViewFacts, sums: dict[tuple[str, str], Counter[str]], blocks: list[dict[str, Any]], count: int
) -> None:
    alloc_ms, wasted_ms, unknown = (sum(own[name] for own in sums.values()) for name in _SUMS)
    facts.add("held_hours", alloc_ms / _MS_H, "GPU-hours", "GPU-hours held")
    facts.add("wasted_hours", wasted_ms / _MS_H, "GPU-hours", "GPU-hours wasted")
    sample = ratio(blocks, "wasted_ms", "alloc_ms", count)
    facts.share("wasted_share", wasted_ms, alloc_ms, "share of the GPU-hours that was wasted", sample=sample)
    facts.share("unknown_share", unknown, alloc_ms, "unknown GPU-hours")


def _ranked(held: dict[tuple[str, str], Counter[str]], place: int, kind: str) -> Ranking[Counter[str]]:
    """Return users (place 0) or accounts (1) by their waste."""
    sums: dict[str, Counter[str]] = {}
    for key, own in held.items():
        sums.setdefault(key[place], Counter()).update(own)
    return ranking((own, named(name, kind), own["wasted_ms"] / _MS_H) for name, own in sums.items())


def _add_most(facts: ViewFacts, ranked: Mapping[str, Ranking[Counter[str]]]) -> None:
    for kind, own in ranked.items():
        means = (
            f"{kind} that wasted most",
            f"GPU-hours that this {kind} wasted",
            f"share of this {kind} in all waste",
        )
        own.add(facts, MOST_OF[kind], "GPU-hours", means, unnamed=named("", kind))
    values = ranked["user"].values
    if len(values) > _TOP and values[_TOP]:  # else all users with waste: 100 %
        facts.add("most_users", _TOP, "users", "users who wasted most")
        facts.share("most_users_share", sum(values[:_TOP]), sum(values), "their share of all waste")


def _line(key: tuple[str, str], own: Counter[str]) -> list[Any]:
    alloc_ms, wasted_ms, unknown_ms = (own[name] for name in _SUMS)
    return [*key, alloc_ms / _MS_H, wasted_ms / _MS_H, wasted_ms / alloc_ms if alloc_ms else None, unknown_ms / _MS_H]


def _by_whom(ranked: Mapping[str, Ranking[Counter[str]]]) -> Iterator[Chart]:
    """Yield charts of held and wasted time for the users and accounts with the most waste."""
    for kind, own in ranked.items():
        shown = [(name, sums) for name, sums in zip(own.names, own.groups, strict=True) if sums["wasted_ms"]][:SHOWN]
        series = [
            Series(name=_WASTED, role="idle", y=[round(sums["wasted_ms"] / _MS_H, 2) for _, sums in shown]),
            Series(
                name="held, not wasted",
                role="muted",
                y=[round((sums["alloc_ms"] - sums["wasted_ms"]) / _MS_H, 2) for _, sums in shown],
            ),
        ]
        if shown:
            names = [name for name, _ in shown]
            yield sideways(_BY.format(kind), names, "GPU-hours", series, of=kind.capitalize())


def _by_cause(found: list[tuple[str, Counter[str]]], kinds: Ranking[str]) -> list[Chart]:
    """Return the waste of accounts by cause; the last bar is all accounts without a separate one."""
    few = found[: SHOWN - 1] if len(found) > SHOWN else found
    bars = list(few)
    if others := found[len(few) :]:
        bars.append((f"{len(others)} other accounts", sum((own for _, own in others), Counter[str]())))
    series = [
        Series(name=name, role=CAUSE_ROLES.get(kind, "muted"), y=[round(own[kind] / HOUR_S, 2) for _, own in bars])
        for kind, name in [*zip(kinds.groups, kinds.names, strict=True), ("", NO_CAUSE)]
        if any(own[kind] for _, own in bars)
    ]
    return [sideways(_CAUSES, [name for name, _ in bars], "GPU-hours", series, of="Account")] if bars else []


def _held(asking: ViewQuery) -> Answer:
    rows = asking.rows("held_by_account")
    facts = ViewFacts("held_by_account")
    held = sum(row["gpu_s"] for row in rows) / HOUR_S
    facts.add("held_only_hours", held, "GPU-hours", "GPU-hours held")
    lines = [[row["user"], row["account"], row["gpu_s"] / HOUR_S, None, None, row["gpu_s"] / HOUR_S] for row in rows]
    if nothing := gpus_note(rows):
        return Answer(facts, _COLUMNS, lines, [], [], nothing=nothing[0])
    return Answer(facts, _COLUMNS, lines, [], [CUT_NOTE, "The store has no samples of GPUs: waste is unknown."])
