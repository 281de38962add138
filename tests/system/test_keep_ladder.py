"""A keep against the loop closed on a real cluster: agents, hub, rules, mail and actor, each a process of its own."""

import json
from typing import Any

import pytest
from tests.conftest import ClusterFactory
from tests.system.conftest import SiteFactory

from gpuwaste.testing.cluster_process import wait_until
from gpuwaste.testing.demo.ladder import ACTOR, own_directory, with_ladder
from gpuwaste.testing.mail_server import running_mail_server
from gpuwaste.testing.running_site import Site, SiteOptions

pytestmark = [pytest.mark.cluster, pytest.mark.long, pytest.mark.timeout(1200)]  # minutes of idleness

RULE = """mode = "act"
where = "ledger.idle_s >= 20.0"
since = "ledger.idle_s"
approve = "none"
valid = "1h"

[[do]]
after = "20s"
action = "notify"
subject = "Job {job.id}: its GPUs are idle"
text = "Idle for {ledger.idle_s}."

[[do]]
after = "50s"
action = "cancel"
"""


def listed(site: Site, *words: str) -> Any:
    """Return what a command prints as JSON for root."""
    return json.loads(site.gpuwaste(*words, "--json", user="root", check=False).stdout or "{}")


def test_a_keep_stops_a_cancel_then_the_job_is_warned_anew_and_the_replay_counts_it(
    make_cluster: ClusterFactory, make_site: SiteFactory
) -> None:
    """Warned, kept for minutes of idleness, warned again, cancelled; one hit of the replay came during the keep."""
    cluster = make_cluster()
    rules = cluster.directory / "rules.d"
    rules.mkdir(mode=0o755)
    with running_mail_server() as mail:
        directory = own_directory(cluster.directory / "actor")
        site = make_site(cluster, with_ladder(SiteOptions(sacct_every_s=1.0), rules, mail, directory))
        site.start_hub()
        for node in ("gpu1", "gpu2"):
            site.start_agent(node)
        cluster.run(["sacctmgr", "-i", "add", "user", ACTOR, "account=root", "adminlevel=Operator"], check=False)
        site.start_actor(ACTOR)
        job = site.submit("alice", "--phase 5:60 --phase 1200:0", gres="gpu:a100:1", job_name="idle", time=30)
        (rules / "idle.toml").write_text(RULE, encoding="utf-8")

        def why() -> str:
            return site.gpuwaste("rules", "explain", "idle", "-j", str(job), user="root", check=False).stdout

        wait_until(lambda: len(mail.received) == 1, 240, "the warning", why, poll_s=1.0)
        text = mail.received[0].message.get_payload()
        assert f"gpuwaste keep {job} --for 4h --reason" in str(text)
        kept = site.gpuwaste("keep", str(job), "--for", "290s", "--reason", "it waits for data", user="alice")
        assert "rules wait until" in kept.stdout
        wait_until(lambda: "kept until" in why(), 60, "the rule to wait", why, poll_s=1.0)
        (row,) = listed(site, "keep")["keeps"]
        assert (row["asked_by"], row["reason"]) == ("alice", "it waits for data")

        def rung() -> list[str]:
            return [one["kind"] for one in listed(site, "rules", "actions")["actions"] if one["status"] == "confirmed"]

        wait_until(lambda: len(mail.received) == 2, 600, "the second warning", why, poll_s=1.0)
        assert "cancel" not in rung(), "it was cancelled before the second warning"
        cluster.wait_job(job, "CANCELLED", 240)
        wait_until(lambda: "cancel" in rung(), 60, "the cancellation's end", lambda: str(rung()), poll_s=1.0)
        found: dict[str, Any] = {}

        def counted() -> bool:
            found.update(listed(site, "rules", "replay", "idle", "-S", "now-2hours"))
            return any(one["after_s"] == 300 and one["right"] == 1 for one in found.get("keeps", []))

        wait_until(counted, 240, "the replay to count the keep", lambda: json.dumps(found), poll_s=5.0)
    of_300 = next(one for one in found["keeps"] if one["after_s"] == 300)
    assert (of_300["hits"], of_300["avoided"], of_300["wrong"]) == (1, 1, 0)
