"""Agents and hub killed at twenty drawn moments: every GPU of every run is in the hub once, with what it really did."""

import json
import os
import random
import re
import time
import urllib.request
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.system.conftest import SiteFactory

from gpuwaste.core.errors import GpuwasteError
from gpuwaste.testing.cluster import LoopbackCluster
from gpuwaste.testing.cluster_process import wait_until
from gpuwaste.testing.fault_proxy import Fault, FaultProxy, Place, ProxiedRequest, is_hours
from gpuwaste.testing.patience import patient
from gpuwaste.testing.running_site import Site
from gpuwaste.testing.truth import Key, TruthSpan, compare, held_gpus, hub_rows

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(480)]  # twenty kills, and what follows each

INTERVAL_S = 1.0
# An agent ships every two seconds while a job runs whose start it knows, and backs off while the hub is away; it asks
# again for a start that nobody told after half a minute.
BATCH_S = 45.0
_HOLDER = "gpuwaste_gpu_job_info"
MOMENTS = {  # how often each kind is drawn: twenty in all
    "agent, at any time": 3,
    "agent, after the hub's commit, its answer unread": 4,
    "hub, in the middle of a request": 3,
    "hub, with the whole request, before or while it commits": 3,
    "hub, after its commit, its answer lost": 4,
    "hub, at any time": 1,
    "agent and hub": 2,
}


@dataclass
class Story:
    """A site behind the proxy, and for how long each node had no agent."""

    site: Site
    proxy: FaultProxy
    draw: random.Random
    outages: dict[str, list[TruthSpan]] = field(default_factory=lambda: defaultdict(list))
    jobs: list[int] = field(default_factory=list)

    def kill_agent(self, node: str) -> float:
        """Kill a node's agent and return when."""
        began = time.time()
        self.site.agents[node].kill()
        return began

    def kill_hub(self) -> None:
        """Kill the hub."""
        assert self.site.hub
        self.site.hub.kill()

    def restart_agent(self, node: str, began: float) -> None:
        """Start a node's agent again, a moment later, and note its outage."""
        time.sleep(self.draw.uniform(0, 1.0))  # for how long it stays away
        self.site.start_agent(node)
        self.outages[node].append(TruthSpan(began, time.time()))


def _agent_any_time(story: Story, node: str) -> None:
    time.sleep(story.draw.uniform(0, 1.5))
    story.restart_agent(node, story.kill_agent(node))


def _agent_before_ack(story: Story, node: str) -> None:
    began: list[float] = []
    _strike(story, node, Place.ANSWER, lambda: began.append(story.kill_agent(node)))
    story.restart_agent(node, began[0])


def _hub_mid_request(story: Story, node: str) -> None:
    _strike(story, node, Place.REQUEST_PART, story.kill_hub, body_bytes=story.draw.randrange(600))
    story.site.start_hub()


def _hub_with_request(story: Story, node: str) -> None:
    wait_s = story.draw.choice([0, 0.003, 0.01, 0.03])

    def kill() -> None:
        time.sleep(wait_s)  # into its work: reading, committing or just done
        story.kill_hub()

    _strike(story, node, Place.REQUEST, kill)
    story.site.start_hub()


def _hub_after_commit(story: Story, node: str) -> None:
    _strike(story, node, Place.ANSWER, story.kill_hub)
    story.site.start_hub()


def _hub_any_time(story: Story, _: str) -> None:
    time.sleep(story.draw.uniform(0, 1.5))
    story.kill_hub()
    story.site.start_hub()


def _both(story: Story, node: str) -> None:
    began: list[float] = []

    def kill() -> None:
        began.append(story.kill_agent(node))
        story.kill_hub()

    _strike(story, node, Place.ANSWER, kill)
    story.site.start_hub()
    story.restart_agent(node, began[0])


ACTS: dict[str, Callable[[Story, str], None]] = dict(
    zip(
        MOMENTS,
        (
            _agent_any_time,
            _agent_before_ack,
            _hub_mid_request,
            _hub_with_request,
            _hub_after_commit,
            _hub_any_time,
            _both,
        ),
        strict=True,
    )
)


def _strike(story: Story, node: str, place: Place, action: Callable[[], object], body_bytes: int = 0) -> None:
    """Let the next batch of a node break off at a place, with a kill there."""

    def hours_of_node(request: ProxiedRequest) -> bool:
        return is_hours(request) and request.node == node

    story.proxy.arm(Fault(place, action, hours_of_node, body_bytes)).wait(BATCH_S)


@pytest.fixture
def story(cluster: LoopbackCluster, make_site: SiteFactory) -> Iterator[Story]:
    seed = int(os.environ.get("GPUWASTE_TEST_SEED") or random.SystemRandom().randrange(1_000_000))
    print(f"kill -9: moments and jobs drawn from seed {seed}")  # noqa: T201 - pytest shows it when a test fails
    site = make_site(cluster)
    with FaultProxy(("127.0.0.1", site.hub_port)) as proxy:
        site.hub_front_port = proxy.port
        site.refresh_config()
        site.start_hub()
        for node in site.nodes:
            site.start_agent(node)
        yield Story(site, proxy, random.Random(seed))


def _keep_busy(story: Story) -> None:
    """Submit another generation where no job waits: jobs end and start inside and outside of outages."""
    if story.site.cluster.run(["squeue", "-h", "-t", "PENDING"]).stdout.strip():
        return
    site, draw = story.site, story.draw
    levels = [12, 20, 40, 55, 70, 85, 100]

    def plan(gpus: int, seconds: int) -> str:
        level = draw.sample(levels, gpus)
        return "--per-gpu '" + ";".join(f"{i}={seconds}:{level[i]}" for i in range(gpus)) + "'"

    for gpus, seconds, array in ((4, 13, ""), (2, 19, ""), (1, 11, "0-1"), (3, 16, "")):
        options: dict[str, str | int | bool] = {"gres": f"gpu:{gpus}", **({"array": array} if array else {})}
        user = draw.choice(["alice", "bob", "carol"])
        story.jobs.append(site.submit(user, plan(gpus, seconds), **options))
    both = "srun " + site.load(plan(1, 17))
    story.jobs.append(site.cluster.sbatch(both, "alice", N=2, gres="gpu:1", output="/dev/null"))


def _metric(site: Site, node: str, name: str) -> list[float]:
    with urllib.request.urlopen(f"http://127.0.0.1:{site.exporters[node]}/metrics", timeout=patient(10)) as answer:
        lines = answer.read().decode().splitlines()
    return [float(line.rpartition(" ")[2]) for line in lines if line.startswith((f"{name} ", f"{name}{{"))]


def _end_jobs(story: Story) -> None:
    """Cancel what waits, and what runs once the agents have seen it: of a job shorter than a tick no agent knows."""
    cluster = story.site.cluster
    cluster.run(["scancel", "--state=PENDING", *map(str, story.jobs)], check=False)

    def seen() -> bool:
        return all(_allocated(story, node) == len(_metric(story.site, node, _HOLDER)) for node in story.site.nodes)

    wait_until(seen, 60, "agents to have seen every running job", poll_s=0.5)
    cluster.cancel_jobs()
    for job in story.jobs:
        cluster.wait_accounted(job)


def _allocated(story: Story, node: str) -> int:
    """Return how many GPUs of a node slurmctld has given to jobs."""
    shown = story.site.cluster.run(["scontrol", "show", "node", "-o", node]).stdout
    found = re.search(r" AllocTRES=\S*gres/gpu=(\d+)", shown)
    return int(found[1]) if found else 0


def _known(story: Story, held: dict[Key, TruthSpan]) -> dict[Key, TruthSpan]:
    """Return the GPUs but for those of runs that began and ended while their node had no agent: no agent knows them.

    An agent that has just started has to look once, and one that is killed may have looked a tick before.
    """

    def missed(node: str, run: TruthSpan) -> bool:
        gone = story.outages[node]
        return any(o.began - 2 * INTERVAL_S <= run.began and run.ended <= o.ended + 2 * INTERVAL_S for o in gone)

    return {key: span for key, span in held.items() if not missed(key[2], span)}


def _settle(story: Story, held: dict[Key, TruthSpan]) -> None:
    """Wait until the agents hold nothing back and the hub has every end."""
    site = story.site
    client = site.as_root()
    missing: list[str] = []

    def settled() -> bool:
        missing[:] = [
            f"{node} {name}"
            for node in site.nodes
            for name, done in (("gpuwaste_agent_outbox_rows", [0.0]), (_HOLDER, []))
            if _metric(site, node, name) != done
        ]
        for job in {key[0] for key in held} if not missing else ():
            wanted = {key[2:] for key in held if key[0] == job}
            try:
                runs = client.get(f"/v1/jobs/{job}")["runs"]
            except GpuwasteError as error:
                missing.append(f"{job}: {error}")
                continue
            devices = [device for run in runs if run["raw_id"] == job for device in run["devices"]]
            missing.extend(f"{job} {gpu}" for gpu in wanted - {(d["node"], d["gpu_uuid"]) for d in devices})
            missing.extend(f"{job} {d['node']} does not add up: {d}" for d in devices if not _adds_up(d))
        return not missing

    def detail() -> str:
        logs = [site.agents[node].tail(40) for node in site.nodes]
        return "\n".join([*missing, *(f"{key} {span}" for key, span in held.items()), *logs, str(story.outages)])

    wait_until(settled, 90, "agents and hub to have settled", detail, poll_s=0.5)


def _adds_up(device: dict[str, Any]) -> bool:
    classes = ("idle", "low", "moderate", "high", "suspended", "pending", "unknown")
    return bool(abs(sum(device[f"{name}_s"] for name in classes) - device["gpu_s"]) < 0.001)


def test_after_twenty_kills_every_gpu_is_there_once_with_what_it_did(story: Story) -> None:
    """The hub's rows are exactly sacct's job, node and GPU set, and equal the load programs' logs outside outages."""
    site = story.site
    began = time.time()
    _keep_busy(story)
    site.cluster.wait_job(story.jobs[0], "RUNNING", 30)
    moments = [kind for kind, count in MOMENTS.items() for _ in range(count)]
    story.draw.shuffle(moments)
    for kind in moments:
        node = story.draw.choice(list(site.nodes))
        _keep_busy(story)
        print(f"{time.time() - began:5.1f} s {kind} ({node})")  # noqa: T201 - pytest shows it when a test fails
        ACTS[kind](story, node)
    _end_jobs(story)
    held = held_gpus(site, began - 1)
    known = _known(story, held)
    assert len(known) >= len(held) / 2, "agents were away for too long to show anything"
    _settle(story, known)
    site.stop()
    rows = hub_rows(site.directory / "hub" / "hub.duckdb")
    print(json.dumps({n: [[s.began - began, s.ended - began] for s in o] for n, o in story.outages.items()}))  # noqa: T201
    assert set(known) <= set(rows) <= set(held)
    assert [key for key, row in rows.items() if not row.final] == []
    events = site.oracle()
    wrong = [
        text
        for key, span in held.items()
        if key in rows
        for text in compare(key, span, rows[key], events, story.outages, edge_s=INTERVAL_S)
    ]
    assert not wrong, "\n".join(wrong)
