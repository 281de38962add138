"""Figure: campaigns with a known effect: how often intervals cover it, false savings, power by users and weeks, cost.

Users are drawn from ten weeks of Philly (multi-GPU jobs; the idle share of a job's first four minutes stands for the
job) and from a generated cluster, assigned by the product's keyed hash. An interval covers only if no weekly look has
rejected what was really saved. Beside it stand plain ways: before and after of those notified, and Welch's t interval
of the difference of means at the end of the campaign. Then one line of JSON.
"""

import argparse
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import NormalDist
from typing import Final

import numpy as np
from tools.data.places import find

from gpuwaste.act.campaigns.campaign_effect import saved_share, smallest_effect
from gpuwaste.act.campaigns.campaign_panel import CampaignData, relative_panel
from gpuwaste.act.campaigns.randomisation import holds, paths, rejected
from gpuwaste.testing.campaign_draws import (
    DrawnCampaign,
    InjectedEffect,
    Population,
    campaign,
    drawn,
    generated,
    philly,
)

PHILLY: Final = "gpu/philly_dre/philly_sampled_jobs.parquet"
WEEKS: Final = 6
BEFORE: Final = 4
USERS: Final = 120
THIRD: Final = InjectedEffect(0.3)
SCENES: Final = {
    "A/A, no effect": (InjectedEffect(0.0), 0),
    "30 % of each week": (THIRD, 0),
    "30 % of the weeks lose all": (replace(THIRD, kind="weeks"), 0),
    "30 % of the users lose all": (replace(THIRD, kind="users"), 0),
    "each user another share": (replace(THIRD, kind="varied"), 0),
    "one user holds half": (replace(THIRD, giant=True), 0),
    "one user holds half, weeks": (replace(THIRD, giant=True, kind="weeks"), 0),
    "drift of 60 % a week": (replace(THIRD, drift=0.6), 0),
    "those held back save half as much": (replace(THIRD, spill=0.5), 0),
    "stepped roll-out": (THIRD, 4),
}
_Z: Final = NormalDist().inv_cdf(0.975)


@dataclass(slots=True)
class Counted:
    """How many campaigns covered the truth, and claimed a saving, by way."""

    cover: int = 0
    claims: int = 0
    plain_cover: int = 0
    plain_claims: int = 0
    before_claims: int = 0


def main() -> int:
    """Draw campaigns and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=2000, help="of each kind of campaign")
    parser.add_argument("--power-draws", type=int, default=400, help="of each point of the power curves")
    options = parser.parse_args()
    populations = list(_populations())
    covered = {one.name: dict(_coverage(one, options.draws)) for one in populations}
    power = {one.name: dict(_power(one, options.power_draws)) for one in populations}
    cost = _cost()
    print(json.dumps({"bench": "effect", "coverage": covered, "power": power, "cost_s": cost}))
    return 0


def _populations() -> Iterator[Population]:
    file = find(PHILLY)
    if file is None:
        print(f"no {PHILLY} here: only the generated cluster")
    else:
        yield philly(Path(file).parent)
    yield generated()


def _coverage(population: Population, draws: int) -> Iterator[tuple[str, dict[str, float]]]:
    print(f"\n{population.name}: {USERS} users, {WEEKS} weeks, {draws} campaigns of each kind; covered of nominal 95 %")
    print(f"{'campaign':36} {'covered':>8} {'claims':>7} {'t covers':>9} {'t claims':>9} {'before/after claims':>20}")
    for name, (effect, rollout) in SCENES.items():
        planned, counted = campaign(WEEKS, rollout_weeks=rollout, before=BEFORE), Counted()
        for seed in range(draws):
            _count(counted, drawn(population, planned, USERS, effect, seed), effect, seed)
        shares = {field: round(getattr(counted, field) / draws, 4) for field in Counted.__dataclass_fields__}
        print(
            f"{name:36} {shares['cover']:8.3f} {shares['claims']:7.3f} {shares['plain_cover']:9.3f}"
            f" {shares['plain_claims']:9.3f} {shares['before_claims']:20.3f}"
        )
        yield name, shares


def _count(counted: Counted, one: DrawnCampaign, effect: InjectedEffect, seed: int) -> None:
    found = paths(relative_panel(one.data, "idle_h"), WEEKS, draws=499, seed=seed)
    truth = one.saved_share
    if effect.spill:  # what a comparison of the two sides can show
        truth = 1 - (1 - truth) / (1 - effect.spill * truth)
    counted.cover += holds(found, truth / (1 - truth), WEEKS)
    counted.claims += rejected(-found.at(0.0, WEEKS), found.spent / 2) is not None
    low, high = _welch(one.data) if (one.data.notified_from == WEEKS).any() else (float("nan"), float("nan"))
    saved_each = one.saved_h / max(int((one.data.notified_from < WEEKS).sum()), 1) / WEEKS
    counted.plain_cover += low <= saved_each <= high
    counted.plain_claims += low > 0
    counted.before_claims += _before_after(one.data) > 0


def _welch(data: CampaignData) -> tuple[float, float]:
    """Return the 95 % interval of the difference of mean idle GPU-hours a week, held back minus notified, by Welch."""
    notified = data.notified_from < data.looks
    mean = data.during["idle_h"].mean(axis=1)
    one, other = mean[~notified], mean[notified]
    middle = one.mean() - other.mean()
    reach = _Z * float(np.sqrt(one.var(ddof=1) / len(one) + other.var(ddof=1) / len(other)))
    return float(middle - reach), float(middle + reach)


def _before_after(data: CampaignData) -> float:
    """Return by how many idle GPU-hours a week those notified idle less than before."""
    notified = data.notified_from < data.looks
    return float(data.before["idle_h"][notified].mean() - data.during["idle_h"][notified].mean())


def _power(population: Population, draws: int) -> Iterator[tuple[str, dict[str, float]]]:
    """Print which share of the campaigns shows an effect, by users, weeks and share."""
    print(
        f"\n{population.name}: power by number of users and weeks, {draws} campaigns of each; last: foreseen for 80 %"
    )
    shares = (0.1, 0.2, 0.3, 0.5)
    print(
        f"{'users':>6} {'weeks':>6}" + "".join(f"{f'{share:.0%} saved':>12}" for share in shares) + f"{'foreseen':>10}"
    )
    for users in (50, 100, 200, 500, 1000):
        for weeks in (4, 8, 12) if population.weeks > WEEKS + BEFORE else (6,):
            planned, row = campaign(weeks, before=BEFORE), {}
            foreseen = []
            for share in shares:
                shown = 0
                for seed in range(draws):
                    one = drawn(population, planned, users, InjectedEffect(share, drift=0.1), seed)
                    found = paths(relative_panel(one.data, "idle_h"), weeks, draws=299, seed=seed)
                    shown += rejected(-found.at(0.0, weeks), found.spent / 2) is not None
                    if share == shares[0]:
                        foreseen.append(smallest_effect(one.data, weeks) or 1.0)
                row[f"{share:.2f}"] = round(shown / draws, 3)
            row["foreseen"] = round(float(np.median(foreseen)), 3)
            print(f"{users:6} {weeks:6}" + "".join(f"{value:12.2f}" for value in row.values()))
            yield f"{users} users, {weeks} weeks", row


def _cost() -> dict[str, float]:
    """Return the seconds of one figure with its interval, as the hub computes it once a week, by users."""
    print("\nseconds of one figure with its interval, 12 weeks, 1,999 assignments")
    found = {}
    for users in (100, 1000, 5000):
        one = drawn(generated(), campaign(12, before=8), users, THIRD, 1)
        began = time.process_time()
        saved_share(one.data, "idle_h")
        found[str(users)] = round(time.process_time() - began, 2)
        print(f"{users:6} users {found[str(users)]:6.2f} s of CPU")
    return found


if __name__ == "__main__":
    raise SystemExit(main())
