"""The request from the columns that older files have."""

import pytest

from gpuwaste.slurm.sacct_request import request_tres
from gpuwaste.slurm.tres import gpu_count, memory_b, parse_tres


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({}, ""),
        ({"ReqCPUS": "4", "ReqMem": "8G", "ReqNodes": "1"}, "cpu=4,mem=8G,node=1"),
        ({"ReqCPUS": "4", "ReqMem": "1100Mc"}, "cpu=4,mem=4400M"),
        ({"ReqCPUS": "4", "ReqNodes": "2", "ReqMem": "1.5Gn"}, "cpu=4,mem=3G,node=2"),
        ({"ReqCPUS": "4", "ReqMem": "0n"}, "cpu=4"),
        ({"ReqCPUS": "x", "ReqMem": "?", "ReqNodes": "-1", "ReqGRES": "(null)"}, ""),
        ({"ReqNodes": "2", "ReqGRES": "gpu:v100:2"}, "node=2,gres/gpu=4,gres/gpu:v100=4"),
        ({"ReqGRES": "gpu:1,craynetwork:1"}, "gres/gpu=1"),
        ({"ReqGRES": "gpu:0"}, ""),
    ],
)
def test_amounts_are_the_whole_jobs(values: dict[str, str], expected: str) -> None:
    """By processor and by node become totals; what cannot be read is left out; the text is a TRES text."""
    assert request_tres(values) == expected
    gpu_count(parse_tres(expected))
    memory_b(parse_tres(expected))
