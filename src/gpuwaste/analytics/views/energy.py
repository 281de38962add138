"""Energy of jobs' GPUs by day and account, and the part of it that was wasted."""

from collections import Counter
from typing import Any, Final

from gpuwaste.analytics.answer import Answer
from gpuwaste.analytics.asking import Asking
from gpuwaste.analytics.chart import Axis, Bars, Chart, Series
from gpuwaste.analytics.charting import named, sideways, step_axis
from gpuwaste.analytics.document import Column
from gpuwaste.analytics.facts import Facts, ratio
from gpuwaste.core.units import J_PER_KWH
from gpuwaste.waste.judged_runs import judged_runs
from gpuwaste.waste.load import Selection

TITLE: Final = "Energy of GPUs"
QUESTION: Final = "How much energy do jobs' GPUs take each day, whose is it, and how much of it is wasted?"
SENTENCES: Final = (
    "The GPUs of jobs took {energy_kwh+}, {energy_by_day} a day.",
    "Energy was measured in {measured_share} of the GPU-time.",
    "Of {split_kwh+} it is known that {wasted_kwh} were wasted ({wasted_share}).",
    "Account {top_account} took most: {top_account_kwh}, {top_account_share} of it.",
)
_COLUMNS: Final = (
    Column(name="account", title="Account"),
    Column(name="energy_kwh", title="Energy", unit="kWh"),
    Column(name="wasted_kwh", title="Wasted", unit="kWh"),
    Column(name="wasted_share", title="Wasted of what is known", unit="share"),
    Column(name="measured_share", title="Measured", unit="share"),
)
_NOTES: Final = (
    "Energy is that of the GPUs, as far as it was measured, without hosts and cooling.",
    "Runs count by the day of their end, cut at the edges of the window.",
    "Wasted energy is not known of the hours of older agents in which a GPU was idle in a part of the time.",
)
_SHOWN: Final = 20
_SUMS: Final = ("alloc_ms", "energy_j", "energy_ms", "split_j", "wasted_j")


def answer(asking: Asking) -> Answer:
    """Ask the ledger for each cluster, where agents report."""
    window, rows = asking.window, []
    seen = asking.rows("samples_kept")[0]["seen"]
    for cluster in (window.clusters or (None,)) if seen else ():
        selection = Selection(window.start, window.end, clusters=None if cluster is None else (cluster,))
        with judged_runs(asking.db, selection, asking.settings, window.now) as runs:
            rows += runs.energy(window.step)
    accounts: dict[str, Counter[str]] = {}
    days: dict[int, Counter[str]] = {bin_: Counter() for bin_ in range(window.bins)}
    for row in rows:
        amounts = {name: row[name] or 0 for name in _SUMS}
        accounts.setdefault(row["account"], Counter()).update(amounts)
        days[min(max(row["bin"], 0), window.bins - 1)].update(amounts)
    facts = Facts("energy")
    _add_facts(facts, asking, accounts, days)
    order = sorted(accounts, key=lambda name: (-accounts[name]["energy_j"], name))
    lines = [_line(name, accounts[name]) for name in order]
    return Answer(facts, _COLUMNS, lines, _charts(asking, lines, days), list(_NOTES))


def _add_facts(facts: Facts, asking: Asking, accounts: dict[str, Counter[str]], days: dict[int, Counter[str]]) -> None:
    window, total = asking.window, sum(accounts.values(), Counter[str]())
    sample_rows: list[dict[str, Any]] = [
        {"block": bin_ * window.step // window.block, **{name: own[name] for name in _SUMS}}
        for bin_, own in days.items()
    ]
    known = total["energy_ms"] > 0
    facts.add("energy_kwh", total["energy_j"] / J_PER_KWH if known else None, "kWh", "energy of jobs' GPUs")
    by_day = total["energy_j"] / J_PER_KWH / ((window.end - window.start) / 86400) if known else None
    facts.add("energy_by_day", by_day, "kWh", "energy of jobs' GPUs per day")
    held_ms = total["alloc_ms"] if accounts else 1  # without agents nothing is measured
    facts.share("measured_share", total["energy_ms"], held_ms, "share of the GPU-time that was measured")
    facts.add("split_kwh", total["split_j"] / J_PER_KWH, "kWh", "energy that is known to be wasted or not")
    facts.add("wasted_kwh", total["wasted_j"] / J_PER_KWH if known else None, "kWh", "energy in wasted GPU-time")
    sample = ratio(sample_rows, "wasted_j", "split_j", window.blocks)
    facts.share("wasted_share", total["wasted_j"], total["split_j"], "wasted share of the energy", sample=sample)
    if known:
        first = min(accounts, key=lambda name: (-accounts[name]["energy_j"], name))
        facts.add("top_account", named(first, "account"), "", "account that took most energy")
        facts.add("top_account_kwh", accounts[first]["energy_j"] / J_PER_KWH, "kWh", "energy of this account")
        part, whole = accounts[first]["energy_j"], total["energy_j"]
        facts.share("top_account_share", part, whole, "share of all energy that is this account's")


def _line(account: str, own: Counter[str]) -> list[Any]:
    known, split = own["energy_ms"] > 0, own["split_j"]
    return [
        account,
        own["energy_j"] / J_PER_KWH if known else None,
        own["wasted_j"] / J_PER_KWH if split else None,
        own["wasted_j"] / split if split else None,
        own["energy_ms"] / own["alloc_ms"] if own["alloc_ms"] else None,
    ]


def _charts(asking: Asking, lines: list[list[Any]], days: dict[int, Counter[str]]) -> list[Chart]:
    if not any(line[1] for line in lines):
        return []
    at, axis = step_axis(asking.window)
    wasted = [round(days[place]["wasted_j"] / J_PER_KWH, 3) for place in range(asking.window.bins)]
    rest = [
        round((days[place]["energy_j"] - days[place]["wasted_j"]) / J_PER_KWH, 3) for place in range(asking.window.bins)
    ]
    shown = [line for line in lines if line[1]][:_SHOWN]
    return [
        Bars(
            title="Energy of GPUs",
            x=axis,
            y=Axis(title="Energy", unit="kWh"),
            at=at,
            series=[Series(name="wasted", role="idle", y=wasted), Series(name="not wasted", role="main", y=rest)],
        ),
        sideways(
            "Energy by account",
            [named(line[0], "account") for line in shown],
            "kWh",
            [
                Series(name="wasted", role="idle", y=[round(line[2] or 0, 3) for line in shown]),
                Series(name="not wasted", role="main", y=[round(line[1] - (line[2] or 0), 3) for line in shown]),
            ],
            of="Account",
        ),
    ]
