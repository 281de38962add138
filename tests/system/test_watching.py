"""A real Prometheus with the shipped rules watches a real site: boards have their data, an agent's end is told."""

import json
import pwd
import secrets
import shutil
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from tests.system.prometheus_server import Prometheus, running

from gpuwaste.testing import cluster_host
from gpuwaste.testing.cluster import LoopbackCluster, Variant
from gpuwaste.testing.cluster_process import wait_until
from gpuwaste.testing.patience import patient
from gpuwaste.testing.running_site import Site, SiteOptions
from gpuwaste.testing.simnvml import build_native
from gpuwaste.testing.submit_plugins import build_plugins

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(240)]  # Prometheus waits for a rule to hold

ROOT: Final = Path(__file__).parents[2]
BOARDS: Final = sorted((ROOT / "etc" / "grafana").glob("*.json"))
MAY_BE_EMPTY: Final = {
    "Alerts: A": "none fires on a healthy site",
    "GPUs known to be unusable: A": "none is",
    "Xid errors, by the hour: A": "there was none",
    "Busy multiprocessors: A": "these GPUs have no GPM",
    "Samples: B": "no source disagrees with another",
}


@dataclass(frozen=True)
class Watched:
    """A site with a job that holds a GPU and leaves it idle, and the Prometheus that scrapes all of it."""

    site: Site
    prometheus: Prometheus
    node: str
    job: int


@pytest.fixture(scope="module")
def watched() -> Iterator[Watched]:
    """Start a cluster with the plugin, hub, advisor and one agent; then Prometheus with the example configuration."""
    if reason := cluster_host.missing():
        pytest.skip(reason)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gw", dir="/tmp")))
        folder.chmod(0o755)
        token = folder / "token"
        token.write_text(secrets.token_hex(), encoding="ascii")
        token.chmod(0o600)
        shutil.chown(token, "gpuwaste")
        variant = Variant(job_submit="gpuwaste", plugin_dir=str(build_plugins(out=folder / "plugins")))
        cluster = stack.enter_context(LoopbackCluster(folder / "c", variant, remove=True))
        options = SiteOptions(
            interval_s=1.0, ship_every_s=2.0, sacct_every_s=1.0, plugin={"deadline_us": 1_000_000},
            hub={"metrics_accounts": True}, agent={"jobstats_metrics": True, "metrics_token_file": str(token)},
        )  # fmt: skip
        site = Site(cluster, build_native(), options)
        stack.callback(site.stop)
        site.prepare()
        site.start_hub()
        node = next(iter(site.nodes))
        site.start_agent(node)
        site.start_advisor()
        server = stack.enter_context(running(configured(folder / "prometheus", site, node, token)))
        job = site.submit("alice", "--phase 300:0", w=node, gres="gpu:1")
        cluster.wait_job(job, "RUNNING")
        # The last day is counted four times an hour and at the hub's start: by now there is something to count.
        server.wait_for('gpuwaste_hub_rows_total{result="accepted"} > 1', "the job's hours in the hub")
        assert site.hub is not None
        site.hub.stop()
        site.start_hub()
        yield Watched(site, server, node, job)


def configured(folder: Path, site: Site, node: str, token: Path) -> Path:
    """Write the shipped example with this site's addresses, and a second where it says minutes; return its path."""
    shutil.copytree(ROOT / "etc" / "prometheus", folder)
    path = folder / "prometheus.yml"
    config: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    config["global"] = {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"}
    ports = {
        "gpuwaste-agent": site.exporters[node],
        "gpuwaste-hub": site.hub_port,
        "gpuwaste-advisor": site.advisor_port,
    }
    # As the file says for a site without an actor.
    config["scrape_configs"] = [one for one in config["scrape_configs"] if one["job_name"] != "gpuwaste-actor"]
    for scrape in config["scrape_configs"]:
        (targets,) = scrape["static_configs"]
        targets["targets"] = [f"127.0.0.1:{ports.pop(scrape['job_name'])}"]
        if scrape["job_name"] == "gpuwaste-agent":
            scrape["authorization"] = {"credentials_file": str(token)}
    assert not ports
    path.write_text(yaml.safe_dump(config), encoding="utf-8")
    for rules in (folder / "rules").glob("*.yml"):
        text = rules.read_text(encoding="utf-8")
        rules.write_text(text.replace("interval: 1m", "interval: 1s").replace("interval: 5m", "interval: 1s"))
    return path


def test_all_three_are_scraped(watched: Watched) -> None:
    """Agent, hub and advisor are up under the jobs' names that the rules use."""
    for job in ("agent", "hub", "advisor"):
        watched.prometheus.wait_for(f'up{{job="gpuwaste-{job}"}} == 1', f"the {job} to be scraped")


def test_promtool_has_nothing_to_say_of_the_pages(watched: Watched) -> None:
    """`promtool check metrics` takes what the running hub and advisor serve without a remark."""
    for port in (watched.site.hub_port, watched.site.advisor_port):
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=patient(10)) as answer:
            page = answer.read()
        done = subprocess.run(["promtool", "check", "metrics"], input=page, capture_output=True, check=False)
        assert (done.returncode, done.stdout + done.stderr) == (0, b"")


def test_every_rule_is_evaluated_without_an_error(watched: Watched) -> None:
    """Each rule of each file has been evaluated on the site's own series, and Prometheus finds nothing wrong."""

    def evaluated() -> list[dict[str, Any]]:
        groups: list[dict[str, Any]] = watched.prometheus.api("rules")["groups"]
        return [rule for group in groups for rule in group["rules"]]

    wait_until(lambda: all(rule["health"] != "unknown" for rule in evaluated()), 60, "every rule to be evaluated")
    shipped = [yaml.safe_load(path.read_text()) for path in (ROOT / "etc/prometheus/rules").glob("*.yml")]
    assert len(evaluated()) == sum(len(group["rules"]) for file in shipped for group in file["groups"])
    assert [(rule["name"], rule.get("lastError")) for rule in evaluated() if rule["health"] != "ok"] == []


@pytest.mark.parametrize("path", BOARDS, ids=lambda path: path.stem)
def test_every_panel_has_its_data(watched: Watched, path: Path) -> None:
    """Each query of a board is answered without an error, as its panel asks; those that should have data do."""
    board = json.loads(path.read_text(encoding="utf-8"))
    empty: dict[str, str] = {}

    def filled() -> bool:
        empty.clear()
        for panel in board["panels"]:
            for target in panel.get("targets", ()):
                expr = target["expr"].replace("$cluster", ".*").replace("$node", watched.node)
                if not answer(watched.prometheus, expr, instant=target.get("instant", False)):
                    empty[f"{panel['title']}: {target['refId']}"] = expr
        return set(empty) <= set(MAY_BE_EMPTY)

    wait_until(filled, 90, "every panel to have data", lambda: json.dumps(empty, indent=1), poll_s=1.0)


def answer(prometheus: Prometheus, expr: str, *, instant: bool) -> list[dict[str, Any]]:
    """Ask as a panel does."""
    if instant:
        return prometheus.query(expr)
    now = time.time()
    found: list[dict[str, Any]] = prometheus.api(
        "query_range", query=expr, start=str(now - 120), end=str(now), step="5"
    )["result"]
    return found


def test_the_idle_job_is_seen_where_a_board_looks_for_it(watched: Watched) -> None:
    """The cluster's board names the job that holds a GPU at 0 percent, and the recorded figures count that GPU."""
    board = json.loads((ROOT / "etc/grafana/gpuwaste-cluster.json").read_text(encoding="utf-8"))
    (table,) = (panel for panel in board["panels"] if panel["title"].startswith("Jobs on GPUs that were idle"))
    expr = table["targets"][0]["expr"].replace("$cluster", ".*")
    watched.prometheus.wait_for(f"({expr}) == 1", "the job on an idle GPU")
    (row,) = watched.prometheus.query(expr)
    assert (row["metric"]["jobid"], row["metric"]["node"]) == (str(watched.job), watched.node)
    watched.prometheus.wait_for('cluster:gpuwaste_gpus_held:rate5m{use="idle"} > 0', "an idle GPU to be counted")


def test_jobstats_queries_find_the_job(watched: Watched) -> None:
    """The join by which jobstats asks gives the duty cycle and the memory of the job's GPU, and whose job it is."""
    joined = f"nvidia_gpu_duty_cycle and nvidia_gpu_jobId == {watched.job}"
    watched.prometheus.wait_for(joined, "jobstats' names")
    (duty,) = watched.prometheus.query(f"avg_over_time(({joined})[60s:1s])")
    assert float(duty["value"][1]) == 0
    assert watched.prometheus.query(
        f"max_over_time((nvidia_gpu_memory_total_bytes and nvidia_gpu_jobId == {watched.job})[60s:1s])"
    )
    uid = pwd.getpwnam("alice").pw_uid
    watched.prometheus.wait_for(f"nvidia_gpu_jobUid == {uid}", "the owner's uid")


def test_no_series_holds_a_users_name(watched: Watched) -> None:
    """Whatever was scraped and recorded, no label's value is the name of a user, not even with accounts told apart."""
    watched.prometheus.wait_for('gpuwaste_hub_day_gpu_seconds{account="proj1"}', "accounts to be told apart")
    for label in watched.prometheus.api("labels"):
        values = watched.prometheus.api(f"label/{label}/values")
        assert not {"alice", "bob", "carol", "dave"} & set(values), label


def test_the_end_of_an_agent_is_told(watched: Watched) -> None:
    """A stopped agent's alert is pending at once, with words in which every field is filled."""
    watched.site.agents[watched.node].stop()

    def told() -> list[dict[str, Any]]:
        alerts: list[dict[str, Any]] = watched.prometheus.api("alerts")["alerts"]
        return [alert for alert in alerts if alert["labels"]["alertname"] == "GpuwasteAgentDown"]

    wait_until(lambda: bool(told()), 30, "the alert")
    (alert,) = told()
    address = f"127.0.0.1:{watched.site.exporters[watched.node]}"
    assert alert["state"] == "pending"
    assert alert["labels"]["instance"] == address
    assert alert["annotations"]["summary"] == f"The agent on {address} does not answer."
    assert not [text for text in alert["annotations"].values() if "<error" in text or "{{" in text]
