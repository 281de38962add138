"""Two campaigns on generated weeks: one whose notices save a known share, and an A/A whose notices change nothing.

A hub of its own reads their store: the demo's cluster has run for minutes, and a campaign takes weeks.
"""

import json
from collections.abc import Callable, Mapping
from datetime import date, timedelta
from pathlib import Path
from typing import Any, Final

from gpuwaste.act.campaigns.assignment import Assignment
from gpuwaste.act.campaigns.campaign_file import load_campaigns
from gpuwaste.core.clock import SystemClock
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.testing.campaign_weeks import fill_weeks
from gpuwaste.testing.daemon_config import to_toml
from gpuwaste.testing.demo.checks import DemoCheck
from gpuwaste.testing.demo.ending import Ending
from gpuwaste.testing.lone_hub import LoneHub
from gpuwaste.testing.running_site import Site

_USERS: Final = 60
_SHARE: Final = 0.5
_WEEKS: Final = 6
_STORE: Final = "hub.duckdb"
_KEY: Final = "the same key in each demo, so that the figures are the same"


def measure_effect(site: Site, directory: Path, say: Callable[[str], None]) -> Ending:
    """Fill the weeks, run the hub, and compare what it says with what was put in."""
    directory.mkdir()
    folder = _campaigns(directory)
    saved = _fill(directory, folder, Assignment(_KEY.encode()))
    hub = LoneHub(
        directory,
        str(site.cluster.layout.munge_socket),
        hub={"staff_groups": ["root"]},
        common={"campaigns_dir": str(folder), "campaign_key_file": str(directory / "campaign.key")},
    )
    hub.start()
    try:
        say(f"a hub with {_WEEKS} weeks of two campaigns: in one, users who are told idle {_SHARE:.0%} less")
        reader = directory / "reader.toml"
        reader.write_text(to_toml({"common": {"hub_url": hub.url, "munge_socket": hub.munge_socket}}))
        words = ["effect", "--config", str(reader)]
        text = _said(site, words)
        document = json.loads(_said(site, [*words, "--json"]))
    finally:
        hub.stop()
    campaigns = {one["name"]: one for one in document["campaigns"]}
    say(campaigns["warned"]["sentence"])
    return Ending({"root$ gpuwaste effect": text}, (_found(campaigns["warned"], saved), _nothing(campaigns["placebo"])))


def _campaigns(directory: Path) -> Path:
    """Write a key and the files of two campaigns of different users, which ended yesterday."""
    folder = directory / "campaigns.d"
    (directory / "campaign.key").write_text(_KEY)
    (directory / "campaign.key").chmod(0o600)
    folder.mkdir()
    end = date.today() - timedelta(days=2)  # noqa: DTZ011 the site's own days
    start = end - timedelta(days=7 * _WEEKS - 1)
    for name in ("warned", "placebo"):
        users = json.dumps(_names(name))
        text = f'what = ["digest"]\nstart = {start}\nend = {end}\nheld_back = 0.5\nweeks_before = 4\nusers = {users}\n'
        (folder / f"{name}.toml").write_text(text)
    return folder


def _names(campaign: str) -> list[str]:
    return [f"{campaign}{number:02}" for number in range(_USERS)]


def _fill(directory: Path, folder: Path, assignment: Assignment) -> float:
    """Put the weeks of both campaigns into the store; return the GPU-hours that the first one saves."""
    (directory / "state").mkdir(mode=0o750)
    store = HubStore.open(directory / "state" / _STORE, SystemClock())
    try:
        found = {one.name: one for one in load_campaigns(folder).campaigns}
        warned = fill_weeks(store, found["warned"], assignment, _names("warned"), _SHARE)
        fill_weeks(store, found["placebo"], assignment, _names("placebo"), 0.0, first_job=1 + warned.jobs)
    finally:
        store.close()
    return warned.saved_h


def _said(site: Site, words: list[str]) -> str:
    return site.cluster.run(site.runtime.command(*words), "root", env=site.runtime.env, timeout_s=120).stdout


def _found(campaign: Mapping[str, Any], saved_h: float) -> DemoCheck:
    figure = campaign["saved_gpu_h"]
    low, high = figure["low"], figure["high"]
    fits = low is not None and high is not None and 0 < low <= saved_h <= high
    said = "not known" if low is None or high is None else f"{figure['value']:.1f} ({low:.1f} to {high:.1f})"
    return DemoCheck("saved by a campaign", f"{saved_h:.1f} GPU-hours", said, fits)


def _nothing(campaign: Mapping[str, Any]) -> DemoCheck:
    figure = campaign["saved_gpu_h"]
    low, high = figure["low"], figure["high"]
    fits = low is not None and high is not None and low <= 0 <= high
    said = "not known" if low is None or high is None else f"{low:.1f} to {high:.1f} GPU-hours"
    return DemoCheck("saved by an A/A campaign", "nothing", said, fits)
