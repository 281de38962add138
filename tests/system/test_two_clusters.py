"""Two real clusters of one slurmdbd, and one hub: reports over both, rights of each, one name, one job id twice."""

from collections import Counter
from datetime import datetime, timedelta
from typing import Any

import pytest
from tests.conftest import ClusterFactory
from tests.system.conftest import SiteFactory

from gpuwaste.testing.cluster_options import Variant
from gpuwaste.testing.cluster_process import ClusterError

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]  # two clusters
ADDED = ("gpu_s", "idle_s", "low_s", "moderate_s", "high_s", "unknown_s", "pending_s", "wasted_s")


def sums(rows: list[dict[str, Any]]) -> Counter[str]:
    """Return what rows add up to."""
    total: Counter[str] = Counter()
    for row in rows:
        total.update({name: row[name] for name in ADDED})
    return total


def test_one_hub_reports_two_clusters(make_cluster: ClusterFactory, make_site: SiteFactory) -> None:
    """The hub's own cluster, and another one whose accounting is imported by its name: each run is in its cluster.

    Alice has the same job id in both. Carol coordinates proj1, which both have, but is a user of it in gw alone.
    """
    gw = make_cluster()
    east = make_cluster(Variant(cluster="east", accounting=str(gw.directory)))
    gw.run(["sacctmgr", "-i", "add", "user", "carol", "account=proj1", "cluster=gw"])
    site = make_site(gw)
    site.start_hub()
    site.start_agent("gpu1")
    job = site.submit("alice", "--phase 3:90", gres="gpu:1", nodelist="gpu1")
    assert east.sbatch("sleep 3", "alice", gres="gpu:1") == job
    other = east.sbatch("sleep 1", "bob", gres="gpu:2")
    site.wait_reported(job, 1)
    for one in (job, other):
        east.wait_accounted(one)
    assert site.hub is not None
    site.hub.stop()
    since = (datetime.now() - timedelta(hours=1)).isoformat(timespec="seconds")  # noqa: DTZ005 the host's own zone
    words = ("history", "import", "--sacct-live", "-S", since)
    assert "2 new or changed" in site.gpuwaste(*words, "--clusters", "east", user="gpuwaste").stdout
    with pytest.raises(ClusterError, match="--clusters west: slurmdbd has no such cluster, only: east, gw"):
        site.gpuwaste(*words, "--clusters", "west", user="gpuwaste")
    site.start_hub()

    every = site.json("report", "-M", "all", user="root")
    assert {(one["cluster"], one["jobid"], one["user"]) for one in every["jobs"]} == {
        ("gw", str(job), "alice"), ("east", str(job), "alice"), ("east", str(other), "bob"),
    }  # fmt: skip
    assert [(row["cluster"], row["jobs"]) for row in every["clusters"]] == [("east", 2), ("gw", 1)]
    assert sums(every["clusters"]) == sums([every["totals"]])
    own, imported = (next(row for row in every["clusters"] if row["cluster"] == name) for name in ("gw", "east"))
    assert own["high_s"] > 0
    assert imported["unknown_s"] + imported["pending_s"] == imported["gpu_s"] > 0, "no agent reports to this hub"

    mine = site.json("report", "-u", "alice", "-M", "all", user="alice")
    assert [(row["cluster"], row["jobs"]) for row in mine["clusters"]] == [("east", 1), ("gw", 1)]
    there = site.json("report", "-M", "east", "-u", "alice", user="alice")
    assert {one["cluster"] for one in there["jobs"]} == {"east"}
    account = site.json("report", "-A", "proj1", "-M", "all", user="carol")
    assert {(one["cluster"], one["user"]) for one in account["jobs"]} == {("gw", "alice")}
    assert site.gpuwaste("job", str(other), user="carol", check=False).returncode != 0
    found = {uid: site.json("job", str(job), user=uid)["runs"] for uid in ("alice", "carol")}
    assert {uid: {run["cluster"] for run in runs} for uid, runs in found.items()} == {
        "alice": {"gw", "east"}, "carol": {"gw"},
    }  # fmt: skip
