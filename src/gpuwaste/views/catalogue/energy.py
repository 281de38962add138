"""Energy of jobs' GPUs by day, account and user, its wasted part, and its cost."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

from gpuwaste.core.units import J_PER_KWH
from gpuwaste.ledger.energy.priced_energy import DrawnBy, DrawnGroups, EndBins, drawn_by_group
from gpuwaste.ledger.energy.tariff import Bill, DrawnEnergy
from gpuwaste.ledger.judged_runs import judged_runs
from gpuwaste.ledger.run_judging import Selection
from gpuwaste.show.chart import Axis, Bars, Chart, Series
from gpuwaste.show.view_document import Column, ViewFacts, ratio
from gpuwaste.views.charting import named, sideways, step_axis
from gpuwaste.views.ranking import SHOWN, LostShare, Ranking, Superlative, ranking
from gpuwaste.views.view_query import Answer, ViewQuery

TITLE: Final = "Energy of GPUs"
QUESTION: Final = "How much energy do GPUs use, who uses it, and what does it cost?"
SENTENCES: Final = (
    "The GPUs of jobs used {energy_kwh+}, {energy_by_day} per day.",
    "Energy was measured in {measured_share+} of the GPU-time.",
    "{wasted_kwh} were wasted, {wasted_share} of the {split_kwh+} for which this is known.",
    "With cooling this costs {cost}; {wasted_cost} of it was wasted.",
    "With cooling this emits {co2e_kg} of CO2e.",
    "Account {top_account} used most: {top_account_kwh}, {top_account_share} of all energy.",
    "User {top_user} used most: {top_user_kwh}, {top_user_share} of all energy.",
    "The CPUs of these jobs used another {cpu_kwh}, measured in {cpu_measured_share} of the GPU-time.",
)
MOST_OF: Final = {
    kind: Superlative(f"top_{kind}", f"top_{kind}_kwh", "bars", f"Energy by {kind}", share=f"top_{kind}_share")
    for kind in ("account", "user")
}
SUPERLATIVES: Final = tuple(MOST_OF.values())
FINDING: Final = LostShare("wasted_share", "GPU-hours")
_COLUMNS: Final = (
    Column(name="account", title="Account"),
    Column(name="user", title="User"),
    Column(name="energy_kwh", title="Energy", unit="kWh"),
    Column(name="wasted_kwh", title="Wasted", unit="kWh"),
    Column(name="wasted_share", title="Wasted share", unit="share"),
    Column(name="measured_share", title="Measured share", unit="share"),
)
_CPUS: Final = Column(name="cpu_kwh", title="CPUs", unit="kWh")
_NOTES: Final = (
    "Only measured energy of GPUs counts, without hosts and cooling.",
    "Jobs count on the day of their end; energy outside the window does not count.",
    "Older agents do not report the wasted energy of hours in which a GPU was idle for a part of the time.",
)
_NONE: Final = "No energy was measured in this window."
_CPU_NOTE: Final = "Energy of CPUs is of jobs with GPUs only; no other figure includes it."
_COST_NOTE: Final = "Cost and CO2e include the PUE of the site; the energy of each hour has the price of that hour."
_SUMS: Final = ("alloc_ms", "energy_j", "energy_ms", "split_j", "wasted_j", "cpu_energy_j", "cpu_energy_ms")


def answer(asking: ViewQuery) -> Answer:
    """Query the ledger for each cluster, where agents report."""
    window, rows = asking.window, []
    seen = asking.rows("samples_kept")[0]["seen"]
    for cluster in (window.clusters or (None,)) if seen else ():
        selection = Selection(window.start, window.end, clusters=None if cluster is None else (cluster,))
        with judged_runs(asking.db, selection, asking.settings, window.now) as runs:
            rows += runs.energy(window.step)
    days: dict[int, Counter[str]] = {bin_: Counter() for bin_ in range(window.bins)}
    pairs: dict[tuple[str, str], Counter[str]] = {}
    for row in rows:
        amounts = {name: row[name] or 0 for name in _SUMS}
        pairs.setdefault((row["account"], row["user"]), Counter()).update(amounts)
        days[min(max(row["bin"], 0), window.bins - 1)].update(amounts)
    facts, drawn = ViewFacts("energy"), _drawn(asking, rows)
    _add_facts(facts, asking, list(pairs.values()), days)
    _add_costs(facts, asking, pairs.values(), drawn)
    ranked = {kind: _by(pairs, place, kind) for place, kind in enumerate(MOST_OF)}
    for kind, first in ranked.items():
        means = f"{kind} that used most energy", f"energy of this {kind}", f"share of this {kind} in all energy"
        first.add(facts, MOST_OF[kind], "kWh", means, unnamed=named("", kind))
    order = sorted(pairs, key=lambda pair: (-pairs[pair]["energy_j"], pair))
    cpus = (_CPUS,) if any(own["cpu_energy_ms"] for own in pairs.values()) else ()
    lines = [[*_line(asking, pair, pairs[pair], drawn), *(_cpu_kwh(pairs[pair]) for _ in cpus)] for pair in order]
    if facts.found[0].value is None:
        return Answer(facts, _COLUMNS, lines, [], [], nothing=_NONE)
    notes = [*_NOTES, *((_COST_NOTE,) if _priced(asking) else ()), *((_CPU_NOTE,) if cpus else ())]
    columns = (*_COLUMNS, *_cost_columns(asking), *cpus)
    return Answer(facts, columns, lines, _charts(asking, ranked, days, drawn), notes)


def _cpu_kwh(own: Mapping[str, float]) -> float | None:
    """Return the energy of the CPUs that jobs used; None where none was measured."""
    return own["cpu_energy_j"] / J_PER_KWH if own["cpu_energy_ms"] else None


def _priced(asking: ViewQuery) -> bool:
    flat = asking.tariff.flat
    return asking.tariff.by_hour or flat.price_per_kwh is not None or flat.g_co2e_per_kwh is not None


def _cost_columns(asking: ViewQuery) -> tuple[Column, ...]:
    """Return the columns of cost and CO2e, if the site has a price or an intensity."""
    if not _priced(asking):
        return ()
    currency = asking.tariff.currency
    return (Column(name="cost", title="Cost", unit=currency), Column(name="co2e_kg", title="CO2e", unit="kg"))


def _drawn(asking: ViewQuery, rows: list[dict[str, Any]]) -> DrawnGroups:
    """Return the energy by hours, if the price depends on them."""
    window, tariff = asking.window, asking.tariff
    if not tariff.by_hour or not any(row["energy_j"] for row in rows):
        return DrawnGroups()
    whose = DrawnBy(clusters=window.clusters or None)
    bins = EndBins(window.now, window.start, window.step)
    return drawn_by_group(asking.db, whose, (window.start, window.end), tariff, bins)


def _bill(asking: ViewQuery, sums: Mapping[str, float], drawn: DrawnEnergy | None, of: str = "energy_j") -> Bill | None:
    """Return the bill of some energy; None where none was measured."""
    return asking.tariff.over(drawn).bill(sums[of]) if sums["energy_ms"] else None


def _by(pairs: Mapping[tuple[str, str], Counter[str]], place: int, kind: str) -> Ranking[Counter[str]]:
    """Return accounts (place 0) or users (1) by the energy of their jobs' GPUs."""
    found: dict[str, Counter[str]] = {}
    for pair, own in pairs.items():
        found.setdefault(pair[place], Counter()).update(own)
    return ranking((own, named(name, kind), own["energy_j"] / J_PER_KWH) for name, own in found.items())


def _add_facts(facts: ViewFacts, asking: ViewQuery, groups: list[Counter[str]], days: dict[int, Counter[str]]) -> None:
    window, total = asking.window, sum(groups, Counter[str]())
    sample_rows: list[dict[str, Any]] = [
        {"block": bin_ * window.step // window.block, **{name: own[name] for name in _SUMS}}
        for bin_, own in days.items()
    ]
    known = total["energy_ms"] > 0
    facts.add("energy_kwh", total["energy_j"] / J_PER_KWH if known else None, "kWh", "energy of jobs' GPUs")
    by_day = total["energy_j"] / J_PER_KWH / ((window.end - window.start) / 86400) if known else None
    facts.add("energy_by_day", by_day, "kWh", "energy of jobs' GPUs per day")
    held_ms = total["alloc_ms"] if groups else 1  # without agents nothing is measured
    facts.share("measured_share", total["energy_ms"], held_ms, "share of the GPU-time in which energy was measured")
    facts.add("split_kwh", total["split_j"] / J_PER_KWH, "kWh", "energy for which the wasted part is known")
    facts.add("wasted_kwh", total["wasted_j"] / J_PER_KWH if known else None, "kWh", "energy in wasted GPU-time")
    if total["cpu_energy_ms"]:
        facts.add("cpu_kwh", _cpu_kwh(total), "kWh", "energy of the CPUs that jobs with GPUs used")
        facts.share("cpu_measured_share", total["cpu_energy_ms"], held_ms, "share of the GPU-time with CPUs measured")
    sample = ratio(sample_rows, "wasted_j", "split_j", window.blocks)
    facts.share("wasted_share", total["wasted_j"], total["split_j"], "wasted share of the energy", sample=sample)


def _add_costs(facts: ViewFacts, asking: ViewQuery, groups: Iterable[Counter[str]], drawn: DrawnGroups) -> None:
    total = sum(groups, Counter[str]())
    bill, wasted = (_bill(asking, total, drawn.total, of) for of in ("energy_j", "wasted_j"))
    if not _priced(asking) or bill is None or wasted is None:
        return
    currency = asking.tariff.currency
    facts.add("cost", bill.cost, currency, "cost of jobs' GPUs")
    facts.add("wasted_cost", wasted.cost, currency, "cost of energy in wasted GPU-time")
    facts.add("co2e_kg", bill.co2e_kg, "kg", "CO2e of jobs' GPUs")


def _line(asking: ViewQuery, pair: tuple[str, str], own: Counter[str], drawn: DrawnGroups) -> list[Any]:
    account, user = pair
    known, split = own["energy_ms"] > 0, own["split_j"]
    line = [
        account,
        user,
        own["energy_j"] / J_PER_KWH if known else None,
        own["wasted_j"] / J_PER_KWH if split else None,
        own["wasted_j"] / split if split else None,
        own["energy_ms"] / own["alloc_ms"] if own["alloc_ms"] else None,
    ]
    if not _priced(asking):
        return line
    bill = _bill(asking, own, drawn.pairs.get(user, {}).get(account))
    return [*line, *((None, None) if bill is None else (bill.cost, bill.co2e_kg))]


def _charts(
    asking: ViewQuery, ranked: Mapping[str, Ranking[Counter[str]]], days: dict[int, Counter[str]], drawn: DrawnGroups
) -> list[Chart]:
    if not any(own["energy_j"] for own in days.values()):
        return []
    at, axis = step_axis(asking.window)
    wasted, rest = _split(days.values())
    series = [Series(name="wasted", role="idle", y=wasted), Series(name="not wasted", role="main", y=rest)]
    energy = Axis(title="Energy", unit="kWh")
    charts: list[Chart] = [Bars(title="Energy of GPUs", x=axis, y=energy, at=at, series=series)]
    bills = [_bill(asking, own, drawn.bins.get(place)) for place, own in days.items()]
    costs = [None if bill is None or bill.cost is None else round(bill.cost, 3) for bill in bills]
    if any(costs):
        currency = asking.tariff.currency
        cost = [Series(name="cost", role="main", y=costs)]
        charts.append(Bars(title="Cost of energy", x=axis, y=Axis(title="Cost", unit=currency), at=at, series=cost))
    return [*charts, *(_largest(kind, own) for kind, own in ranked.items())]


def _largest(kind: str, ranked: Ranking[Counter[str]]) -> Bars:
    shown = [own for own in ranked.groups if own["energy_j"]][:SHOWN]
    wasted, rest = _split(shown)
    series = [Series(name="wasted", role="idle", y=wasted), Series(name="not wasted", role="main", y=rest)]
    return sideways(MOST_OF[kind].of, ranked.names[: len(shown)], "kWh", series, of=kind.capitalize())


def _split(sums: Iterable[Counter[str]]) -> tuple[list[float], list[float]]:
    """Return the wasted kilowatt-hours, and the others."""
    found = [(own["wasted_j"] / J_PER_KWH, (own["energy_j"] - own["wasted_j"]) / J_PER_KWH) for own in sums]
    return [round(wasted, 3) for wasted, _ in found], [round(rest, 3) for _, rest in found]
