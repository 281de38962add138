"""At which hours the GPUs of some runs drew their energy: what a tariff by hour is weighted with."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from gpuwaste.core.cluster_account import ClusterAccount, account_rows
from gpuwaste.core.run import RunKey
from gpuwaste.core.units import HOUR_S
from gpuwaste.store.database import Database


@dataclass(frozen=True, slots=True)
class DrawnBy:
    """Whose runs: None is "any"."""

    user: str | None = None
    account: str | None = None
    clusters: Collection[str] | None = None
    accounts: Collection[ClusterAccount] | None = None


def drawn_hours(db: Database, whose: DrawnBy, start: int, end: int) -> Mapping[int, float]:
    """Return joules by the UTC second at which each hour begins, of the hours that touch [start, end)."""
    accounts = account_rows(whose.accounts)
    clusters = None if whose.clusters is None else sorted(whose.clusters)
    chosen = {"user": whose.user, "account": whose.account, "clusters": clusters, "accounts": accounts}
    rows = db.rows("energy.drawn_hours", {**chosen, "from_s": start, "to_s": end})
    return {int(row["hour_utc"]): float(row["energy_j"]) for row in rows}


def drawn_by_run(db: Database, keys: Collection[RunKey], until: int) -> Mapping[RunKey, Mapping[int, float]]:
    """Return the same for each of some runs, up to an instant."""
    found: dict[RunKey, dict[int, float]] = defaultdict(dict)
    names = [f"{key.cluster} {key.job_id} {key.start}" for key in keys]
    first = min((key.start for key in keys), default=0)
    for row in db.rows("energy.drawn_by_run", {"keys": names, "from_s": first, "to_s": until + HOUR_S}):
        key = RunKey(row["cluster"], row["job_id"], row["run_start"])
        found[key][int(row["hour_utc"])] = float(row["energy_j"])
    return found
