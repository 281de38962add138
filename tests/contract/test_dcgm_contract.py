"""The DCGM collector on text that a real dcgm-exporter printed, and on its own list of counters."""

from typing import Final

import pytest
from tests.public_data import public

from gpuwaste.agent.bounded_calls import CollectorError
from gpuwaste.agent.collectors.dcgm import _METRICS, parse_metrics
from gpuwaste.agent.readings import GpuProfile

A100: Final = "GPU-34319582-d595-d1c7-d1d2-179bcfa61660"


def recorded(name: str) -> str:
    return public(f"fixtures/dcgm/{name}").read_text(encoding="utf-8")


def test_a_real_a100_and_its_instance_are_read() -> None:
    """The page of a real A100 gives tensor cores, memory and PCIe, of its MIG instance too; no SM activity."""
    found = parse_metrics(recorded("dcgm_exporter_from_docs.prom").encode(), "recorded")
    assert found == {
        (A100, ""): GpuProfile(tensor_active=0.92926, dram_active=0.690789, pcie_b_s=33011804 + 97863601),
        (A100, "13"): GpuProfile(tensor_active=0.930433, dram_active=0.800339),
    }


def test_a_real_page_without_profiling_says_what_to_start() -> None:
    """A GPU without profiling, with blank values, is no profile; the line names what the exporter's counters lack."""
    with pytest.raises(CollectorError, match="start dcgm-exporter with DCGM_FI_PROF_SM_ACTIVE"):
        parse_metrics(recorded("dcgm_exporter_readme.prom").encode(), "recorded")


def test_the_exporter_knows_every_metric_that_is_read() -> None:
    """Each name is one that dcgm-exporter's own list of counters has; of NVLink DCGM has fields 1011 and 1012."""
    nvlink = {"DCGM_FI_PROF_NVLINK_TX_BYTES", "DCGM_FI_PROF_NVLINK_RX_BYTES"}
    known = recorded("default-counters.csv") + recorded("dcp-metrics-included.csv")
    assert [name for name in _METRICS if name not in known and name not in nvlink] == []
