"""The demo's last part: jobs that hold memory keep GPUs from others that wait; the balance of the cluster."""

import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from gpuwaste.testing.cluster_process import wait_until
from gpuwaste.testing.demo.checks import DemoCheck
from gpuwaste.testing.demo.story import Story
from gpuwaste.testing.running_site import Site

_WAITERS: Final = 4
_CHART: Final = "Kept from jobs that wait, by job"
_KNOWN_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class _MemoryJob:
    """A job with one GPU; a node of the demo has 64,000 MB."""

    name: str
    user: str
    load: str
    memory_mb: int


_HOG: Final = _MemoryJob("hog", "bob", "--phase 20:85", 40_000)
_MODEST: Final = _MemoryJob("modest", "carol", "--phase 20:85", 2_000)
_WAITER: Final = _MemoryJob("big-memory", "alice", "--phase 2:85", 30_000)


@dataclass(frozen=True, slots=True)
class Balanced:
    """What was shown, by the command and its user, and what it is held against."""

    shown: Mapping[str, str]
    checks: tuple[DemoCheck, ...]


def balance_of(site: Site, story: Story, say: Callable[[str], None]) -> Balanced:
    """Let one job on each node hold most of its memory while others wait for some, and show the cluster's balance."""
    nodes = [name for name, node in site.cluster.nodes.items() if node.minors]
    hogs = [_submit(site, _HOG, node) for node in nodes]
    modest = _submit(site, _MODEST, nodes[0])
    for job in (*hogs, modest):
        site.cluster.wait_job(job, "RUNNING")
    say(f"{len(hogs)} jobs with one GPU each hold most of the memory; {_WAITERS} jobs wait for memory beside free GPUs")
    waiters = [_submit(site, _WAITER) for _ in range(_WAITERS)]
    for job in (*hogs, modest, *waiters):
        site.cluster.wait_accounted(job, 120)
    seen: dict[str, Any] = {}

    def known() -> bool:
        seen.update(_document(site, story))
        return _named(seen) >= set(hogs)

    wait_until(known, _KNOWN_S, "the jobs that kept GPUs in the balance", lambda: json.dumps(seen)[:2000], poll_s=1.0)
    words = ["analyze", "--view", "balance", "-S", f"@{int(story.started)}"]
    text = site.gpuwaste(*words, user="root").stdout
    gpus = sum(len(node.minors) for node in site.cluster.nodes.values())
    looked = _look(site)
    shown = {"alice$ gpuwaste look -S now-2hours": looked, f"root$ gpuwaste {' '.join(words)}": text}
    return Balanced(shown, (*_checks(seen, gpus, hogs, modest), _look_check(looked, story)))


def _look(site: Site) -> str:
    """Let alice look, without the hub, and return what it printed."""
    home = site.cluster.directory / "home" / "alice"
    argv = ["env", "-C", str(home), *site.runtime.command("look", "-S", "now-2hours")]
    return site.cluster.run(argv, "alice", env=site.runtime.env, timeout_s=120).stdout


def _look_check(text: str, story: Story) -> DemoCheck:
    words = " ".join(text.split())
    found = re.search(r"Jobs of all users: (\d+)", words)
    said = "no jobs" if found is None else f"{found[1]} jobs of all users"
    enough = found is not None and int(found[1]) >= len(story.jobs)
    return DemoCheck(
        "gpuwaste look by alice, without the hub",
        f"{len(story.jobs)} jobs and more",
        said if "GPU-hours of the machine" in words else f"{said}, no balance",
        enough and "GPU-hours of the machine" in words,
    )


def _submit(site: Site, job: _MemoryJob, node: str = "") -> int:
    on_node = {"w": node} if node else {}
    return site.submit(
        job.user, job.load, gres="gpu:a100:1", job_name=job.name, mem=f"{job.memory_mb}M", time=5, **on_node
    )


def _document(site: Site, story: Story) -> dict[str, Any]:
    answer = site.gpuwaste(
        "analyze", "--view", "balance", "-S", f"@{int(story.started)}", "-E", f"@{int(time.time())}", "--json",
        user="root",
    )  # fmt: skip
    document: dict[str, Any] = json.loads(answer.stdout)
    return document


def _named(document: Mapping[str, Any]) -> set[int]:
    """Return the jobs that the balance names as in the way of others."""
    charts = [chart for chart in document.get("charts", ()) if chart["title"] == _CHART]
    return {int(name.split()[0]) for chart in charts for name in chart["x"]["categories"]}


def _checks(document: Mapping[str, Any], gpus: int, hogs: list[int], modest: int) -> list[DemoCheck]:
    seconds = document["end"] - document["start"]
    said = round(sum(row[2] for row in document["rows"]) * 3600)
    named = _named(document)
    return [
        DemoCheck(
            "the balance adds up",
            f"{gpus} GPUs x {seconds} s = {gpus * seconds:,} GPU-seconds",
            f"{said:,} GPU-seconds",
            said == gpus * seconds,
        ),
        DemoCheck(
            "jobs that keep GPUs by memory",
            f"{len(hogs)} jobs named hog",
            f"{len(named & set(hogs))} of them named",
            set(hogs) <= named,
        ),
        DemoCheck(
            "other jobs beside them",
            "none is named",
            "none" if named <= set(hogs) else ", ".join(map(str, sorted(named - set(hogs)))),
            modest not in named and named <= set(hogs),
        ),
    ]
