"""Who may see whose jobs, at a site with PrivateData=jobs: a stranger cannot even tell that a job exists."""

import http.client
import random
import re
import shutil
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.system.asking import ended_job

from gpuwaste.net.request_signing import request_digest
from gpuwaste.testing import cluster_host
from gpuwaste.testing.cluster import LoopbackCluster, Variant
from gpuwaste.testing.patience import patient
from gpuwaste.testing.running_site import Site, SiteOptions

pytestmark = [pytest.mark.core, pytest.mark.cluster]

NOBODY = 4_000_000  # a job id that was never given
PREFIX = f"p{random.SystemRandom().randrange(1000)}"  # node names of its own: other clusters may run beside it


@dataclass(frozen=True)
class Private:
    """The site, alice's job in proj1 and dave's job without an account."""

    site: Site
    alice: int
    dave: int


@pytest.fixture(scope="module")
def private(native: Path) -> Iterator[Private]:
    """Start a cluster that hides jobs from other users, a hub and an agent; let two jobs run to their end."""
    if reason := cluster_host.missing():
        pytest.skip(reason)
    directory = Path("/tmp") / f"gw{PREFIX}"  # noqa: S108 - a short path, for the Unix sockets below it
    variant = Variant(private_data=True, node_prefix=PREFIX)
    options = SiteOptions(interval_s=1.0, ship_every_s=2.0, sacct_every_s=1.0)
    with LoopbackCluster(directory, variant, remove=True) as cluster:
        site = Site(cluster, native, options)
        site.prepare()
        node = next(iter(site.nodes))
        site.start_hub()
        site.start_agent(node)
        alice = site.submit("alice", "--phase 4:70", w=node, gres="gpu:1", job_name="secret-name")
        dave = site.submit("dave", "--phase 4:70", w=node, gres="gpu:1")
        cluster.wait_job(alice, "RUNNING")
        with urllib.request.urlopen(f"http://127.0.0.1:{site.exporters[node]}/metrics", timeout=patient(10)) as answer:
            metrics = answer.read().decode()
        assert "alice" not in metrics
        assert "secret-name" not in metrics
        for job in (alice, dave):
            cluster.wait_accounted(job)
            ended_job(site, job, 1)
        yield Private(site, alice, dave)
        site.stop()
    shutil.rmtree(directory, ignore_errors=True)


def _credential(site: Site, user: str, target: str) -> str:
    digest = request_digest("GET", target, b"")
    argv = ["munge", "-S", str(site.cluster.munge_socket), "-s", digest]
    return "Munge " + site.cluster.run(argv, user).stdout.strip()


def _send(site: Site, target: str, authorization: str) -> tuple[int, list[tuple[str, str]], bytes]:
    """Return status, headers but the date, and body of an answer."""
    connection = http.client.HTTPConnection("127.0.0.1", site.hub_port, timeout=patient(10))
    try:
        connection.request("GET", target, headers={"Authorization": authorization} if authorization else {})
        answer = connection.getresponse()
        headers = [(name, value) for name, value in answer.getheaders() if name.lower() != "date"]
        return answer.status, headers, answer.read()
    finally:
        connection.close()


def _ask(site: Site, user: str, target: str) -> tuple[int, list[tuple[str, str]], bytes]:
    return _send(site, target, _credential(site, user, target))


@pytest.mark.parametrize(
    ("asked", "like"),
    [
        ("/v1/jobs/{alice}", f"/v1/jobs/{NOBODY}"),
        ("/v1/jobs/{alice}?user=alice", f"/v1/jobs/{NOBODY}?user=alice"),
        ("/v1/report?user=alice", "/v1/report?user=nobody-of-this-name"),
        ("/v1/report?account=proj1", "/v1/report?account=no-such-account"),
        ("/v1/report?cluster=gw", "/v1/report?cluster=no-such-cluster"),
        ("/v1/map?node={node}", "/v1/map?node=no-such-node"),
        ("/v1/map?node={node}&job={alice}", f"/v1/map?node=no-such-node&job={NOBODY}"),
    ],
)
def test_bob_cannot_tell_a_foreign_job_from_none(private: Private, asked: str, like: str) -> None:
    """What is alice's is answered byte for byte as what does not exist, headers included."""
    target = asked.format(alice=private.alice, node=next(iter(private.site.nodes)))
    status, headers, body = _ask(private.site, "bob", target)
    assert status == 404
    assert (status, headers, body) == _ask(private.site, "bob", like)


def test_alices_captured_credential_tells_bob_nothing(private: Private) -> None:
    """A credential that was used, or was made for another question, gets the same for her job and for none."""
    site = private.site
    hers, none = f"/v1/jobs/{private.alice}", f"/v1/jobs/{NOBODY}"
    used = _credential(site, "alice", hers)
    assert _send(site, hers, used)[0] == 200
    replayed = _send(site, hers, used)
    assert replayed[0] == 401
    assert replayed == _send(site, none, used)
    for_another = (_send(site, target, _credential(site, "alice", "/v1/top")) for target in (hers, none))
    assert len({str(answer) for answer in for_another}) == 1
    assert _send(site, hers, "") == _send(site, none, "")
    assert _send(site, hers, "Munge MUNGE:AAAA:") == _send(site, none, "Munge MUNGE:AAAA:")


def test_bobs_commands_say_the_same_of_a_foreign_job(private: Private) -> None:
    """`gpuwaste job` and `report --user` end alike for her and for nobody, and name nothing of hers."""
    site = private.site
    foreign = site.gpuwaste("job", str(private.alice), user="bob", check=False)
    absent = site.gpuwaste("job", str(NOBODY), user="bob", check=False)
    assert foreign.returncode == absent.returncode == 3
    assert foreign.stdout == absent.stdout == ""
    assert foreign.stderr.replace(str(private.alice), "JOB") == absent.stderr.replace(str(NOBODY), "JOB")
    hers = site.gpuwaste("report", "--user", "alice", user="bob", check=False)
    nobodys = site.gpuwaste("report", "--user", "nobody", user="bob", check=False)
    assert (hers.returncode, hers.stdout) == (nobodys.returncode, nobodys.stdout)
    assert hers.stderr.replace("alice", "USER") == nobodys.stderr.replace("nobody", "USER")
    assert str(private.alice) not in site.gpuwaste("report", user="bob", check=False).stdout


def test_each_role_sees_what_is_its_own(private: Private) -> None:
    """Alice sees hers, coordinator carol proj1's and no others, the operator all, dave his own."""
    site = private.site
    seen = {
        user: {job for job in (private.alice, private.dave) if _ask(site, user, f"/v1/jobs/{job}")[0] == 200}
        for user in ("alice", "bob", "carol", "dave", "gpuwaste")
    }
    everything = {private.alice, private.dave}
    assert seen == {
        "alice": {private.alice},
        "bob": set(),
        "carol": {private.alice},
        "dave": {private.dave},
        "gpuwaste": everything,
    }
    assert site.json("report", "--accounts", "proj1", user="carol")["job_count"] == 1
    assert site.json("report", "--allusers", user="gpuwaste")["job_count"] == 2


def test_a_user_without_accounting_gets_a_clear_answer(private: Private) -> None:
    """Dave, whom no account knows, reads his own job; for another's name he is told plainly that there is nothing."""
    site = private.site
    assert site.json("report", user="dave")["job_count"] == 1
    refused = site.gpuwaste("report", "--user", "alice", user="dave", check=False)
    assert refused.returncode == 3
    assert len(refused.stderr.strip().splitlines()) == 1
    assert "Traceback" not in refused.stderr


def test_doctor_proves_operator_rights_on_another_users_job(private: Private) -> None:
    """With PrivateData, gpuwaste sees alice's job and says so; bob is told that he sees none, and what would help."""
    site = private.site
    job = site.cluster.sbatch("sleep 60", "alice", gres="gpu:1")
    site.cluster.wait_job(job, "RUNNING")
    try:
        node = next(iter(site.nodes))
        proof = _doctor(site, "gpuwaste", node)
        assert any(line.startswith("ok") and "rights" in line and "alice" in line for line in proof), proof
        lack = _doctor(site, "bob", node)
        assert any(line.startswith("fail") and "rights" in line and "adminlevel=Operator" in line for line in lack), (
            lack
        )
        assert not any("alice" in line for line in lack)
    finally:
        site.cluster.run(["scancel", str(job)])


def _doctor(site: Site, user: str, node: str) -> list[str]:
    argv = site.runtime.command("doctor", "--role", "agent", "--config", str(site.config_path(node)))
    return site.cluster.run(argv, user, node=node, env=site.runtime.env, check=False).stdout.splitlines()


def test_look_says_whose_jobs_a_user_sees(private: Private) -> None:
    """Sacct leaves out others' jobs without an error: alice is told that only hers are read, the operator reads all."""
    site = private.site
    found = {}
    for user in ("alice", "gpuwaste"):
        folder = site.cluster.directory / "home" / user / "look"
        done = site.cluster.run(
            site.runtime.command("look", "-S", "now-1days", "-o", str(folder)),
            user,
            env=site.runtime.env,
            timeout_s=120,
        )
        found[user] = " ".join(done.stdout.split())
    hidden = r"Slurm hides jobs of others \(PrivateData\); an operator who runs the same"
    assert re.search(rf"Jobs of one user only, alice: \d\. {hidden}", found["alice"]), found["alice"]
    assert "dave" not in found["alice"]
    assert re.search(r"Jobs of all users: \d jobs of 2 users", found["gpuwaste"]), found["gpuwaste"]
