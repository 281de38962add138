"""The program of a submission on several GPUs: the request's nodes, the site's links, and no share of runs."""

from pathlib import Path

import pytest
from tests.unit.estimate.test_process_overhead import SMALL
from tests.unit.estimate.test_program_answer import run
from tests.unit.estimate.test_several_gpus import ONE, program

from gpuwaste.cli.own_program import OwnProgram
from gpuwaste.slurm.gpu_links import SiteLinks, site_links
from gpuwaste.slurm.gpu_types import GIB
from gpuwaste.slurm.submit.job_request import JobRequest
from gpuwaste.slurm.submit.program_tie import ProgramTie

SITE = site_links(["node=hdr"])


def own(links: SiteLinks) -> OwnProgram:
    """Return a program whose step on one A100 is known."""
    found = OwnProgram(ProgramTie("0" * 64, 1000), Path("unused"), program=program(), links=links)
    found._times["a100-40gb"] = ONE  # in place of a trained model
    return found


@pytest.mark.parametrize(
    ("nodes", "links", "basis", "refused"),
    [
        (None, SITE, "4 GPUs data parallel over NVLink 3", ""),
        (2, SITE, "4 GPUs on 2 nodes data parallel over NVLink 3", ""),
        (2, SiteLinks(), "", "the link between nodes is unknown"),
    ],
)
def test_several_gpus_of_a_request(nodes: int | None, links: SiteLinks, basis: str, refused: str) -> None:
    """Nodes that the script does not name are one; across nodes only a site's table gives a time."""
    request = JobRequest(user="u", submit=0, gpus=4, gpu_type="a100-40gb", nodes=nodes)
    found = own(links).estimate(request, None)
    assert basis in found.basis
    assert refused in found.refused
    assert (found.run_s is None) == bool(refused)
    assert found.coverage is None
    if found.run_s is not None:
        assert found.run_low_s is not None
        assert found.run_high_s is not None
        assert found.run_low_s < found.run_s < found.run_high_s


def test_the_context_is_that_of_own_runs_on_the_type(tmp_path: Path) -> None:
    """Three runs on the T4 used half a GiB more than the program: so will the next there; elsewhere it is assumed."""
    found = OwnProgram(ProgramTie("0" * 64, None), tmp_path, runs=[run("t4", 2.5, 15)] * 3, memory=SMALL)
    on = {gpu: found.estimate(JobRequest(user="u", submit=0, gpus=1, gpu_type=gpu), None) for gpu in ("t4", "l4")}
    assert on["t4"].memory_b == int(2.5 * GIB)
    assert "context of 512.0 MiB by 3 runs on t4" in on["t4"].basis
    assert "3 runs on" not in on["l4"].basis
