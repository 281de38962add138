"""The request from the columns that older files have."""

import pytest

from gpuwaste.slurm.accounting.job_record import AccountedRun
from gpuwaste.slurm.accounting.requested import allocated_tres, request_tres
from gpuwaste.slurm.accounting.sacct_file import columns_of
from gpuwaste.slurm.accounting.sacct_rows import parse_sacct
from gpuwaste.slurm.accounting.tres_amounts import gpu_count, memory_b, parse_tres


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


BASE = {"JobIDRaw": "7", "Submit": "1700000000", "Start": "1700000010", "End": "1700003610", "ElapsedRaw": "3600"}


def run_of(**values: str) -> AccountedRun:
    row = BASE | values
    line = "|".join(row.values()).encode() + b"\n"
    (run,) = parse_sacct([line], "gw", columns_of(list(row)), b"|")
    assert isinstance(run, AccountedRun)
    return run


@pytest.mark.parametrize(
    ("values", "held"),
    [
        ({"AllocTRES": "billing=8,cpu=8,gres/gpu=2,mem=64G,node=2"}, (8, 2, 2)),
        ({"AllocTRES": "cpu=1K,node=2", "ReqMem": "1Gn"}, (1024, 2, 0)),
        ({"AllocTRES": "cpu=8,node=2", "AllocCPUS": "16", "NNodes": "4"}, (16, 4, 0)),
        ({"AllocTRES": "cpu=8,node=2", "AllocCPUS": "", "NNodes": ""}, (8, 2, 0)),
        ({"AllocTRES": "gres/gpu=2"}, (None, None, 2)),
        ({"AllocTRES": "cpu=0.5"}, (None, None, 0)),
        ({"NNodes": "1"}, (None, 1, None)),
    ],
)
def test_cpus_and_nodes_come_from_the_allocation(values: dict[str, str], held: tuple[int | None, ...]) -> None:
    """Without AllocCPUS and NNodes, AllocTRES tells them; where nothing does they are unknown."""
    run = run_of(**values)
    assert (run.cpus, run.n_nodes, run.gpus) == held


@pytest.mark.parametrize(
    ("values", "gpus", "kind"),
    [
        ({"AllocGRES": "gpu:2"}, 2, ""),
        ({"AllocGRES": "gpu:1080ti:4,mic:1", "NNodes": "2"}, 4, "1080ti"),  # of both nodes
        ({"AllocGRES": "gpu:k80:1,gpu:p100:2"}, 3, "k80,p100"),
        ({"AllocGRES": ""}, 0, ""),
        ({"AllocGRES": "craynetwork:1"}, 0, ""),
        ({"AllocTRES": "cpu=4,node=1", "AllocGRES": "gpu:2"}, 2, ""),  # AccountingStorageTRES without gres/gpu
        ({"AllocTRES": "cpu=4,gres/gpu=2", "AllocGRES": "gpu:k80:2"}, 2, ""),
        ({"AllocGRES": "gpu:2", "ReqGRES": "gpu:4"}, 2, ""),
    ],
)
def test_gpus_of_older_files_come_from_alloc_gres(values: dict[str, str], gpus: int, kind: str) -> None:
    """Up to Slurm 20.02 it is the column that tells the GPUs of a job, the types too."""
    run = run_of(**values)
    assert (run.gpus, run.gpu_type) == (gpus, kind)
    assert run.alloc_tres == allocated_tres(values)
