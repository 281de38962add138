"""Which job held which GPU: layouts drawn at random on a real cluster, probes beside them, and a judge.

The truth is what Slurm's own prolog and epilog wrote down (DIRECTORY/sim/NODE/gres.log). Each sample of each probe is
right (on a job that held the GPU), unknown (held, and not attributed) or wrong (on a job that did not hold it).
"""

import json
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from gpuwaste.slurm.formats.gpu_positions import parse_positions
from gpuwaste.testing.cluster import ClusterError, LoopbackCluster, ManagedProcess
from gpuwaste.testing.cluster_gpus import node_gpus, pci_devices_of
from gpuwaste.testing.cluster_process import wait_until
from gpuwaste.testing.simnvml import SimNode, build_native, library_env, make_gpus

MODES: Final = ("full", "bare")
"""Probes: with the prolog's files and without them."""
_INTERVAL_S: Final = 0.5
_LATE_S: Final = 0.5  # from the epilog's note to the moment at which its file can be seen
_NODES: Final = ("gpu1", "gpu2")


@dataclass(frozen=True, slots=True)
class Hold:
    """A GPU that Slurm gave a job, UTC seconds; `t1` is infinite while it stands."""

    node: str
    uuid: str
    job_id: int
    t0: float
    t1: float


class Field:
    """A cluster with simulated GPUs, probes on its GPU nodes, and jobs that use what they were given."""

    def __init__(self, cluster: LoopbackCluster, seed: int) -> None:
        self.cluster = cluster
        self.rng = random.Random(seed)  # noqa: S311 a drawn layout is a test's input
        self.prefix = cluster.variant.node_prefix
        self.nodes = tuple(self.prefix + name for name in _NODES)
        build = build_native()
        self._load = str(build / "gpuwaste-load")
        self._library = library_env(build)
        self._dir = cluster.directory / "field"
        self._dir.mkdir(mode=0o777, exist_ok=True)
        self._dir.chmod(0o777)
        self.uuids: dict[str, dict[int, str]] = {}  # node -> minor -> uuid
        self._sims: dict[str, SimNode] = {}
        for node in self.nodes:
            minors = list(cluster.nodes[node].minors)
            self.rng.shuffle(minors)  # NVML's order is another one than that of gres.conf and that of the minors
            gpus = make_gpus(minors)
            self.rng.shuffle(gpus)
            gpus = node_gpus(gpus, cluster.nodes[node])
            sim = SimNode.create(self._dir / f"nvml-{node}", gpus)
            self._sims[node] = sim
            self.uuids[node] = {gpu.minor: gpu.uuid for gpu in gpus}
            logs = self._dir / "load"
            logs.mkdir(exist_ok=True)
            logs.chmod(0o1777)
            cluster.set_node_env(node, **sim.env, GPUWASTE_SIM_LOG=str(logs))
            (self._dir / f"none-{node}").mkdir(exist_ok=True)
        self.began = time.time()
        self._whole: dict[tuple[str, int], list[int]] = {}
        self._second: dict[str, list[tuple[float, int, list[int]]]] = {}

    def log(self, node: str, mode: str) -> Path:
        """Return a probe's log."""
        return self._dir / f"{node}-{mode}.jsonl"

    def probe(self, node: str, mode: str) -> ManagedProcess:
        """Start a probe; started again, it goes on in the same log."""
        place = self.cluster.nodes[node]
        jobs_dir = place.jobs_dir if mode == "full" else self._dir / f"none-{node}"
        words = [node, str(self.log(node, mode)), str(_INTERVAL_S), str(place.spool_dir), str(jobs_dir)]
        words += [name for name, gpus in (("amd", place.amd), ("intel", place.intel)) if gpus]
        ready = self.log(node, mode).stat().st_size if self.log(node, mode).exists() else 0
        process = self.cluster.spawn(
            [sys.executable, "-m", "gpuwaste.testing.attribution_probe", *words],
            node=node,
            env={**self._library, **self.cluster.env(node)},
            name=f"probe-{node}-{mode}-{time.monotonic_ns()}",
            before=pci_devices_of(place, self._sims[node]),
        )
        process.wait_for(lambda: self.log(node, mode).exists() and self.log(node, mode).stat().st_size > ready)
        return process

    def load(self, seconds: float, *options: str) -> str:
        """Return a shell command that uses the job's GPUs."""
        return " ".join([self._load, "--phase", f"{seconds}:{self.rng.randrange(1, 101)}", *options])

    def submit(self, label: str, script: str, user: str = "alice", **options: str | int | bool) -> int:
        """Submit a job under a label."""
        return self.cluster.sbatch(script, user, job_name=label, **options)

    def submit_layouts(self, only: Container[str] | None = None) -> dict[str, int]:
        """Submit one job, or one array, of each kind, in a drawn order, or of some kinds; return one job id of each."""
        jobs: dict[str, Callable[[str], int]] = {
            "array": lambda name: self.submit(name, self.load(3), gres="gpu:1", array="0-2"),
            "het": self._het,
            "multi-node": lambda name: self.submit(name, f"srun {self.load(4)}", N=2, gres="gpu:1"),
            "one-node-of-two": lambda name: self.submit(name, self.load(4), N=2, gres="gpu:1"),
            "gpus": lambda name: self.submit(name, self.load(4), gpus=3, N=1),
            "gpus-per-node": lambda name: self.submit(name, self.load(3), gpus_per_node=2),
            "untouched": lambda name: self.submit(name, "sleep 4", gres="gpu:1"),
            "short": lambda name: self.submit(name, self.load(0.3), gres="gpu:2"),
            "steps": lambda name: self.submit(name, f"srun {self.load(1)}; sleep 1; srun {self.load(1)}", gres="gpu:2"),
            "cpu-only": lambda name: self.submit(name, "sleep 3"),
            "requeue": lambda name: self.submit(name, self.load(4), gres="gpu:1", requeue=True),
            "suspend": lambda name: self.submit(name, self.load(6), gres="gpu:1"),
        }
        if self.cluster.variant.shards:
            for name in ("shards-1", "shards-2", "shards-3"):
                jobs[name] = lambda name: self.submit(name, self.load(4), gres=f"shard:{self.rng.randrange(1, 4)}")
        names = [name for name in jobs if only is None or name in only]
        self.rng.shuffle(names)
        return {name: jobs[name](name) for name in names}

    def _het(self, name: str) -> int:
        script = f"#!/bin/bash\n{self.load(4)}\n"
        argv = ["sbatch", "--parsable", "-J", name, "--gres=gpu:1", ":", "-J", name, "--gres=gpu:2"]
        return int(self.cluster.run(argv, "alice", stdin=script).stdout.split(";")[0])

    def submit_stray(self) -> None:
        """Submit a job that works on a GPU of another job instead of its own, and that other job: nothing else may run.

        What their GPUs did is nobody's: the stray hides its own idle GPU and makes another's busy.
        """
        minors = " ".join(str(minor) for minor in self.uuids[self.nodes[0]])
        pick = f"for m in {minors}; do case ,$GPUWASTE_SIM_MINORS, in *,$m,*) ;; *) other=$m;; esac; done"
        self.submit("victim", self.load(4), gres="gpu:3", nodelist=self.nodes[0])
        script = f"{pick}; {self._load} --gpus $other --phase 3:70"
        self.submit("stray", script, gres="gpu:1", nodelist=self.nodes[0])

    def salloc(self) -> ManagedProcess:
        """Hold a GPU from outside: no batch step, a while without any step."""
        command = f"sleep 1.5; srun {self.load(1.5)}; sleep 1.5; srun {self.load(1)}"
        argv = ["salloc", "-J", "salloc", "--gres=gpu:1", "bash", "-c", command]
        return self.cluster.spawn(argv, user="alice", name="salloc")

    def requeue(self, job_id: int) -> None:
        """Requeue a job once it runs."""
        self.cluster.wait_job(job_id, "RUNNING")
        time.sleep(1)
        self.cluster.run(["scontrol", "requeue", str(job_id)])

    def note_second_run(self, job_id: int) -> None:
        """Wait for a requeued job's second run, and note what it holds: slurmd may leave out its prolog."""
        self.cluster.wait_job(job_id, "RUNNING", timeout_s=60)
        (job,) = self.cluster.show_job(job_id)
        node, order = job["NodeList"], self.cluster.nodes[job["NodeList"]].minors
        if job["Restarts"] != "1":
            raise ClusterError(f"job {job_id} runs for the first time still: {job}")
        t0 = datetime.fromisoformat(job["StartTime"]).timestamp()
        positions = parse_positions(job["GRES"].partition("IDX:")[2].rstrip(")"))
        self._second[node] = [*self._second.get(node, []), (t0, job_id, [order[at] for at in positions])]

    def note_whole(self, job_id: int) -> None:
        """Note all that a running job of one node holds: since 24.11 the prolog may know the GPUs of one type alone."""
        (job,) = self.cluster.show_job(job_id)
        positions = [at for part in re.findall(r"IDX:([0-9,-]+)", job["GRES"]) for at in parse_positions(part)]
        node = self.cluster.nodes[job["NodeList"]]
        self._whole[node.name, job_id] = [node.positions[at] for at in positions]

    def suspend(self, job_id: int, seconds: float) -> None:
        """Suspend a job for a while once it runs."""
        self.cluster.wait_job(job_id, "RUNNING")
        time.sleep(1)
        self.cluster.run(["scontrol", "suspend", str(job_id)])
        time.sleep(seconds)
        self.cluster.run(["scontrol", "resume", str(job_id)])

    def wait_all(self, timeout_s: float = 90) -> None:
        """Wait until no job is left."""
        wait_until(lambda: not self._left(), timeout_s, "all jobs to end", lambda: str(self._left()), poll_s=0.3)
        time.sleep(3 * _INTERVAL_S)  # the probes see the end

    def _left(self) -> list[str]:
        return self.cluster.run(["squeue", "-h", "-o", "%A %T %r"]).stdout.splitlines()

    def labels(self) -> dict[int, str]:
        """Return the label of each job id."""
        text = self.cluster.run(["scontrol", "-o", "show", "job"]).stdout
        return {int(job): name for job, name in re.findall(r"^JobId=(\d+) .*?JobName=(\S+)", text, re.MULTILINE)}

    def truth(self) -> list[Hold]:
        """Return what Slurm gave to whom since this field was made."""
        holds: list[Hold] = []
        for node in self.nodes:
            began: dict[int, tuple[float, list[int]]] = {}
            for at, event, job, minors in self._events(node):
                if event == "epilog" and job in began:
                    t0, held = began.pop(job)
                    holds += [Hold(node, self.uuids[node][minor], job, t0, at) for minor in held]
                elif event == "prolog" and job not in began:
                    began[job] = (at, minors)
            for job, (t0, held) in began.items():
                holds += [Hold(node, self.uuids[node][minor], job, t0, float("inf")) for minor in held]
        return holds

    def _events(self, node: str) -> list[tuple[float, str, int, list[int]]]:
        """Return prologs and epilogs in order of time: (UTC seconds, event, job, minors)."""
        events = [(t0, "prolog", job, minors) for t0, job, minors in self._second.get(node, [])]
        for line in (self.cluster.directory / "sim" / node / "gres.log").read_text(encoding="ascii").splitlines():
            at, event, job, minors, *_ = [*line.split(), ""]
            if float(at) >= self.began:
                told = [int(minor) for minor in minors.split(",") if minor]
                events.append((float(at), event, int(job), self._whole.get((node, int(job)), told)))
        return sorted(events)

    def lines(self, node: str, mode: str) -> list[dict[str, Any]]:
        """Return a probe's lines; a last one that was cut off by a kill is left out."""
        text = self.log(node, mode).read_text(encoding="utf-8")
        return [json.loads(line) for line in text.splitlines() if line.endswith("}")]


@dataclass(frozen=True, slots=True)
class AttributionVerdict:
    """What became of one sample."""

    mode: str
    label: str
    kind: str  # right, unknown, wrong
    text: str = ""


def judge(field: Field, modes: Iterable[str] = MODES) -> list[AttributionVerdict]:
    """Hold every sample of every probe against the truth."""
    truth, labels = field.truth(), field.labels()
    verdicts = []
    for mode in modes:
        for node in field.nodes:
            here = [hold for hold in truth if hold.node == node]
            for line in field.lines(node, mode):
                if "t" in line:
                    verdicts += _judge_tick(line, here, labels, mode)
    return verdicts


def _judge_tick(line: dict[str, Any], here: list[Hold], labels: dict[int, str], mode: str) -> list[AttributionVerdict]:
    verdicts = []
    t, looked = line["t"], line["looked"]
    for uuid in line["gpus"]:
        may = {hold.job_id for hold in here if hold.uuid == uuid and hold.t0 <= looked and hold.t1 + _LATE_S >= t}
        must = {hold.job_id for hold in here if hold.uuid == uuid and hold.t0 <= t and hold.t1 >= looked}
        said = {item[0] for item in line["held"].get(uuid, []) if item[2] != "conflict"}
        for job in said - may:
            text = (
                f"{mode} t={t:.3f} {uuid}: job {job} ({labels.get(job)}), held by {sorted(may)}: {line['held'][uuid]}"
            )
            verdicts.append(AttributionVerdict(mode, labels.get(job, "?"), "wrong", text))
        for job in must:
            kind = "right" if job in said else "unknown"
            verdicts.append(AttributionVerdict(mode, labels.get(job, "?"), kind))
    return verdicts


def table(verdicts: Iterable[AttributionVerdict]) -> dict[str, dict[str, int]]:
    """Count by mode and layout."""
    counts = Counter((f"{item.mode} {item.label}", item.kind) for item in verdicts)
    names = sorted({name for name, _ in counts})
    return {name: {kind: counts[name, kind] for kind in ("right", "unknown", "wrong")} for name in names}
