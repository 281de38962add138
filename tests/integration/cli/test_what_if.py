"""`gpuwaste simulate what-if` and `compare`: base and change of a log, kept results side by side, pages, refusals."""

import csv
import io
import json
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from tests.integration.cli.test_simulate import ROWS, simulated, swf

from gpuwaste.cli import simulate_whatif
from gpuwaste.cli.main import main
from gpuwaste.core.clock import SystemClock
from gpuwaste.core.units import DAY_S
from gpuwaste.jobs.history.swf_table import swf_table
from gpuwaste.jobs.run_store import upsert_jobs
from gpuwaste.ledger.hour import AllocationHour
from gpuwaste.ledger.hour_store import upsert_hours
from gpuwaste.sim import simulation
from gpuwaste.sim.schedulers import easy
from gpuwaste.sim.simulation import Machine, simulate
from gpuwaste.sim.whatif import WhatIfCase
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.store.hub.hub_store import HubStore


def long_log(path: Path) -> Path:
    """Write a log of 27 days in which a user asks for much more time than their jobs take."""
    return swf(path, [(n, n * DAY_S // 3, 0, 30_000 + 7000 * (n % 5), 1 + n % 4, 90_000) for n in range(1, 81)])


@pytest.fixture
def config(tmp_path: Path) -> str:
    """Return a configuration whose state directory is there."""
    (tmp_path / "state").mkdir()
    path = tmp_path / "gpuwaste.toml"
    path.write_text(f'[hub]\nstate_dir = "{tmp_path}/state"\n')
    return str(path)


def test_a_larger_machine_by_hand(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """On twice the processors the four jobs of the small log wait for nothing; the difference says so."""
    path, jobs = swf(tmp_path / "small.swf", ROWS), tmp_path / "jobs.csv"
    found = simulated(capsys, "what-if", "processors=+5", "--swf", str(path), "-o", str(jobs))
    (difference,) = found["differences"]
    assert (difference["change"], difference["scheduler"], difference["processors"]) == ("processors=+5", "easy", 9)
    assert difference["figures"]["mean_wait_s"] == {"base": 52.5, "changed": 0.0, "difference": -52.5}
    assert (difference["earlier"], difference["later"]) == (0.5, 0.0)
    assert found["schedulers"]["easy"]["mean_wait_s"] == 52.5
    rows = list(csv.DictReader(jobs.open()))
    assert [row["processors=+5:easy start"] for row in rows] == ["0", "10", "20", "30"]
    assert [row["easy_start"] for row in rows] == ["0", "100", "20", "150"]


def test_the_text_begins_with_the_difference(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The difference with its interval comes before the schedulers' table; what is not modelled is told."""
    assert main(["simulate", "what-if", "limits", "--swf", str(long_log(tmp_path / "log.swf"))]) == 0
    text = capsys.readouterr().out
    assert "limits, easy: time limits from each user's ended jobs\n" in text
    assert text.index("DIFFERENCE") < text.index("What each scheduler would have done")
    assert "95 %:" in text
    assert "jobs killed at the new limit" in text
    assert "not modelled" in text
    assert [line for line in text.splitlines() if len(line) > 80] == []


def test_walltimes_of_the_model_are_learnt_in_order(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With the median of ended jobs as walltime the schedule is another one, and the document says which."""
    path = str(long_log(tmp_path / "log.swf"))
    plain = simulated(capsys, "--swf", path)
    model = simulated(capsys, "--swf", path, "--walltime", "model")
    assert model["walltime"] == "model"
    assert model["schedulers"]["easy"]["mean_wait_s"] != plain["schedulers"]["easy"]["mean_wait_s"]


def test_right_sized_requests_of_a_store(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Four jobs ask for all 4 GPUs and use one each: one after the other as asked, at once with what was used.

    A fifth is not known to the ledger and keeps its 4 GPUs, so it waits for the others on both sides.
    """
    store, start = HubStore.open(tmp_path / "hub.duckdb", SystemClock()), 1_700_000_000 // 3600 * 3600
    jobs = [
        JobRecord(
            "gw", n, start + n, user="u", time_limit_s=1000, req_tres="cpu=4,node=1,gres/gpu=4", gpus=4, cpus=4,
            start=start + 1000 * n, end=start + 1000 * (n + 1), elapsed_s=1000, state="COMPLETED",
        )
        for n in range(5)
    ]  # fmt: skip
    upsert_jobs(store, jobs)
    seen = [(job, gpu, {90 if gpu == 0 else 0: 1000}) for job in jobs[:4] for gpu in range(4)]
    upsert_hours(store, [hour for one in seen for hour in hours_of(*one)])
    store.close()
    found = simulated(capsys, "what-if", "gpus", "--store", str(tmp_path / "hub.duckdb"))
    assert (found["resource"], found["processors"]) == ("gpus", 4)
    (difference,) = found["differences"]
    assert difference["facts"]["jobs with known GPU use"] == 4
    assert difference["facts"]["jobs with a smaller request"] == 4
    wait = difference["figures"]["mean_wait_s"]
    assert wait["base"] == sum(1000 * n - n for n in range(5)) / 5
    assert wait["changed"] == (1003 - 4) / 5
    assert difference["figures"]["held_h"]["difference"] == pytest.approx(-4 * 3 * 1000 / 3600, abs=1e-5)


def hours_of(job: JobRecord, gpu: int, util: dict[int, int]) -> list[AllocationHour]:
    """Return the hours of one GPU of a run, cut at whole hours; `util` has one percentage, of all seconds."""
    assert job.start is not None
    assert job.end is not None
    (pct,) = util
    edges = sorted({job.start, job.end, *range(-(-job.start // 3600) * 3600, job.end, 3600)})
    return [
        AllocationHour(
            job.run_key, "gpu1", f"GPU-{job.job_id}-{gpu}", t0 - t0 % 3600, 1, t0 * 1000, t1 * 1000,
            final=True, util_ms={pct: (t1 - t0) * 1000},
        )
        for t0, t1 in pairwise(edges)
    ]  # fmt: skip


def test_policies_refuse_what_they_would_have_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A user whose jobs all fail is refused once three have ended; nobody is before, nor anybody else."""
    lines = [
        "JobID|JobIDRaw|Cluster|User|Account|Partition|JobName|Submit|Start|End|ElapsedRaw|State|AllocCPUS|ReqTRES"
    ]
    for n in range(1, 21):
        user, state = ("alice", "FAILED") if n % 2 else ("bob", "COMPLETED")
        day = f"2026-01-{n:02d}T"
        cells = (f"{day}10:00:00", f"{day}10:00:10", f"{day}11:00:10", "3600", state, "2", "cpu=2,node=1")
        lines.append("|".join([str(n), str(n), "c", user, "a", "p", "train", *cells]))
    (tmp_path / "sacct.txt").write_text("\n".join(lines) + "\n")
    (tmp_path / "policies.d").mkdir()
    (tmp_path / "policies.d" / "10-fail.toml").write_text(
        '[policy]\nname = "fail"\nmode = "shadow"\n[targets.failure]\nreject = 0.9\n[sample]\npass_ratio = 0\n'
    )
    words = ["--policies", str(tmp_path / "policies.d"), "--model", "none", "--time-zone", "UTC", "--clusters", "c"]
    found = simulated(capsys, "what-if", "policy", "--sacct", str(tmp_path / "sacct.txt"), *words)
    (difference,) = found["differences"]
    assert difference["facts"] == {"jobs": 20, "jobs rejected": 7, "hours held by rejected jobs": 14.0}
    assert difference["figures"]["held_h"]["difference"] == -14.0
    assert difference["jobs"] == 13


def test_kept_results_are_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str], config: str) -> None:
    """Two kept results give the difference that one simulation of both gives; equal ones give none; a run is named."""
    path = str(long_log(tmp_path / "log.swf"))
    ids = []
    for name in ("fcfs", "easy,fcfs"):
        words = ["--scheduler", name, "--save", "--config", config]
        assert main(["simulate", "what-if", "limits", "--swf", path, *words, "--json"]) == 0
        ids.append(capsys.readouterr().err.split()[2])
    both = simulated(capsys, "--swf", path, "--scheduler", "fcfs,easy")["differences"][0]
    compared = _compared(capsys, f"{ids[0]},{ids[1]}", config)
    assert compared["figures"] == both["figures"]
    assert _compared(capsys, f"{ids[0]},{ids[1]}:fcfs", config)["figures"]["mean_wait_s"]["difference"] == 0
    limits = _compared(capsys, f"{ids[1]}:easy,{ids[1]}:limits:easy", config)
    assert limits["jobs"] == 80
    assert main(["simulate", "compare", *ids[:2], "--config", config]) == 0
    assert "mean wait" in capsys.readouterr().out


def _compared(capsys: pytest.CaptureFixture[str], words: str, config: str) -> dict[str, Any]:
    assert main(["simulate", "compare", *words.split(","), "--config", config, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_pages_open_from_disk(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """--html writes a page whose first line is the difference, with its plots, CSV and JSON."""
    folder = tmp_path / "pages"
    words = ["--html", str(folder), "--json"]
    assert main(["simulate", "what-if", "processors=2", "--swf", str(long_log(tmp_path / "log.swf")), *words]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["differences"]
    assert str(folder / "index.html") in captured.err
    text = (folder / "simulation.html").read_text()
    assert "processors=2, easy: mean wait" in text[text.index("<h1>") : text.index("</h1>")]
    assert {"simulation.svg", "simulation.2.svg", "simulation.3.svg", "simulation.csv"} <= {
        path.name for path in folder.iterdir()
    }


def test_an_interruption_leaves_what_was_simulated(tmp_path: Path) -> None:
    """Ctrl-C in the second change leaves the first one and says what is missing."""

    def interrupted() -> Any:
        raise KeyboardInterrupt

    table = swf_table(long_log(tmp_path / "log.swf"), "c").table
    document, trace, starts = simulate(table, "log", Machine(4, "given"), ("easy",), walltime="user", first=None)
    case = WhatIfCase(table, trace, 4, "processors", table, np.arange(len(table)), interrupted)
    found = simulate_whatif.with_what_ifs(document, case, starts, (("limits", ""), ("policy", "")), None)
    assert [one.change for one in found.document.differences] == ["limits"]
    assert found.document.stopped == "Interrupted: 1 of 2 changed runs were not simulated."
    assert list(found.runs) == ["easy", "limits:easy"]


def test_an_interruption_leaves_the_schedulers_that_were_played(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C in the second scheduler leaves the first one; in the first one there is nothing to print."""

    def interrupted(*_: Any) -> Any:
        raise KeyboardInterrupt

    slow = ModuleType("slow")
    slow.__dict__.update(TITLE="never ends", starts=interrupted)
    monkeypatch.setattr(simulation, "SCHEDULERS", {"easy": easy, "slow": slow})
    table = swf_table(long_log(tmp_path / "log.swf"), "c").table
    machine = Machine(4, "given")
    document, _, starts = simulate(table, "log", machine, ("easy", "slow"), walltime="user", first=None)
    assert (list(starts), list(document.schedulers)) == (["easy"], ["easy"])
    assert document.stopped == "Interrupted: only easy was simulated."
    with pytest.raises(KeyboardInterrupt):
        simulate(table, "log", machine, ("slow",), walltime="user", first=None)


def test_progress_has_rate_and_time_left() -> None:
    """On a terminal a line counts runs with jobs a second and the seconds left, and is removed at the end."""

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    times, terminal = iter([0.0, 0.1, 2.0]), Terminal()
    progress = simulate_whatif.SimulationProgress(4, 1000, terminal, lambda: next(times))
    progress.step("limits:easy")
    assert not terminal.getvalue()
    progress.step("limits:fcfs")
    assert terminal.getvalue().strip() == "2 of 4 runs (limits:fcfs), 1,000 jobs/s, 2 s left"
    progress.clear()
    assert terminal.getvalue().endswith("\r")


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (
            ("what-if", "nope"),
            2,
            "expected one of gpus, limits, nodes, partition, policy, priority",
        ),
        (("what-if", "gpus", "--resource", "processors"), 2, "needs --resource gpus"),
        (("what-if", "gpus"), 3, "give --processors, which counts GPUs"),
        (("what-if", "nodes:a100=+1"), 2, "--scheduler easy counts processors"),
        (("what-if", "wrap=x"), 2, "expected minutes from 1 to 1440"),
        (("what-if", "processors=0"), 2, "expected a factor such as 1.2"),
        (("what-if", "limits=2"), 2, "expected a quantile"),
        (("what-if", "\x1b[31m\u202e\n"), 2, "expected one of"),
        (("compare", "../../etc", "000000000000"), 3, "expected 12 digits"),
        (("compare", "000000000000", "000000000001"), 3, "no simulation is saved under this id"),
        (("run", "--save"), 1, "no such directory: --save writes there"),
    ],
)
def test_what_is_refused_is_one_line(
    words: tuple[str, ...], code: int, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Unknown changes, values out of range and ids that are none end in one line that says what to do."""
    config = tmp_path / "c.toml"
    config.write_text(f'[hub]\nstate_dir = "{tmp_path}/none"\n')
    path = str(swf(tmp_path / "small.swf", ROWS))
    log_of = () if words[0] == "compare" else ("--swf", path)
    assert main(["simulate", *words, *log_of, "--config", str(config)]) == code
    error = capsys.readouterr().err
    assert said in error
    assert len(error.splitlines()) == 1
    assert "\x1b" not in error


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04", b"\x93NUMPY" + b"\xff" * 40])
def test_a_bad_file_of_runs_is_one_line(
    data: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str], config: str
) -> None:
    """Runs that are cut or no runs are told with what to do."""
    words = ["--scheduler", "fcfs", "--save", "--config", config]
    assert main(["simulate", "run", "--swf", str(long_log(tmp_path / "log.swf")), *words]) == 0
    identity = capsys.readouterr().err.split()[2]
    (tmp_path / "state" / "simulations" / f"{identity}.npz").write_bytes(data)
    assert main(["simulate", "compare", identity, identity, "--config", config]) != 0
    error = capsys.readouterr().err
    assert "simulate again" in error
    assert len(error.splitlines()) == 1


def test_one_change_is_proposed_and_kept_for_the_hub(
    tmp_path: Path, config: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a larger and a smaller machine the larger one, with its interval below 0; the saved file has the same."""
    path = str(long_log(tmp_path / "log.swf"))
    words = ["--swf", path, "--processors", "4", "--propose", "--config", config]
    found = ["simulate", "what-if", "processors=+4,processors=+1", *words, "--save", "--json"]
    assert main(found) == 0
    proposal = json.loads(capsys.readouterr().out)["proposal"]
    assert (proposal["change"], proposal["among"]) == ("processors=+4", 2)
    assert proposal["low_s"] <= proposal["mean_wait_s"] <= proposal["high_s"] < 0
    (kept,) = (tmp_path / "state" / "simulations").glob("*.json")
    assert json.loads(kept.read_text())["document"]["proposal"] == proposal
    assert main(["simulate", "what-if", "processors=+4", *words]) == 0
    assert "Proposal" in capsys.readouterr().out


def test_a_change_that_no_job_allows_is_left_out_of_the_proposal(
    tmp_path: Path, config: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A site whose users have no chains of short jobs gets a proposal of the other changes, and a line about it."""
    words = [
        "--swf",
        str(long_log(tmp_path / "log.swf")),
        "--processors",
        "4",
        "--config",
        config,
        "--json",
    ]
    assert main(["simulate", "what-if", "wrap,processors=+4", *words, "--propose"]) == 0
    said = capsys.readouterr()
    proposal = json.loads(said.out)["proposal"]
    assert (proposal["change"], proposal["among"]) == ("processors=+4", 1)
    assert "left out: what-if wrap: no user has a chain" in said.err
    assert main(["simulate", "what-if", "wrap", *words, "--propose"]) == 3
    assert main(["simulate", "what-if", "wrap,processors=+4", *words]) == 3
    capsys.readouterr()


def test_nothing_is_proposed_where_nothing_is_sure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A log of a day has no interval: one line says so."""
    path = str(swf(tmp_path / "small.swf", ROWS))
    assert main(["simulate", "what-if", "processors=+5", "--swf", path, "--propose"]) == 0
    assert "no change is proposed" in capsys.readouterr().err
