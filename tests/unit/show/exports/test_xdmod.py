"""Open XDMoD's summary of a job: what it requires, GPU statistics over nodes, nothing invented."""

import json
import statistics
from typing import Any

import pytest
from msgspec.structs import replace
from tests.unit.ledger.builders import SETTINGS
from tests.unit.show.documents import HOSTILE_NAMES, one_job, read

from gpuwaste.ledger.exports import xdmod
from gpuwaste.ledger.reports.job_types import RunRow

COVERAGE = SETTINGS.min_coverage


def run_of(job_id: str, **changes: Any) -> RunRow:
    found: RunRow = replace(read(one_job(job_id)).runs[0], **changes)
    return found


def test_accounting_is_as_xdmod_requires_it() -> None:
    """Its id is that of the job and its end; nodes, CPUs and times are those that the schema requires."""
    run = run_of("7")
    found = xdmod.summary(run, COVERAGE)
    assert found["_id"] == f"7-{run.end}"
    accounted = found["acct"]
    assert (accounted["id"], accounted["host_list"], accounted["nodes"]) == ("7", ["gpu1"], 1)
    assert (accounted["ncpus"], accounted["gpus"], accounted["timelimit"]) == (8, 4, 7200)
    assert (accounted["submit"], accounted["start_time"], accounted["end_time"]) == (run.submit, run.start, run.end)
    assert found["summarization"]["complete"] is True
    assert found["summarization"]["datasource"] == "gpuwaste"


def test_each_gpu_of_a_node_has_its_place() -> None:
    """One of four was busy, so the mean that XDMoD makes is 22.5 %."""
    gpus = xdmod.summary(run_of("7"), COVERAGE)["gpu"]
    assert sorted(gpus) == ["gpu0", "gpu1", "gpu2", "gpu3"]
    assert statistics.fmean(gpu["gpuactive"]["avg"] for gpu in gpus.values()) == 22.5
    assert gpus["gpu0"]["gpuactive"]["cnt"] == 1


def test_places_are_averaged_over_nodes() -> None:
    """The same place on two nodes is one entry with the statistics of both."""
    run = run_of("7")
    moved = [replace(device, node="gpu2" if at > 1 else "gpu1") for at, device in enumerate(run.devices)]
    gpus = xdmod.summary(replace(run, devices=moved, nodes="gpu[1-2]"), COVERAGE)["gpu"]
    both = gpus["gpu0"]["gpuactive"]
    assert (both["avg"], both["cnt"], both["min"], both["max"], both["med"]) == (45.0, 2, 0.0, 90.0, 45.0)
    assert both["cov"] == pytest.approx(statistics.stdev([0, 90]) / 45)
    assert gpus["gpu1"]["gpuactive"] == {"avg": 0.0, "cnt": 2}


def test_unknown_takes_the_figure_away() -> None:
    """Too little known of a GPU, or no report of it: its place has no gpuactive, and XDMoD no usage of the job."""
    unclear = xdmod.summary(run_of("50"), COVERAGE)
    assert "gpuactive" not in unclear["gpu"]["gpu0"]
    assert unclear["summarization"]["complete"] is False
    run = run_of("7")
    missing = replace(run, devices=[*run.devices[1:], replace(run.devices[0], node=None, gpu_uuid=None)])
    gpus = xdmod.summary(missing, COVERAGE)["gpu"]
    assert [name for name, gpu in gpus.items() if "gpuactive" not in gpu] == ["gpu3"]


def test_a_run_with_shares_alone_has_no_gpu() -> None:
    """XDMoD takes the mean over the entries of `gpu`: an empty one would be a division by zero."""
    assert "gpu" not in xdmod.summary(run_of("60"), COVERAGE)


def test_energy_is_a_sum_where_it_was_measured() -> None:
    """Joules by place; without a measurement there is none."""
    run = run_of("7")
    measured = replace(run, devices=[replace(device, energy_j=1000.0) for device in run.devices])
    assert xdmod.summary(measured, COVERAGE)["gpupower"]["gpu2"] == {
        "energy": {"avg": 1000.0, "cnt": 1, "total": 1000.0}
    }
    silent = replace(run, devices=[replace(device, energy_j=None) for device in run.devices])
    assert set(map(str, xdmod.summary(silent, COVERAGE)["gpupower"].values())) == {"{}"}


@pytest.mark.parametrize(
    "changes", [{"nodes": ""}, {"nodes": "gpu[1-"}, {"cpus": None}, {"start": None}, {"end": None}]
)
def test_a_run_without_what_is_required_is_left_out(changes: dict[str, Any]) -> None:
    """XDMoD would refuse the document."""
    assert list(xdmod.lines([run_of("7", **changes)], read(one_job("7")))) == []


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_a_document_is_one_line(name: str) -> None:
    """Whatever the job is called, mongoimport reads one document per line, and the name comes back."""
    (line,) = xdmod.lines([run_of("7", name=name)], read(one_job("7")))
    assert line.isascii()
    assert "\n" not in line
    assert json.loads(line)["acct"]["jobname"] == name
