"""The program of a submission on several GPUs: the request's nodes, the site's links, and no share of runs."""

from pathlib import Path

import pytest
from tests.unit.estimate.test_several_gpus import ONE, program

from gpuwaste.cli.own_program import OwnProgram
from gpuwaste.slurm.gpu_links import SiteLinks, site_links
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
