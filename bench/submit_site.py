"""A loopback cluster with many held jobs, on which slurmctld starts again and again with another submit plugin."""

import re
import shutil
import statistics
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil

from gpuwaste.testing.cluster import LoopbackCluster
from gpuwaste.testing.cluster_process import ClusterError, wait_until

ROOT: Final = Path(__file__).parents[1]
USER: Final = "alice"
NAME: Final = "bench"
SCRIPT: Final = "#!/bin/bash\n" + "python3 train.py --epochs 30 --lr 0.001 --data /scratch/$USER/set\n" * 30
_FILLERS: Final = 8
_IDLE_PCT: Final = 5.0
_RPC: Final = re.compile(r"REQUEST_SUBMIT_BATCH_JOB\s*\(\s*\d+\)\s*count:(\d+)\s+ave_time:(\d+)\s+total_time:(\d+)")


@dataclass(frozen=True, slots=True)
class Load:
    """What a burst of submissions cost: each client's call, the whole of it, and the mean RPC by slurmctld's sdiag."""

    call_us: tuple[int, ...]
    seconds: float
    rpc_us: float

    @property
    def per_s(self) -> float:
        """Submissions per second."""
        return len(self.call_us) / self.seconds

    @property
    def mean_us(self) -> float:
        """Mean call."""
        return statistics.mean(self.call_us)


class SubmitSite:
    """The cluster as every column of the bench finds it: the same jobs in memory, another plugin."""

    def __init__(self, cluster: LoopbackCluster) -> None:
        self.cluster = cluster
        self._state = cluster.directory / "state"
        self._saved = cluster.directory / "saved"
        self._program = cluster.directory / "gpuwaste-submit"
        shutil.copy2(_build(), self._program)

    def fill(self, jobs: int) -> None:
        """Put held jobs into slurmctld's memory and keep its state; `jobs` is rounded up to the parallel fillers."""
        # The cluster's schedulers run every second, for tests: over many held jobs that is a load of its own.
        self.configure({"SchedulerParameters": "sched_interval=60,bf_interval=60", "MaxJobCount": str(4 * jobs)})
        self.cluster.restart_slurmctld()
        self._submit(-(-jobs // _FILLERS), _FILLERS, 0)
        self._drained()
        self.cluster.processes["slurmctld"].stop(60)
        shutil.copytree(self._state, self._saved)
        self.cluster.restart_slurmctld()

    def restart(self, plugins: str, options: Mapping[str, str]) -> None:
        """Start slurmctld anew with JobSubmitPlugins and further lines, and with the jobs that `fill` made alone."""
        self._drained()
        self.cluster.processes["slurmctld"].stop(60)
        self.configure({"JobSubmitPlugins": plugins, **options})
        shutil.copy2(self._saved / "job_state", self._state / "job_state")
        shutil.chown(self._state / "job_state", "slurm", "slurm")
        self.cluster.restart_slurmctld()
        self._drained()
        self._settled()

    def configure(self, values: Mapping[str, str]) -> None:
        """Set lines of slurm.conf, an empty value removes one; slurmctld reads them at its start."""
        path = self.cluster.layout.slurm_conf
        lines = [line for line in path.read_text().splitlines() if line.partition("=")[0] not in values]
        lines += [f"{key}={value}" for key, value in values.items() if value]
        path.write_text("\n".join(lines) + "\n")

    def load(self, count: int, workers: int = 1, every_ms: int = 0) -> Load:
        """Submit `count` held jobs from each of `workers` processes and return what that cost."""
        self.cluster.run(["sdiag", "-r"])
        total_us, calls = self._submit(count, workers, every_ms)
        found = _RPC.search(self.cluster.run(["sdiag"]).stdout)
        if found is None or int(found[1]) != count * workers:
            raise ClusterError(f"sdiag counts {found and found[1]} submissions, {count * workers} were made")
        return Load(calls, total_us / 1e6, int(found[3]) / int(found[1]))

    def _submit(self, count: int, workers: int, every_ms: int) -> tuple[int, tuple[int, ...]]:
        argv = [str(self._program), "--count", str(count), "--workers", str(workers), "--name", NAME]
        done = self.cluster.run([*argv, "--every-ms", str(every_ms)], USER, stdin=SCRIPT, timeout_s=300)
        total_us, *calls = map(int, done.stdout.split())
        return total_us, tuple(calls)

    def jobs(self) -> int:
        """Return how many jobs slurmctld has in memory."""
        done = self.cluster.run(["squeue", "-ha", "-o", "%i"], timeout_s=60)
        return len(done.stdout.split())

    def _drained(self) -> None:
        """Wait until accounting has what slurmctld told it: that work is no part of any column."""

        def empty() -> bool:
            with suppress(ClusterError):
                return bool(re.search(r"DBD Agent queue size:\s*0\b", self.cluster.run(["sdiag"]).stdout))
            return False

        wait_until(empty, 120, "slurmdbd to take what slurmctld sends", poll_s=0.2)

    def _settled(self) -> None:
        """Wait until slurmctld has done what a start brings with it: under a twentieth of a core for a second."""
        process = psutil.Process(self.cluster.processes["slurmctld"].pid)
        wait_until(lambda: process.cpu_percent(interval=1.0) < _IDLE_PCT, 60, "slurmctld to be idle", poll_s=0.1)


def _build() -> Path:
    out = ROOT / "build" / "native"
    command = ["make", "--no-print-directory", "-C", str(ROOT / "native"), "submit", f"OUT={out}"]
    subprocess.run(command, check=True)
    return out / "gpuwaste-submit"
