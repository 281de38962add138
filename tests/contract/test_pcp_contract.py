"""The PCP collector on a real pmcd, pmdanvidia and pmproxy, all of which read the simulated NVML."""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from gpuwaste.agent.bounded_calls import CollectorError
from gpuwaste.agent.collectors.pcp import PcpCollector
from gpuwaste.agent.readings import GpuReading
from gpuwaste.testing.cluster_process import wait_until
from gpuwaste.testing.patience import patient
from gpuwaste.testing.simnvml import NvmlFault, SimGpu, SimNode, build_native, library_env, make_gpus

BIN = Path("/usr/lib/pcp/bin")
PMDA = Path("/var/lib/pcp/pmdas/nvidia")
NAMES = Path("/var/lib/pcp/pmns/root_pmcd")
PMCD_CONF = """
pmcd 2 dso pmcd_init /var/lib/pcp/pmdas/pmcd/pmda_pmcd.so
nvidia 120 pipe binary {pmda}/pmdanvidia -d 120 -l {directory}/pmda.log

[access]
allow "*" : all;
"""
PMPROXY_CONF = "[pmproxy]\nhttp.enabled = true\nredis.enabled = false\n[discover]\nenabled = false\n"
NVML = """
from pathlib import Path
from gpuwaste.agent.collectors.nvml import NvmlCollector
from gpuwaste.core.clock import SystemClock
scan = NvmlCollector(SystemClock(), Path("/none")).scan()
for gpu in scan.gpus: print(gpu.uuid, gpu.mem_total_b, scan.readings[gpu.uuid].power_mw)
"""


@dataclass
class Rig:
    """A running PCP with a collector on it."""

    node: SimNode
    gpus: list[SimGpu]
    collector: PcpCollector
    env: dict[str, str]
    native: Path

    def reading(self, gpu: SimGpu) -> GpuReading | None:
        try:
            return self.collector.scan().readings.get(gpu.uuid)
        except CollectorError:
            return None


def util_of(reading: GpuReading | None) -> float:
    return -1.0 if reading is None or reading.util_pct is None else reading.util_pct


def a_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def rig() -> Iterator[Rig]:
    """Start pmcd with pmdanvidia, and pmproxy, in a private folder."""
    if not (PMDA / "pmdanvidia").exists() or not NAMES.exists():
        pytest.skip("pcp with pmdanvidia is not installed")
    if os.geteuid() != 0:
        pytest.skip("pmcd starts as root only")
    directory = Path(tempfile.mkdtemp(prefix="gwpcp"))
    native = build_native()
    gpus = make_gpus([1, 0])
    node = SimNode.create(directory / "node", gpus)
    (directory / "run").mkdir()
    own_names = NAMES.read_text().partition("}")[2]
    nvidia_names = (PMDA / "pmns").read_text().replace("NVML:", "120:")
    (directory / "pmns").write_text(f"root {{\n nvidia\n pmcd\n}}\n{nvidia_names}{own_names}")
    (directory / "pmcd.conf").write_text(PMCD_CONF.format(pmda=PMDA, directory=directory))
    (directory / "pmproxy.conf").write_text(PMPROXY_CONF)
    pmcd_port, http_port = a_port(), a_port()
    local = directory / "run" / "pmcd.socket"
    env = {**os.environ, **library_env(native), **node.env, "PMCD_SOCKET": str(local), "PCP_TMP_DIR": str(directory)}
    env["PMCD_PORT"] = str(pmcd_port)
    env["PCP_RUN_DIR"] = env["PCP_LOG_DIR"] = str(directory / "run")
    common = ["-f", "-A", "-U", "root", "-i", "127.0.0.1"]
    pmcd = [str(BIN / "pmcd"), *common, "-p", str(pmcd_port), "-s", str(local), "-n", str(directory / "pmns")]
    pmcd += ["-c", str(directory / "pmcd.conf"), "-l", str(directory / "pmcd.log")]
    proxy = [str(BIN / "pmproxy"), *common, "-p", str(http_port), "-s", str(directory / "run" / "proxy.socket")]
    proxy += ["-c", str(directory / "pmproxy.conf"), "-l", str(directory / "pmproxy.log")]
    running = [subprocess.Popen(command, env=env) for command in (pmcd, proxy)]
    rig = Rig(node, gpus, PcpCollector(f"http://127.0.0.1:{http_port}"), env, native)
    try:
        wait_until(lambda: rig.reading(gpus[0]) is not None, 30, "PCP to answer", (directory / "pmcd.log").read_text)
        yield rig
    finally:
        for process in reversed(running):
            process.terminate()
            process.wait(20)
        shutil.rmtree(directory, ignore_errors=True)


def test_pcp_says_what_nvml_says_in_the_same_units(rig: Rig) -> None:
    """UUID, total memory and power of each GPU are the same through PCP and through NVML."""
    done = subprocess.run(
        [sys.executable, "-c", NVML], env=rig.env, capture_output=True, text=True, check=True, timeout=patient(60)
    )
    scan = rig.collector.scan()
    pcp = [f"{g.uuid} {g.mem_total_b} {scan.readings[g.uuid].power_mw}" for g in scan.gpus]
    assert pcp == done.stdout.splitlines()


def test_a_loaded_gpu_is_seen_and_the_idle_one_is_zero(rig: Rig) -> None:
    """PCP's utilization follows the load on one GPU; the other's is a true 0; energy counts up in millijoules."""
    busy, idle = rig.gpus
    command = [str(rig.native / "gpuwaste-load"), "--gpus", str(busy.minor), "--phase", "600:60:2048:300"]
    with subprocess.Popen(command, env=rig.env, stdout=subprocess.DEVNULL) as load:
        try:
            wait_until(
                lambda: 50 <= (((reading := rig.reading(busy)) and reading.util_pct) or 0) <= 70,
                30,
                "the load to be seen",
            )
            first, other = rig.reading(busy), rig.reading(idle)
            assert first is not None
            assert other is not None
            assert (other.util_pct, other.reason) == (0.0, "")
            assert first.power_mw == 300_000
            assert (first.mem_used_b or 0) - (other.mem_used_b or 0) == 2048 << 20
            wait_until(
                lambda: (((r := rig.reading(busy)) and r.energy_mj) or 0) > (first.energy_mj or 0), 30, "energy to grow"
            )
        finally:
            load.terminate()


def test_a_lost_gpu_is_unknown_and_the_other_goes_on(rig: Rig) -> None:
    """Where the driver has lost a GPU PCP has no value of it: never 0."""
    lost, other = rig.gpus
    rig.node.inject(lost, NvmlFault.lost())

    def is_unknown() -> bool:
        reading = rig.reading(lost)
        return reading is None or reading.util_pct is None

    wait_until(is_unknown, 30, "the GPU to be unknown")
    there = rig.reading(other)
    assert there is not None
    assert there.util_pct == 0.0
