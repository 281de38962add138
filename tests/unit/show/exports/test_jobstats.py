"""The text for AdminComment, read back as jobstats documents it: base64, gzip, JSON."""

import base64
import gzip
import json
import shlex
from typing import Any

import pytest
from msgspec.structs import replace
from tests.unit.ledger.builders import GIB, LATER, SETTINGS, hour, job, store
from tests.unit.show.documents import one_job, read

from gpuwaste.ledger.exports import jobstats, sacctmgr
from gpuwaste.ledger.reports.job_document import job_document
from gpuwaste.ledger.reports.job_types import JobDocument, RunRow

COVERAGE = SETTINGS.min_coverage


def runs_of(job_id: str) -> list[RunRow]:
    found: list[RunRow] = read(one_job(job_id)).runs
    return found


def document(job_id: str, *runs: RunRow) -> JobDocument:
    """Return a job's document, with other runs where they are given."""
    found: JobDocument = read(one_job(job_id))
    return replace(found, runs=list(runs)) if runs else found


def decoded(text: str) -> dict[str, Any]:
    """Return what the pipeline of jobstats' documentation prints: cut `JS1:`, base64 -d, gzip -d."""
    assert text.startswith("JS1:")
    found: dict[str, Any] = json.loads(gzip.decompress(base64.b64decode(text[4:], validate=True)))
    return found


def blob(run: RunRow) -> dict[str, Any]:
    return decoded(jobstats.admin_comment(run, COVERAGE))


def test_a_job_reads_back_with_what_the_ledger_has() -> None:
    """Node, GPUs with utilization and memory, CPU time and memory of the only node, run time, number of GPUs."""
    busy = job(5, total_cpu_s=20_000.0)
    made = job_document(store([busy], [hour(busy, 0, 0, {90: 3600})]), "5", SETTINGS, LATER)
    assert made is not None
    found = blob(made.runs[0])
    (name,) = found["nodes"]["gpu1"]["gpu_utilization"]
    assert found == {
        "nodes": {
            "gpu1": {
                "gpu_utilization": {name: 90.0},
                "gpu_total_memory": {name: made.runs[0].devices[0].mem_total_b},
                "gpu_used_memory": {name: made.runs[0].devices[0].mem_max_b},
                "cpus": 8,
                "total_time": 19_998.7,  # 20,000: the documents' efficiency has four digits
                "total_memory": 64 * GIB,
                "used_memory": 16 * GIB,
            }
        },
        "total_time": 3600,
        "gpus": 1,
    }


def test_four_gpus_have_four_names() -> None:
    """One of four was used; equal beginnings of UUIDs do not make one GPU of two."""
    (run,) = runs_of("7")
    assert sorted(blob(run)["nodes"]["gpu1"]["gpu_utilization"].values()) == [0.0, 0.0, 0.0, 90.0]
    same = [replace(device, gpu_uuid=f"GPU-00000000-{place}") for place, device in enumerate(run.devices)]
    assert len(blob(replace(run, devices=same))["nodes"]["gpu1"]["gpu_utilization"]) == 4


def test_unknown_is_not_zero() -> None:
    """A GPU of whose time half is unknown takes its node's utilization away, not its memory."""
    (run,) = runs_of("50")
    node = blob(run)["nodes"]["gpu1"]
    assert "gpu_utilization" not in node
    assert "gpu_used_memory" in node


def test_nothing_known_makes_no_text() -> None:
    """An empty answer: jobstats would take it for the job's figures, and ask Prometheus no more."""
    (run,) = runs_of("7")
    unseen = replace(run.devices[0], node=None, gpu_uuid=None)
    for devices in ([], [unseen], [unseen, *run.devices[1:]]):
        assert not jobstats.admin_comment(replace(run, devices=devices), COVERAGE)
    assert list(jobstats.lines([replace(run, devices=[])], document("7"))) == []


def test_several_nodes_have_no_cpu_time() -> None:
    """Accounting has CPU time and memory of the whole run: by node they would be invented."""
    (run,) = runs_of("7")
    assert "cpus" not in blob(replace(run, nodes="gpu[1-2]"))["nodes"]["gpu1"]
    assert "cpus" not in blob(replace(run, nodes="gpu[1-"))["nodes"]["gpu1"]


def test_equal_figures_give_equal_text() -> None:
    """A repeated export changes nothing in slurmdbd."""
    (run,) = runs_of("7")
    assert jobstats.admin_comment(run, COVERAGE) == jobstats.admin_comment(run, COVERAGE)
    line = next(iter(jobstats.lines([run], document("7"))))
    assert line == f"7 {jobstats.admin_comment(run, COVERAGE)}"


@pytest.mark.parametrize("cluster", ["gw", "a b; rm -rf $HOME", "x'`id`\"\n"])
def test_a_command_for_sh_is_one_command(cluster: str) -> None:
    """Whatever the cluster is called; the id is the printed one, which of an array names its task alone."""
    run = replace(runs_of("30")[1], cluster=cluster)
    (line,) = sacctmgr.lines([run], document("30", run))
    words = shlex.split(line)
    assert words[:-1] == ["sacctmgr", "-i", "modify", "job", "where", "jobid=30_1", f"cluster={cluster}", "set"]
    assert decoded(words[-1].removeprefix("AdminComment="))["total_time"] == 3600


def test_only_the_last_run_of_a_job_is_written() -> None:
    """The last run is what sacctmgr changes: an earlier one's figures must not be written over it, open or not."""
    first, second = sorted(runs_of("40"), key=lambda run: run.start or 0)
    for order in ([first, second], [second, first]):
        (line,) = sacctmgr.lines(order, document("40"))
        assert jobstats.admin_comment(second, COVERAGE) in line
    assert list(sacctmgr.lines([first], document("40"))) == []
    waits = replace(second, start=None, end=None, state="PENDING")
    assert list(sacctmgr.lines([first], document("40", first, waits))) == []
