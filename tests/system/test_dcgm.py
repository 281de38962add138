"""DCGM on a real cluster: a served dcgm-exporter beside NVML, from the node to the job's document, text and page."""

from collections.abc import Iterator
from typing import Final

import pytest
from tests.system.conftest import SiteFactory

from gpuwaste.testing.cluster import LoopbackCluster
from gpuwaste.testing.page_server import PageServer
from gpuwaste.testing.running_site import SiteOptions

ONE_SM_OF_132: Final = 0.007576
_SERIES: Final = {
    "DCGM_FI_DEV_GPU_UTIL": 100,
    "DCGM_FI_PROF_SM_ACTIVE": ONE_SM_OF_132,
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": 0.25,
    "DCGM_FI_PROF_DRAM_ACTIVE": 0.5,
    "DCGM_FI_PROF_PCIE_TX_BYTES": 1_000_000,
    "DCGM_FI_PROF_PCIE_RX_BYTES": 2_000_000,
}


class Exporter:
    """A server on loopback with the page of a dcgm-exporter; `uuids` are its GPUs."""

    def __init__(self) -> None:
        self.uuids: list[str] = []
        self.server = PageServer(self._page)

    @property
    def url(self) -> str:
        return f"{self.server.url}metrics"

    def _page(self) -> bytes:
        lines = []
        for name, value in _SERIES.items():
            lines += [f"# HELP {name} of a test", f"# TYPE {name} gauge"]
            lines += [
                f'{name}{{gpu="{i}",UUID="{uuid}",device="nvidia{i}",modelName="NVIDIA A100",Hostname="n"}} {value}'
                for i, uuid in enumerate(self.uuids)
            ]
        return ("\n".join(lines) + "\n").encode()


@pytest.fixture
def exporter() -> Iterator[Exporter]:
    made = Exporter()
    yield made
    made.server.close()


@pytest.mark.cluster
def test_one_multiprocessor_at_work_is_found(
    cluster: LoopbackCluster, make_site: SiteFactory, exporter: Exporter
) -> None:
    """A job at 100 % on one SM at 150 of 400 W is found with both sources' figures; one at 340 W is not."""
    site = make_site(
        cluster,
        SiteOptions(
            interval_s=1.0, ship_every_s=2.0, sacct_every_s=1.0, hub={"finding_min_s": 5.0},
            agent={"collectors": ["nvml", "host", "dcgm"], "dcgm_url": exporter.url},
        ),
    )  # fmt: skip
    node = next(iter(site.nodes))
    exporter.uuids = list(site.nodes[node].uuids().values())
    site.start_hub()
    site.start_agent(node)
    few = site.submit("alice", "--phase 15:100:2000:150", w=node, gres="gpu:1")
    many = site.submit("alice", "--phase 15:100:2000:340", w=node, gres="gpu:1")
    found, near = site.wait_reported(few, 1), site.wait_reported(many, 1)

    for document in (found, near):
        (device,) = document["runs"][0]["devices"]
        assert device["sm_active"] == pytest.approx(ONE_SM_OF_132)
        assert (device["tensor_active"], device["dram_active"], device["nvlink_b"]) == (0.25, 0.5, None)
        assert device["profiled_s"] > 5
        assert device["pcie_b"] == pytest.approx(3_000_000 * device["profiled_s"], rel=1e-3)
    (finding,) = [row for row in found["findings"] if row["kind"] == "few_sms"]
    assert 100 < finding["evidence"]["power_w"] < 160
    assert not [row for row in near["findings"] if row["kind"] == "few_sms"]

    text = site.gpuwaste("job", str(few), user="alice").stdout
    assert "Profiling: mean activity, and bytes in both directions" in text
    assert "of the multiprocessors" in text
    table = site.gpuwaste("job", str(few), "--csv", user="alice").stdout
    assert "sm_active,tensor_active,dram_active,nvlink_b,pcie_b" in table
