"""dcgm-exporter's page: what is read of it, what is unknown, and what is no page of it."""

import socket
from collections.abc import Callable, Iterator

import pytest

from gpuwaste.agent.bounded_calls import CollectorError
from gpuwaste.agent.collectors.dcgm import DcgmCollector, parse_metrics
from gpuwaste.agent.readings import GpuProfile
from gpuwaste.testing.page_server import PageServer
from gpuwaste.testing.patience import patient

SM = "DCGM_FI_PROF_SM_ACTIVE"
PAGE = """# HELP DCGM_FI_PROF_SM_ACTIVE The ratio of cycles an SM has at least 1 warp assigned.
# TYPE DCGM_FI_PROF_SM_ACTIVE gauge
DCGM_FI_PROF_SM_ACTIVE{gpu="0",UUID="GPU-a",device="nvidia0",modelName="NVIDIA H100",Hostname="n"} 0.007576
DCGM_FI_PROF_SM_ACTIVE{gpu="1",UUID="GPU-b",GPU_I_PROFILE="1g.10gb",GPU_I_ID="7",Hostname="n"} 0.5
DCGM_FI_PROF_PCIE_TX_BYTES{gpu="0",UUID="GPU-a"} 1000
DCGM_FI_PROF_PCIE_RX_BYTES{gpu="0",UUID="GPU-a"} 24
DCGM_FI_PROF_NVLINK_TX_BYTES{gpu="0",UUID="GPU-a"} 9223372036854775794
DCGM_FI_PROF_NVLINK_RX_BYTES{gpu="0",UUID="GPU-a"} 5
DCGM_FI_PROF_PIPE_TENSOR_ACTIVE{gpu="0",UUID="GPU-a"} NaN
DCGM_FI_PROF_DRAM_ACTIVE{gpu="0",UUID="GPU-a"} 140737488355328.000000
DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-a"} 100
"""
Start = Callable[[int, bytes], DcgmCollector]


@pytest.fixture
def exporter() -> Iterator[Start]:
    """Return a function that makes a collector whose exporter gives this answer."""
    servers: list[PageServer] = []

    def start(status: int, body: bytes) -> DcgmCollector:
        servers.append(PageServer(lambda: body, status))
        return DcgmCollector(f"{servers[-1].url}metrics", 20.0)

    yield start
    for server in servers:
        server.close()


def test_gpus_and_instances_are_read(exporter: Start) -> None:
    """One SM of 132 is 0.0076; rates of both directions add up; blank values and NaN are unknown, never 0."""
    assert exporter(200, PAGE.encode()).profiles() == {
        ("GPU-a", ""): GpuProfile(sm_active=0.007576, pcie_b_s=1024.0),
        ("GPU-b", "7"): GpuProfile(sm_active=0.5),
    }


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [
        (404, b"", "status 404: is this dcgm-exporter?"),
        (302, b"", "status 302"),
        (200, b"", "no profiling metrics"),
        (200, b'DCGM_FI_DEV_GPU_UTIL{UUID="GPU-a"} 3\n', "no profiling metrics: start dcgm-exporter with"),
        (200, b'DCGM_FI_PROF_SM_ACTIVE{UUID="GPU-a 0.5\n', "not in Prometheus' text format"),
        (200, b'DCGM_FI_PROF_SM_ACTIVE{UUID="GPU-a"} half\n', "not in Prometheus' text format"),
        (200, b"x" * (4 * 1024 * 1024 + 1), "more than 4194304 bytes"),
        (200, b'DCGM_FI_PROF_SM_ACTIVE{UUID="GPU-a"} 0\n' * 4097, "more than 4096 series"),
    ],
    ids=["404", "redirect", "empty", "no profiling", "cut", "no number", "huge", "many series"],
)
def test_what_is_no_page_of_an_exporter_is_one_line(exporter: Start, status: int, body: bytes, words: str) -> None:
    """Each is a CollectorError with the address and what to look at; nothing of it is read."""
    with pytest.raises(CollectorError, match=r"DCGM: http://127\.0\.0\.1") as refused:
        exporter(status, body).profiles()
    assert words in str(refused.value)


def test_nobody_at_the_port_is_said() -> None:
    """Where no exporter runs the line asks whether it does."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        with pytest.raises(CollectorError, match="does dcgm-exporter run"):
            DcgmCollector(f"http://127.0.0.1:{free.getsockname()[1]}/").profiles()


def test_an_answer_that_drips_costs_one_reading_each_time() -> None:
    """A server that never ends its answer is given up at the deadline: its connection is closed, then asked again."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        collector = DcgmCollector(f"http://127.0.0.1:{server.getsockname()[1]}/", 0.05)
        for _ in range(2):
            with pytest.raises(CollectorError, match=r"no complete answer within 0\.05 s"):
                collector.profiles()
            peer, _address = server.accept()
            peer.settimeout(patient(20))
            with peer:
                while peer.recv(4096):
                    pass


def test_odd_lines_do_no_harm() -> None:
    """Bytes that are no text, a line without a GPU, an endless label and a repeated series are passed over."""
    page = b"\xff\xfe\n" + f'{SM}{{gpu="0"}} 0.5\n{SM}{{UUID="{"x" * 5000}"}} 1\n'.encode() + PAGE.encode() * 2
    assert parse_metrics(page, "here")["GPU-b", "7"] == GpuProfile(sm_active=0.5)
    assert len(parse_metrics(page, "here")) == 2


def test_an_impossible_value_is_handed_on_for_the_check_and_not_added_up() -> None:
    """What is not blank is returned as it was read: a rate below 0 is not hidden by the other."""
    page = 'DCGM_FI_PROF_NVLINK_TX_BYTES{UUID="GPU-a"} -5\nDCGM_FI_PROF_NVLINK_RX_BYTES{UUID="GPU-a"} 10\n'
    assert parse_metrics(f'{SM}{{UUID="GPU-a"}} 7\n{page}'.encode(), "here") == {
        ("GPU-a", ""): GpuProfile(sm_active=7.0, nvlink_b_s=-5.0)
    }
