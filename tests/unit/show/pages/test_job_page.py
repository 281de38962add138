"""The page of a job of many nodes: each node's GPUs and curves are reached by a form that needs no script."""

from typing import Any

import pytest
from msgspec.structs import replace
from tests.unit.show import documents
from tests.unit.show.pages.test_view_page import Reading

from gpuwaste.ledger.reports.job_page import job_page
from gpuwaste.ledger.reports.job_types import JobDocument
from gpuwaste.show.environment import Frame


def job(nodes: str) -> JobDocument:
    """Return a job on these nodes, with a GPU on each of the first two."""
    found: Any = documents.read(documents.one_job())
    run, device = found.runs[0], found.runs[0].devices[0]
    devices = [replace(device, node=f"n{number}", gpu_uuid=f"GPU-{number}") for number in (1, 2)]
    changed: JobDocument = replace(found, runs=[replace(run, nodes=nodes, devices=devices)])
    return changed


def curves(found: Reading) -> list[str]:
    """Return the links to curves."""
    return [str(one["href"]) for one in found.all("a") if "curves.json" in str(one.get("href"))]


def options(found: Reading) -> list[tuple[str, bool]]:
    """Return the nodes that can be chosen, and whether each is."""
    words = [word.strip() for word in found.words.get("option", [])]
    return list(zip(words, ["selected" in one for one in found.all("option")], strict=True))


def test_a_job_of_many_nodes_has_a_choice_of_one() -> None:
    """Without a choice all GPUs are there; a chosen node has its own GPUs and curves, and stays chosen."""
    all_of_them = Reading(job_page(job("n[1-20]"), Frame()))
    assert [name for name, _ in options(all_of_them)] == ["the first nodes", *sorted(f"n{n}" for n in range(1, 21))]
    assert curves(all_of_them) == ["/jobs/7/curves.json"]
    one = Reading(job_page(job("n[1-20]"), Frame(), "n2"))
    assert [name for name, chosen in options(one) if chosen] == ["n2"]
    assert curves(one) == ["/jobs/7/curves.json?node=n2"]
    assert ("GPU-1" in one.said("td"), "GPU-2" in one.said("td")) == (False, True)


@pytest.mark.parametrize("nodes", ["n[1-16]", "", "n[1-"])
def test_a_job_that_is_shown_whole_has_none(nodes: str) -> None:
    """Up to sixteen nodes, and where accounting names none that can be read, there is no form."""
    found = Reading(job_page(job(nodes), Frame()))
    assert not options(found)
    assert curves(found) == ["/jobs/7/curves.json"]


def test_a_node_that_is_none_of_the_job_is_no_markup() -> None:
    """A link may name anything: the page says that nothing is known there."""
    evil = '"><script>alert(1)</script>'
    found = Reading(job_page(job("n[1-20]"), Frame(), evil))
    assert not found.foreign_scripts()
    assert "No agent reported GPUs of this job on" in found.said("p")


def test_profiling_is_shown_where_it_was_read() -> None:
    """A GPU that was profiled has a row with its shares and bytes, what was not read unknown; others have no table."""
    plain = job("n[1-2]")
    assert "Profiling" not in Reading(job_page(plain, Frame())).said("h3")
    first, second = plain.runs[0].devices
    first = replace(first, profiled_s=600.0, sm_active=0.076, tensor_active=0.5, pcie_b=3 * 1024**3)
    found = Reading(job_page(replace(plain, runs=[replace(plain.runs[0], devices=[first, second])]), Frame()))
    assert "Profiling" in found.said("h3")
    assert "8 %" in found.said("td")
    assert "3.0 GiB" in found.said("td")


def test_the_waste_is_said_once_and_each_way_out_can_be_copied() -> None:
    """The headline alone has the wasted hours; "either" and "or" each have a line and a button to copy it."""
    found = Reading(job_page(documents.read(documents.one_job()), Frame()))
    assert "3.00 of its 4.00 GPU-hours were idle (75 %)" in found.said("h1")
    assert "wasted" not in found.said("p").replace("Idle, wasted and unknown", "").replace("Wasted: never", "")
    words = " ".join(found.said("p").split())
    assert "Either request 1 GPU instead of 4" in words
    assert "or use all 4 GPUs: start a process for each:" in words
    copied = [one["data-copy"] for one in found.all("button") if one.get("data-copy")]
    assert copied == ["#SBATCH --gres=gpu:a100:1", "torchrun --nproc_per_node=4"]


def test_used_resources_have_their_share_of_the_request() -> None:
    """Two of eight CPUs are 25 %; an unknown share is left empty, not 0."""
    found: Any = documents.read(documents.one_job())
    run = replace(found.runs[0], cpus=8, cpu_efficiency=0.26, mem_req_b=None, max_rss_b=1 << 30, memory_efficiency=None)
    cells = Reading(job_page(replace(found, runs=[run]), Frame())).words["td"]
    at = cells.index("CPUs")
    assert [cell.strip() for cell in cells[at : at + 4]] == ["CPUs", "8", "2.1", "26 %"]
    at = cells.index("Memory")
    assert [cell.strip() for cell in cells[at : at + 4]] == ["Memory", "unknown", "1.0 GiB", "Time"]
