"""A job with a short limit on a real cluster, whose user's earlier jobs ran longer: one mail before Slurm ends it."""

import time
from typing import Any

import pytest
from tests.conftest import ClusterFactory
from tests.system.conftest import SiteFactory

from gpuwaste.testing.cluster_process import wait_until
from gpuwaste.testing.mail_server import MailServer, running_mail_server
from gpuwaste.testing.running_site import Site, SiteOptions

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(420)]  # a job that Slurm ends at its limit of two minutes

LIMIT_S = 120
EARLIER_S = LIMIT_S + 5


def keys(mail: MailServer) -> dict[str, Any]:
    """Return [notify]: mail of near limits, of jobs as short as this one."""
    return {
        "smtp_host": "127.0.0.1", "smtp_port": mail.port, "sender": "hpc@example.org", "address": "{user}@example.org",
        "dry_run": False, "zone": "UTC", "limit_mail": True, "limit_min_h": 0.01,
    }  # fmt: skip


def said(site: Site, job: int) -> list[dict[str, Any]]:
    """Return what was predicted of a job while it ran, as its owner sees it."""
    again: list[dict[str, Any]] = site.json("job", str(job), user="alice")["said_again"]
    return again


def seen(site: Site, job: int) -> bool:
    """Tell whether the hub knows that a job has ended or runs."""
    found = site.gpuwaste("job", str(job), "--json", user="alice", check=False)
    return found.returncode == 0


def test_the_owner_is_told_before_the_limit(make_cluster: ClusterFactory, make_site: SiteFactory) -> None:
    """Off by default nothing is said; switched on, alice gets one mail before Slurm ends her job, and no other later.

    The hub is killed in between. Her job's report has the chance and when it was said.
    """
    cluster = make_cluster()
    with running_mail_server() as mail:
        options = SiteOptions()
        site = make_site(cluster, options)
        hub = site.start_hub()
        where = {"partition": "cpu", "output": "/dev/null", "job_name": "train"}
        for _ in range(3):
            cluster.sbatch(f"sleep {EARLIER_S}", "alice", time="10", **where)
        time.sleep(EARLIER_S - 0.3 * LIMIT_S)  # the short job comes to the half of its limit after they have ended
        job = cluster.sbatch("sleep 600", "alice", time=str(LIMIT_S // 60), **where)
        cluster.wait_job(job, "RUNNING")
        ends = time.time() + LIMIT_S
        wait_until(lambda: seen(site, job), 60, "the job in the hub", hub.tail)
        while (left_s := ends - 0.5 * LIMIT_S + 5 - time.time()) > 0:
            time.sleep(min(10, left_s))
            assert not said(site, job), "[hub] rescore is off"  # what was said once stays

        hub.stop()
        options.hub, options.notify = {"rescore": True}, keys(mail)
        site.refresh_config()
        hub = site.start_hub()
        wait_until(lambda: bool(mail.received), 60, "alice's mail", hub.tail)
        (got,) = mail.received
        assert time.time() < ends
        assert got.to == ("alice@example.org",)
        assert str(got.message["Subject"]).startswith(f"Job {job} will probably reach its time limit at ")
        (before,) = [one for one in said(site, job) if one["moment"] == "limit"]
        assert before["limit_p"] >= 0.5
        assert abs(before["limit_at"] - ends) < 15
        shown = site.gpuwaste("job", str(job), user="alice").stdout
        assert "before the time limit" in shown
        assert "reaches its time limit at" in shown

        hub.kill()
        hub = site.start_hub()
        cluster.wait_job(job, "TIMEOUT", timeout_s=180)
        wait_until(lambda: not site.json("job", str(job), user="alice")["runs"][0]["running"], 60, "the end", hub.tail)
        assert len(said(site, job)) == len({one["moment"] for one in said(site, job)})
        assert len(mail.received) == 1
        (row,) = site.json("digest", "list", user="alice")["notices"]
        assert (row["kind"], row["status"]) == ("limit", "sent")
