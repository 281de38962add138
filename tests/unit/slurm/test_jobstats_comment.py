"""Use of GPUs in accounting: jobstats' summaries, and Slurm's own readings by step."""

import base64
import gzip
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.slurm.test_sacct import JOB, more_row, more_step, read_more, row

from gpuwaste.core.errors import ParseError
from gpuwaste.slurm.accounting.accounted_use import AccountedUse, StepPeaks
from gpuwaste.slurm.accounting.job_record import AccountedRun
from gpuwaste.slurm.accounting.jobstats_comment import PREFIX, jobstats_use
from gpuwaste.slurm.accounting.rest_jobs import parse_page
from gpuwaste.slurm.accounting.sacct_rows import BadRow, parse_sacct

GIB = 1024**3
RECORDED = Path(__file__).parents[2] / "fixtures" / "jobstats" / "js1_1.0.0.txt"
START, END = 1_700_000_000, 1_700_003_600
GPU = {"gpu_utilization": {"0": 12.5}, "gpu_used_memory": {"0": GIB}, "gpu_total_memory": {"0": 80 * GIB}}


def packed(data: bytes) -> str:
    return PREFIX + base64.b64encode(gzip.compress(data, mtime=0)).decode("ascii")


def summary(nodes: Any = None, total_time: Any = 3600) -> str:
    nodes = {"gpu1": GPU} if nodes is None else nodes
    return packed(json.dumps({"nodes": nodes, "total_time": total_time, "gpus": 1}).encode())


def uses(comment: str, gpus: int = 4) -> tuple[AccountedUse, ...]:
    return jobstats_use(comment, gpus, START, END)


def test_a_summary_of_jobstats_is_read() -> None:
    """Each GPU with mean, memory and its node's CPUs; only a mean without a fraction is 0 % throughout."""
    first, second, third = uses(RECORDED.read_text(encoding="ascii"))
    assert first == AccountedUse("jobstats", "gpu1", "0", 0.0, 0.0, 0, 80 * GIB, 8, 1234.6, GIB, 64 * GIB)
    assert (second.gpu, second.mean_pct, second.peak_pct) == ("1", 0.0, None)
    assert (third.node, third.gpu, third.mean_pct, third.gpu_mem_max_b) == ("gpu2", "3", 93.2, 75 * GIB)


def test_what_jobstats_does_not_know_is_unknown() -> None:
    """MIG instances have no utilization, a node without GPU figures has a row of its own; "Short" has nothing."""
    nodes = {"gpu1": {name: GPU[name] for name in ("gpu_used_memory", "gpu_total_memory")}, "gpu2": {"cpus": 4}}
    mig, host = uses(summary(nodes))
    assert (mig.gpu, mig.mean_pct, mig.gpu_mem_max_b) == ("0", None, GIB)
    assert (host.node, host.gpu, host.cpus) == ("gpu2", "", 4)
    for text in ("JS1:Short", "JS1:None", "", "weather;gw=abc", summary({})):
        assert uses(text) == ()


def test_a_summary_among_other_texts_is_found() -> None:
    """Other words of the administrators and the token of a verdict stand beside it."""
    assert uses(f"moved by ops {summary()};gw=0123") == uses(summary()) != ()


@pytest.mark.parametrize(
    ("comment", "reason"),
    [
        (summary().replace("JS1", "JS2"), "format JS2"),
        (summary()[:-20], "cut off|damaged"),
        (PREFIX + "!!!", "damaged"),
        (PREFIX + base64.b64encode(b"H4s").decode(), "damaged"),
        (packed(b"0" * (33 << 20)), "larger than"),
        (PREFIX + "A" * (5 << 20), "characters"),
        (packed(b"[" * 100_000), "not what jobstats writes"),
        (packed(b'{"nodes": {"gpu1": {"gpu_utilization": {"0": NaN}}}, "total_time": 3600}'), "not what jobstats"),
        (packed(b"\xff\xfe"), "not what jobstats"),
        (summary({"gpu1": GPU | {"gpu_utilization": {"0": 101}}}), "101 is not between"),
        (summary({"gpu1": GPU | {"gpu_used_memory": {"0": -1}}}), "-1 is not between"),
        (summary({"gpu1": GPU | {"gpu_utilization": {"0": "9"}}}), "not what jobstats"),
        (summary({f"gpu{n}": GPU for n in range(5)}), "5 GPUs for a run that held 4"),
        (summary({f"n{n}": {} for n in range(20_001)}), "20001 nodes"),
        (summary({"": GPU}), "without a name"),
        (summary({"gpu1": {"gpu_utilization": {f"{n}": 1 for n in range(100_000)}}}), "100000 GPUs"),
        (summary(total_time=600), "600 s for a run of 3600 s"),
    ],
)  # fmt: skip
def test_a_bad_summary_is_one_clear_error(comment: str, reason: str) -> None:
    """Other formats, cut, bombs, texts that are no summary, figures that cannot be, another run's."""
    with pytest.raises(ParseError, match=reason):
        uses(comment)


@given(st.data())
def test_a_damaged_summary_is_a_value_or_an_error(data: st.DataObject) -> None:
    """Whatever bytes change, and wherever: nothing but a result or ParseError."""
    text = bytearray(summary().encode())
    text[data.draw(st.integers(4, len(text) - 1))] = data.draw(st.integers(33, 126))
    with suppress(ParseError):
        assert isinstance(uses(text.decode()), tuple)


def test_a_bad_summary_costs_its_run_nothing_else() -> None:
    """The run is there without use, and one line says which column could not be read."""
    job = JOB | {"AdminComment": PREFIX + "H4sI", "Start": str(START), "End": str(END)}
    bad, run = parse_sacct([row(**job)], "gw")
    assert isinstance(bad, BadRow)
    assert (bad.field, "jobstats" in bad.reason) == ("AdminComment", True)
    assert isinstance(run, AccountedRun)
    assert (run.job_id, run.uses) == (7, ())


def test_sacct_and_slurmrestd_tell_the_same() -> None:
    """A summary and readings of steps, once as rows and once as JSON."""
    tres = f"cpu=1,gres/gpumem={GIB},gres/gpuutil=180,mem=5"
    job = {"AdminComment": summary(), "Start": str(START), "End": str(END)}
    (by_rows,) = read_more(more_row(**job), more_step("batch", TRESUsageInMax=tres))
    peaks = [{"type": "gres", "name": "gpumem", "count": GIB}, {"type": "gres", "name": "gpuutil", "count": 180}]
    item = {
        "job_id": 7,
        "cluster": "gw",
        "comment": {"administrator": summary()},
        "time": {"submission": START, "start": START, "end": END},
        "state": {"current": ["COMPLETED"]},
        "tres": {"allocated": [{"type": "gres", "name": "gpu", "count": 4}]},
        "steps": [{"step": {"id": "7.batch"}, "tres": {"requested": {"max": peaks}}}],
    }
    (by_json,) = parse_page(json.dumps({"jobs": [item]}).encode(), "gw")
    assert isinstance(by_rows, AccountedRun)
    assert isinstance(by_json, AccountedRun)
    assert by_rows.uses == by_json.uses == (*uses(summary()), AccountedUse("slurm", peak_pct=180.0, gpu_mem_max_b=GIB))


@pytest.mark.parametrize(
    ("steps", "peaks"),
    [
        ({"batch": (0, 0), "0": (30, 5), "1": (80, 2)}, (80.0, 5)),
        ({"batch": (0, 0), "0": (0, 0)}, (0.0, 0)),
        ({"batch": (0, 0), "1": (0, 0)}, None),  # step 0 is not listed
        ({"batch": (0, 0), "0": (None, None)}, None),
        ({"batch": (0, 9), "0": (None, None)}, (None, 9)),
        ({"batch": (0, 0), "extern": (None, None)}, (0.0, 0)),
        ({"batch": (None, None)}, None),
    ],
)
def test_zeros_of_slurm_count_only_if_every_step_was_read(
    steps: dict[str, tuple[int | None, int | None]], peaks: tuple[float | None, int | None] | None
) -> None:
    """A peak is the largest of all steps; without one of them, a zero is not known."""
    found = StepPeaks()
    for name, readings in steps.items():
        found.add(name, *readings)
    assert [(use.peak_pct, use.gpu_mem_max_b) for use in found.use()] == ([] if peaks is None else [peaks])
