"""The loop closed on a real cluster: agents, hub, rules, mail and actor, each a process of its own."""

import pytest
from tests.conftest import ClusterFactory
from tests.system.conftest import SiteFactory

from gpuwaste.testing.demo.ladder import climb, own_directory, with_ladder
from gpuwaste.testing.mail_server import running_mail_server
from gpuwaste.testing.running_site import SiteOptions

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(420)]  # minutes of idleness


def test_an_idle_job_goes_up_the_ladder(make_cluster: ClusterFactory, make_site: SiteFactory) -> None:
    """One rule of each mode: recorded, told, cancelled, once each; a busy job and an exempt one go on."""
    cluster = make_cluster()
    rules = cluster.directory / "rules.d"
    with running_mail_server() as mail:
        options = with_ladder(SiteOptions(sacct_every_s=1.0), rules, mail, own_directory(cluster.directory / "actor"))
        site = make_site(cluster, options)
        site.start_hub()
        for node in ("gpu1", "gpu2"):
            site.start_agent(node)
        found = climb(site, rules, mail, print)
    idle = str(found.jobs["idle"])
    assert found.states["idle"].startswith("CANCELLED")
    assert (found.states["busy"], found.states["exempt"]) == ("RUNNING", "RUNNING")
    assert {(one["rule"], one["action"], one["done"], one["user"]) for one in found.fired} == {
        ("1-observe", "cancel", False, "alice"),
        ("2-notify", "notify", True, "alice"),
        ("3-act", "cancel", True, "alice"),
    }
    assert len(found.fired) == 3
    assert [(one["kind"], one["rule"], one["status"], str(one["jobid"])) for one in found.actions] == [
        ("cancel", "3-act", "confirmed", idle),
        ("notify", "2-notify", "confirmed", idle),
    ]
    assert [one.to for one in found.mails] == [("alice@example.org",)]
    assert str(found.mails[0].message["Subject"]) == f"Job {idle}: its GPUs are idle"
