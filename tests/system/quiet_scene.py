"""A site on a watched network: its four daemons, jobs with advice and every command; what was asked and sent, as JSON.

Run it as `python -m gpuwaste.testing.own_host -m tests.system.quiet_scene FILE` from the checkout.
"""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from gpuwaste.testing.cluster import LoopbackCluster, Variant
from gpuwaste.testing.cluster_process import wait_until
from gpuwaste.testing.daemon_config import free_port
from gpuwaste.testing.running_site import Site, SiteOptions
from gpuwaste.testing.simnvml import build_native
from gpuwaste.testing.submit_plugins import build_plugins
from gpuwaste.testing.watched_network import Watched, watched_network

ROOT: Final = Path(__file__).parents[2]
FIXTURES: Final = ROOT / "tests" / "fixtures"
ACTOR: Final = "dave"
OTEL: Final = (
    "env", "FASTAPI_OTEL_AUTO_CONFIGURE=true", "OTEL_EXPORTER_OTLP_ENDPOINT=http://192.0.2.9:4318",
)  # fmt: skip
"""An environment that has FastAPI send traces and metrics of whatever it serves."""
QUIET_IN: Final = (
    "CI", "TF_BUILD", "GITHUB_ACTIONS", "GITLAB_CI", "CIRCLECI", "TRAVIS", "JENKINS_URL", "CODEBUILD_BUILD_ID",
    "BUILDKITE", "TEAMCITY_VERSION", "APPVEYOR", "BITBUCKET_BUILD_NUMBER", "ORT_RUNNING_UNIT_TESTS",
    "ORT_DISABLE_TELEMETRY",
)  # fmt: skip
"""ONNX Runtime 1.31 sends nothing where one of these is set: a site has none of them, so the scene has none."""
CONTROL: Final = "import onnxruntime, sys; sys.stdin.read()"
"""ONNX Runtime as a program imports it that does not know better."""
_CONTROL_S: Final = 60.0
_LONGER: Final = 2.0
"""How much longer than the control daemons are watched."""
_COMMAND_S: Final = 300.0
_HELLO: Final = json.dumps({
    "jsonrpc": "2.0", "id": 1, "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
})  # fmt: skip
_HOST_COMMANDS: Final = {
    "version": "--version",
    "config check": "config check --config {hub}",
    "config show": "config show --config {hub}",
    "policy check": "policy check {site}/policies.d --config {hub}",
    "rules check": f"rules check {ROOT}/etc/rules.d --config {{hub}}",
    "events check": "events check --config {hub}",
    "agent status": "agent status --config {node}",
    "doctor": "doctor --config {hub}",
    "hub backup": "hub backup {own}/backup.tar --config {hub}",
    "simulate generate": "simulate generate lublin:jobs=1500,seed=3 -o {own}/log.swf",
    "simulate": "simulate run --swf {own}/log.swf --scheduler easy --config {hub}",
    "history import": "history import --swf {own}/log.swf --into {own}/log.duckdb --config {hub}",
    "history status": "history status --into {own}/log.duckdb --config {hub}",
    "analyze a log": "analyze --swf {own}/log.swf --view states --config {hub}",
    "train": "model train --swf {own}/log.swf --trials 1 --models-dir {own}/models --config {hub}",
    "evaluate": "model evaluate --swf {own}/log.swf --config {hub}",
    "policy replay": "policy replay --swf {own}/log.swf --policies {site}/policies.d --config {hub}",
    "estimate": f"estimate {FIXTURES}/estimate/torch-attention.json --config {{hub}}",
    "estimate probe": "estimate probe torch",
    "mcp": "mcp --config {hub}",
}
"""Of root, with the Python of the tests, which has all extras."""
_USER_COMMANDS: Final = {
    "report": "report",
    "job": "job {job}",
    "now": "now",
    "now since": "now --hours 1",
    "verdicts": "policy verdicts",
    "model list": "model list",
    "digest preview": "digest preview",
    "rules actions": "rules actions",
    "events list": "events list",
    "analyze": "analyze --view waits",
    "export jobstats": "export jobstats {job}",
    "predict": "predict {own}/job.sbatch",
    "plan": "plan {own}/job.sbatch",
}
"""Of alice, who has a job, but for those that are an operator's."""
_OF_OPERATORS: Final = {"rules actions", "analyze", "events list", "model list", "verdicts"}


@dataclass
class Seen:
    """What the scene saw; `commands` maps a name to exit code and the end of its output."""

    configured: list[tuple[str, int]] = field(default_factory=list)
    commands: dict[str, tuple[int, str]] = field(default_factory=dict)
    advice: str = ""
    questions: list[tuple[str, str]] = field(default_factory=list)
    packets: list[tuple[str, str, int, int]] = field(default_factory=list)
    lost: int = 0
    control_questions: list[tuple[str, str]] = field(default_factory=list)
    control_packets: list[tuple[str, str, int, int]] = field(default_factory=list)
    control_s: float = 0.0
    watched_s: float = 0.0


def main(output: Path) -> None:
    """Run all of it and write what was seen."""
    for name in QUIET_IN:
        os.environ.pop(name, None)
    with watched_network() as watched:
        control = _control(watched)
        seen = Seen(control_s=control[0], control_questions=control[1], control_packets=control[2])
        known = len(watched.dns.questions())
        before = watched.packets.counts()
        with _site() as site:
            _watch(site, seen)
            seen.configured = _configured(site)
        seen.questions = [(question.name, question.program) for question in watched.dns.questions()[known:]]
        seen.packets = [
            (where.protocol, where.address, where.port, count - before.get(where, 0))
            for where, count in watched.packets.counts().items()
            if count > before.get(where, 0)
        ]
        seen.lost = watched.packets.lost()
    output.write_text(json.dumps(vars(seen)), encoding="utf-8")


def _control(watched: Watched) -> tuple[float, list[tuple[str, str]], list[tuple[str, str, int, int]]]:
    """Import ONNX Runtime as it comes; return after how long it connected, what it asked, and where packets went."""
    began = time.monotonic()
    with subprocess.Popen([sys.executable, "-c", CONTROL], stdin=subprocess.PIPE) as program:
        with contextlib.suppress(Exception):
            wait_until(
                lambda: any(not where.local for where in watched.packets.counts()),
                _CONTROL_S, "ONNX Runtime to connect", lambda: str(watched.dns.questions()), poll_s=0.2,
            )  # fmt: skip
        took = time.monotonic() - began
        program.terminate()
    asked = [(question.name, question.program) for question in watched.dns.questions()]
    return took, asked, [(w.protocol, w.address, w.port, n) for w, n in watched.packets.counts().items()]


@contextlib.contextmanager
def _site() -> Iterator[Site]:
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gw", dir="/tmp")))
        folder.chmod(0o755)
        (folder / "own").mkdir(mode=0o755)
        plugins = str(build_plugins(out=folder / "plugins"))
        cluster = stack.enter_context(
            LoopbackCluster(folder / "c", Variant(job_submit="gpuwaste", plugin_dir=plugins), remove=True)
        )
        state = folder / "actor"
        state.mkdir(mode=0o755)
        shutil.chown(state, ACTOR, ACTOR)
        options = SiteOptions(
            interval_s=1.0,
            ship_every_s=2.0,
            sacct_every_s=1.0,
            plugin={"deadline_us": 1_000_000},
            hub={"actor_user": ACTOR, "rescore": True},
            actor={
                "actions": ["cancel"], "state_dir": str(state), "stop_file": str(state / "stop"),
                "listen": f"127.0.0.1:{free_port()}",
            },
        )  # fmt: skip
        site = Site(cluster, build_native(), options)
        stack.callback(site.stop)
        yield site


def _watch(site: Site, seen: Seen) -> None:
    """Start the daemons, run jobs and commands, and let the daemons run for a while after that."""
    cluster = site.cluster
    site.prepare()
    words = {"own": str(cluster.directory.parent / "own"), "site": str(site.directory)}
    words["hub"] = str(site.config_path("hub"))
    words["node"] = str(site.config_path(next(iter(site.nodes))))
    _install_model(site)
    site.start_hub(prefix=OTEL)
    for node in cluster.nodes:
        site.start_agent(node)
    site.start_advisor()
    cluster.run(["sacctmgr", "-i", "add", "user", ACTOR, "account=root", "adminlevel=Operator"], check=False)
    actor = site.start_actor(ACTOR)
    began = time.monotonic()
    job = site.submit("alice", "--phase 6:70", gres="gpu:1", job_name="train")
    site.wait_reported(job, 1)
    seen.advice = cluster.show_job(job)[0].get("AdminComment", "")
    words["job"] = str(job)
    cluster.wait_job(site.submit("alice", "--phase 600:70", gres="gpu:1"), "RUNNING")
    script = Path(words["own"], "job.sbatch")
    script.write_text("#!/bin/bash\n#SBATCH --gres=gpu:1 --time=10 --job-name=train\nsleep 1\n", encoding="utf-8")
    for name, line in _HOST_COMMANDS.items():
        argv = [sys.executable, "-m", "gpuwaste.cli", *line.format(**words).split()]
        seen.commands[name] = _run(argv, {**os.environ, **cluster.env()}, _HELLO + "\n" if name == "mcp" else "")
    for name, line in _USER_COMMANDS.items():
        user = "gpuwaste" if name in _OF_OPERATORS else "alice"
        done = site.gpuwaste(*line.format(**words).split(), user=user, check=False)
        seen.commands[name] = (done.returncode, (done.stdout + done.stderr)[-2000:])
    time.sleep(max(0.0, _LONGER * seen.control_s - (time.monotonic() - began)))  # as long as the control took, twice
    seen.watched_s = time.monotonic() - began
    daemons = [site.hub, site.advisor, actor, *site.agents.values()]
    ended = [str(daemon and daemon.name) for daemon in daemons if daemon is None or not daemon.alive()]
    seen.commands["daemons"] = (len(ended), str(ended))


def _install_model(site: Site) -> None:
    """Put the shipped bundle into use, so that the advisor and the hub load ONNX Runtime."""
    from gpuwaste.advice.predict.bundle import BASELINE  # noqa: PLC0415 for the daemons, not for this program

    models = site.directory / "models"
    shutil.copytree(BASELINE, models / "first")
    (models / "champion").symlink_to("first")


def _configured(site: Site) -> list[tuple[str, int]]:
    """Return the addresses at which something of the site listens: all that anybody may connect to."""
    layout = site.cluster.layout
    actor: Mapping[str, Any] = site.options.actor
    ours = [site.hub_port, site.advisor_port, *site.exporters.values(), int(actor["listen"].rpartition(":")[2])]
    nodes = [(node.address, node.port) for node in layout.nodes.values()]
    return [*(("127.0.0.1", port) for port in (*ours, *layout.ports)), *nodes]


def _run(argv: list[str], environment: dict[str, str], text: str) -> tuple[int, str]:
    done = subprocess.run(
        argv, input=text, capture_output=True, text=True, timeout=_COMMAND_S, check=False, env=environment, cwd=ROOT
    )
    return done.returncode, (done.stdout + done.stderr)[-2000:]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
