"""jobstats' own code writes summaries, and they are read: GPUWASTE_JOBSTATS names a checkout of it."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gpuwaste.slurm.accounting.jobstats_comment import jobstats_use
from gpuwaste.testing.patience import patient

CHECKOUT = os.environ.get("GPUWASTE_JOBSTATS", "")
WRITER = Path(__file__).with_name("jobstats_writer.py")
pytestmark = pytest.mark.skipif(not CHECKOUT, reason="no GPUWASTE_JOBSTATS")


def written(case: dict[str, Any]) -> str:
    """Return AdminComment as jobstats sets it."""
    command = [sys.executable, str(WRITER), CHECKOUT]
    done = subprocess.run(
        command, input=json.dumps(case), capture_output=True, text=True, check=True, timeout=patient(60)
    )
    return done.stdout.strip()


def test_any_run_is_read_as_prometheus_had_it(draw: random.Random) -> None:
    """Means to a tenth, 0 only where Prometheus has 0, memory to the byte, GPUs without a figure unknown."""
    means = ["0", "100", "0.04", f"{draw.uniform(0, 100):.9f}", None]
    memory = [str(draw.randrange(80 << 30)) for _ in means]
    gpus = {"gpu_utilization": {str(g): mean for g, mean in enumerate(means)}}
    gpus |= {"gpu_used_memory": {str(g): text for g, text in enumerate(memory)}}
    gpus |= {"gpu_total_memory": {str(g): str(80 << 30) for g in range(len(means))}}
    case: dict[str, Any] = {"start": 1_700_000_000, "end": 1_700_086_400, "gpus": len(means), "nodes": {"gpu1": gpus}}
    found = jobstats_use(written(case), len(means), case["start"], case["end"])
    assert [use.mean_pct for use in found] == [None if text is None else round(float(text), 1) for text in means]
    assert [use.peak_pct for use in found] == [0.0 if text == "0" else None for text in means]
    assert [use.gpu_mem_max_b for use in found] == [int(text) for text in memory]


def test_a_short_run_has_no_summary() -> None:
    """The text is Short: nothing is known, and nothing is wrong."""
    case: dict[str, Any] = {"start": 1_700_000_000, "end": 1_700_000_020, "gpus": 1, "nodes": {}}
    text = written(case)
    assert text == "JS1:Short"
    assert jobstats_use(text, 1, case["start"], case["end"]) == ()


def test_the_recorded_summary_is_still_what_jobstats_writes() -> None:
    """The fixture of the other tests is not out of date."""
    folder = Path(__file__).parents[1] / "fixtures" / "jobstats"
    case = json.loads((folder / "case.json").read_bytes())
    kept = (folder / "js1_1.0.0.txt").read_text(encoding="ascii")
    bounds = (case["gpus"], case["start"], case["end"])
    assert jobstats_use(written(case), *bounds) == jobstats_use(kept, *bounds) != ()
