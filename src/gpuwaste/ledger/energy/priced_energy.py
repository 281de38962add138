"""The energy of runs by the hours in which it was drawn, weighted by their prices, for tariffs by hour."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from gpuwaste.core.scope import ClusterAccount, account_rows
from gpuwaste.core.units import DAY_S, HOUR_S
from gpuwaste.ledger.energy.tariff import DrawnEnergy, Tariff
from gpuwaste.slurm.run_key import RunKey
from gpuwaste.store.database import Database

_SUMS: Final = tuple(DrawnEnergy.__dataclass_fields__)


@dataclass(frozen=True, slots=True)
class DrawnBy:
    """Whose runs: None is "any"."""

    user: str | None = None
    account: str | None = None
    clusters: Collection[str] | None = None
    accounts: Collection[ClusterAccount] | None = None


@dataclass(frozen=True, slots=True)
class EndBins:
    """Steps of time by the end of runs; an open run is in the step of `now`."""

    now: int
    origin: int = 0
    step: int = DAY_S


@dataclass(slots=True)
class DrawnGroups:
    """The energy of a selection's runs: in total, by user, account, both, cluster, and the step in which they ended."""

    total: DrawnEnergy = field(default_factory=DrawnEnergy)
    users: dict[str, DrawnEnergy] = field(default_factory=dict)
    accounts: dict[str, DrawnEnergy] = field(default_factory=dict)
    pairs: dict[str, dict[str, DrawnEnergy]] = field(default_factory=dict)  # by user and account
    clusters: dict[str, DrawnEnergy] = field(default_factory=dict)
    bins: dict[int, DrawnEnergy] = field(default_factory=dict)

    def add(self, row: Mapping[str, Any]) -> None:
        """Add a row of query drawn_by_group."""
        drawn, user, account, bin_ = _drawn(row), row["user"], row["account"], row["bin"]
        if bin_ is not None:
            self.bins[bin_] = drawn
        elif row["cluster"] is not None:
            self.clusters[row["cluster"]] = drawn
        elif user is not None and account is not None:
            self.pairs.setdefault(user, {})[account] = drawn
        elif user is not None:
            self.users[user] = drawn
        elif account is not None:
            self.accounts[account] = drawn
        else:
            self.total = drawn


def drawn_by_group(db: Database, whose: DrawnBy, window: tuple[int, int], tariff: Tariff, bins: EndBins) -> DrawnGroups:
    """Return the energy that the runs of a selection drew in the hours that touch the window [start, end)."""
    start, end = window
    clusters = None if whose.clusters is None else sorted(whose.clusters)
    chosen: dict[str, Any] = {"user": whose.user, "account": whose.account}
    chosen |= {"clusters": clusters, "accounts": account_rows(whose.accounts)}
    times = {"from_s": start, "to_s": end, "now": bins.now, "origin": bins.origin, "step": bins.step}
    found = DrawnGroups()
    for row in db.rows("drawn_by_group", {**chosen, **times, **tariff.between(start - HOUR_S, end)}):
        found.add(row)
    return found


def drawn_by_run(db: Database, keys: Collection[RunKey], until: int, tariff: Tariff) -> Mapping[RunKey, DrawnEnergy]:
    """Return the energy of each of some runs, up to an instant."""
    names = [f"{key.cluster} {key.job_id} {key.start}" for key in keys]
    first = min((key.start for key in keys), default=0)
    times = {"from_s": first, "to_s": until + HOUR_S}
    rows = db.rows("drawn_by_run", {"keys": names, **times, **tariff.between(first - HOUR_S, until + HOUR_S)})
    return {RunKey(row["cluster"], row["job_id"], row["run_start"]): _drawn(row) for row in rows}


def _drawn(row: Mapping[str, Any]) -> DrawnEnergy:
    return DrawnEnergy(**{name: row[name] for name in _SUMS})
