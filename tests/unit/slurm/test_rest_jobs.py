"""Accounting as JSON becomes the same runs as sacct's rows, or is set aside with the reason."""

import copy
import json
import lzma
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.public_data import public

from gpuwaste.core.errors import ParseError
from gpuwaste.slurm.accounting.job_record import AccountedRun, JobDetails, JobRecord
from gpuwaste.slurm.accounting.rest_jobs import parse_page
from gpuwaste.slurm.accounting.sacct_rows import ADMIN_COMMENT, FIELDS, BadRow, parse_sacct, sacct_fields
from gpuwaste.testing.rest_differences import DIFFERENCES, allowed, fields_of

FIXTURES = Path(__file__).parents[2] / "fixtures" / "slurmrestd"
OWN = FIXTURES.parent / "own_recordings"


def recorded(version: str) -> bytes:
    return lzma.decompress((FIXTURES / f"slurmdb_jobs_{version}.json.xz").read_bytes())


def capture(name: str) -> bytes:
    return public(f"fixtures/{name}").read_bytes()


def runs(data: bytes, cluster: str = "gw") -> list[JobRecord]:
    found = list(parse_page(data, cluster))
    assert not [row for row in found if isinstance(row, BadRow)]
    return [row for row in found if isinstance(row, JobRecord)]


def as_recorded(run: JobRecord) -> dict[str, Any]:
    """Return the fields of a run without those for which the recorded rows of sacct have no column."""
    steps = [asdict(step) | {"tasks": None} for step in run.steps] if isinstance(run, AccountedRun) else None
    return fields_of(run) | asdict(JobDetails()) | {"steps": steps}


def page(*jobs: Any) -> bytes:
    return json.dumps({"jobs": jobs, "errors": []}).encode()


@pytest.fixture(scope="module")
def job() -> Any:
    """Return the first job of the recording, a good one with GPUs and steps."""
    return json.loads(recorded("v0.0.42"))["jobs"][0]


@pytest.mark.parametrize(
    ("slurm", "version", "count"),
    [("24.11", "v0.0.40", 19), ("24.11", "v0.0.41", 19), ("24.11", "v0.0.42", 19), ("26.05", "v0.0.45", 18)],
)
def test_a_release_tells_what_its_sacct_tells(slurm: str, version: str, count: int) -> None:
    """Good, failed, signalled, cancelled, requeued, timed out, arrays, a het job: equal but for the list."""
    lines = (FIXTURES / f"sacct_{slurm}.txt").read_bytes().splitlines(keepends=True)
    rows = list(parse_sacct(lines, "gw", sacct_fields(["Restarts"])))
    seen = {row.run_key: row for row in rows if isinstance(row, JobRecord)}
    told = {row.run_key: row for row in runs(recorded(version))}
    assert len(seen) == len(rows) == count
    assert set(told) == set(seen)
    for key, run in told.items():
        excused = {name: value for name, value in allowed(seen[key], run).items() if hasattr(seen[key], name)}
        excused.pop("steps", None)  # are equal where their exit codes are told
        assert as_recorded(run) == as_recorded(seen[key]) | excused
    if version in {"v0.0.42", "v0.0.45"}:
        assert all(as_recorded(run) == as_recorded(seen[key]) for key, run in told.items())


def test_jobs_of_slurmctld_are_named() -> None:
    """Squeue --json and scontrol --json write other jobs than accounting: the reason says what to write."""
    job = {"job_id": 7, "job_state": ["RUNNING"], "submit_time": {"set": True, "infinite": False, "number": 1777866658}}
    (bad,) = parse_page(page(job), "gw")
    assert isinstance(bad, BadRow)
    assert bad.reason == (
        "a job as squeue --json and scontrol --json write it, not one of accounting: write the file with sacct --json"
    )


def _as_23_02(found: Any, name: str) -> None:
    """Give a step the id of v0.0.39: DUMP_FUNC(SLURM_STEP_ID) of data_parser/v0.0.39 in Slurm 23.02."""
    job_id, _, step = name.partition(".")
    step, _, component = step.partition("+")
    more = {"step_het_component": int(component)} if component else {}
    found["step"]["id"] = {"job_id": int(job_id), **more, "step_id": step}


def test_steps_of_23_02_are_read() -> None:
    """v0.0.39 has an object for the id of a step: the runs are those of the same jobs in v0.0.40."""
    found = json.loads(recorded("v0.0.40"))
    steps = [step for one in found["jobs"] for step in one["steps"]]
    for step in steps:
        _as_23_02(step, step["step"]["id"])
    assert {step["step"]["id"]["step_id"] for step in steps} >= {"batch", "0", "1"}
    assert runs(json.dumps(found).encode()) == runs(recorded("v0.0.40"))


def test_a_component_of_a_step_of_23_02_keeps_its_number(job: Any) -> None:
    """A heterogeneous step is 0+1, as sacct prints it."""
    changed = copy.deepcopy(job)
    _as_23_02(changed["steps"][-1], "1.0+1")
    (run,) = runs(page(changed))
    assert isinstance(run, AccountedRun)
    assert run.steps[-1].step == "0+1"


def test_22_05_as_it_was_recorded() -> None:
    """What v0.0.38 tells: GPUs, arrays, a het job, steps folded; what it cannot tell is unknown, not 0."""
    found = {
        run.printed_id: run
        for run in runs(lzma.decompress((OWN / "slurmrestd_0.0.38_slurmdb_jobs.json.xz").read_bytes()))
    }
    first = found["1"]
    assert (first.user, first.gpus, first.gpu_type, first.cpus, first.time_limit_s) == ("alice", 2, "a100", 2, 300)
    assert (first.max_rss_b, first.total_cpu_s, first.interactive) == (11522048, 6.241, False)
    assert (first.exit_code, found["3_1"].exit_code, found["3_1"].state) == (0, None, "FAILED")
    assert (found["3_2"].array_job_id, found["3_2"].array_task_id, found["3_2"].job_id) == (3, 2, 3)
    assert (found["4+1"].het_job_id, found["4+1"].het_offset, found["4+1"].job_id) == (4, 1, 5)
    assert found["1219"].interactive


def test_sacct_json_is_the_same_shape() -> None:
    """`sacct --json` of 22.05 is read by the same code."""
    (run,) = runs((OWN / "sacct_2205.json").read_bytes())[:1]
    assert (run.job_id, run.user, run.gpus, run.req_tres.count("gres/gpu")) == (1, "alice", 2, 1)


@pytest.mark.parametrize(("name", "count"), [("mila", 8), ("fromage", 13)])
def test_25_05_as_a_site_recorded_it(name: str, count: int) -> None:
    """`sacct --json` of v0.0.43: typed GPUs that are counted without an untyped total, running jobs without an end."""
    found = runs(capture(f"mila_sarc/{name}_1714003200.json"), name)
    assert len(found) == count
    assert all(run.user and run.account and run.submit for run in found)
    running = [run for run in found if run.state == "RUNNING"]
    assert running
    assert all(run.end is None and run.gpus and run.gpu_type for run in running)


def test_the_user_is_the_job_s_own(job: Any) -> None:
    """26.05 leaves association.user empty: the field of the job counts, and the association's where that is missing."""
    empty = copy.deepcopy(job)
    empty["association"]["user"] = ""
    assert runs(page(empty))[0].user == "alice"
    del empty["user"]
    assert runs(page(empty))[0].user == ""
    empty["association"]["user"] = "bob"
    assert runs(page(empty))[0].user == "bob"


def test_the_verdict_is_read_from_the_administrators_comment(job: Any) -> None:
    """Beside other text; a `comment` that is one text, or null, is nobody's token."""
    for comment, verdict in (
        ({"administrator": "ops;gw=0123456789abcdef", "job": ";gw=aaaaaaaaaaaaaaaa", "system": ""}, "0123456789abcdef"),
        ({"administrator": None}, ""),
        (";gw=0123456789abcdef", ""),
        (None, ""),
    ):
        assert runs(page(job | {"comment": comment}))[0].verdict_id == verdict


def test_another_cluster_s_job_is_set_aside(job: Any) -> None:
    """One slurmdbd serves several clusters; "" takes each job for its own cluster's."""
    (row,) = parse_page(page(job), "other")
    assert isinstance(row, BadRow)
    assert "a job of gw, where other was requested" in row.reason
    assert runs(page(job), "")[0].cluster == "gw"


def test_one_bad_job_loses_no_other(job: Any) -> None:
    """It is set aside with its number, the reason and its beginning."""
    broken = copy.deepcopy(job) | {"job_id": None}
    rows = list(parse_page(page(job, broken, "x", job), "gw"))
    assert [type(row) for row in rows] == [AccountedRun, BadRow, BadRow, AccountedRun]
    assert isinstance(rows[1], BadRow)
    assert isinstance(rows[2], BadRow)
    assert (rows[1].line, rows[1].reason) == (2, "job_id or time.submission is missing")
    assert rows[1].raw.startswith('{"account": "proj1"')
    assert (rows[2].line, rows[2].raw) == (3, '"x"')


@pytest.mark.parametrize(
    ("path", "found", "reason"),
    [
        (("time", "limit"), "soon", "time.limit: expected a number"),
        (("time",), "now", "time: expected an object"),
        (("steps",), "none", "steps: expected a list"),
        (("tres", "allocated"), {"cpu": 1}, "tres.allocated: expected a list"),
        (("name",), ["a"], "name: expected a text"),
        (("time", "elapsed"), 1 << 64, "larger than any number"),
    ],
)
def test_a_wrong_kind_is_named(job: Any, path: tuple[str, ...], found: Any, reason: str) -> None:
    """The reason names the field as it stands in the JSON."""
    changed = copy.deepcopy(job)
    inner = changed
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = found
    (row,) = parse_page(page(changed), "gw")
    assert isinstance(row, BadRow)
    assert reason in row.reason


def test_numbers_that_are_none_are_unknown(job: Any) -> None:
    """NO_VAL, negative and null amounts give no value; the job stays."""
    for nothing in (None, -1, 4294967294, {"set": False, "infinite": False, "number": 0}):
        changed = copy.deepcopy(job)
        changed["time"] |= {"limit": nothing, "elapsed": nothing, "suspended": nothing}
        changed["restart_cnt"] = nothing
        (run,) = runs(page(changed))
        assert (run.time_limit_s, run.elapsed_s, run.suspended_s, run.restarts) == (None, None, 0, None)


def test_hours_of_processor_time_are_told_as_sacct_prints_them(job: Any) -> None:
    """Milliseconds below an hour, whole seconds from there."""
    changed = copy.deepcopy(job)
    changed["steps"] = changed["steps"][:1]
    for seconds, told in ((3599, 3599.999), (3600, 3600.0)):
        changed["steps"][0]["time"]["total"] = {"seconds": seconds, "microseconds": 999_999}
        assert runs(page(changed))[0].total_cpu_s == told


def test_a_cut_off_page_is_an_error(job: Any) -> None:
    """Half a page is not taken for a whole one."""
    with pytest.raises(ParseError, match=r"cut off|invalid JSON"):
        list(parse_page(page(job)[:-40], "gw"))


MUTATIONS = st.one_of(st.none(), st.integers(), st.floats(), st.text(max_size=5), st.just([]), st.just({}))


@given(st.data())
def test_any_field_may_hold_anything(data: st.DataObject) -> None:
    """With any one value replaced by any other a job is read, perhaps without a field, or set aside; all is UTF-8."""
    changed = json.loads(recorded("v0.0.42"))["jobs"][0]
    inner: Any = changed
    while True:
        key = data.draw(st.sampled_from(sorted(inner) if isinstance(inner, dict) else range(len(inner))))
        if not isinstance(inner[key], dict | list) or not inner[key] or data.draw(st.booleans()):
            inner[key] = data.draw(MUTATIONS)
            break
        inner = inner[key]
    *without, row = parse_page(page(changed), "gw")
    repr([*without, row]).encode()
    assert isinstance(row, JobRecord | BadRow)
    assert len(without) <= 1
    assert all(isinstance(found, BadRow) and found.field for found in without)


def test_the_columns_of_the_recording_are_those_that_are_asked() -> None:
    """The recorded rows of sacct have the columns that the client asks for today, but for the newest."""
    line = (FIXTURES / "sacct_24.11.txt").read_bytes().splitlines()[0]
    assert line.count(b"\x1f") + 1 == len(sacct_fields(["Restarts"])) == len({*FIELDS, "Restarts"} - {ADMIN_COMMENT})


def test_a_wrong_value_is_no_listed_difference() -> None:
    """The list excuses what slurmrestd cannot tell, never a value that is there and wrong."""
    seen = JobRecord("gw", 7, 1, start=2, end=5, state="FAILED", exit_code=3, submit_line="sbatch a", restarts=1)
    silent = replace(seen, exit_code=None, submit_line="", restarts=None)
    assert set(allowed(seen, silent)) == {"exit_code", "submit_line", "restarts"}
    assert not allowed(seen, replace(seen, exit_code=4, submit_line="sbatch b", restarts=2, elapsed_s=9))
    assert {item.name for item in DIFFERENCES} <= set(fields_of(AccountedRun("gw", 7, 1)))


@pytest.mark.parametrize("limit", [0, {"set": True, "infinite": False, "number": 0}, {"set": False, "number": 5}, None])
def test_a_limit_of_0_is_unknown(limit: Any) -> None:
    """No job may run for 0 minutes: its limit was not kept."""
    (run,) = runs(page({"job_id": 7, "cluster": "gw", "time": {"submission": 9, "limit": limit}}))
    assert run.time_limit_s is None


def test_details_and_steps_are_told() -> None:
    """What only analytics reads: as sacct prints it, steps with their tasks, extern not kept."""
    jobs = json.loads(recorded("v0.0.42"))["jobs"]
    job = next(job for job in jobs if len(job["steps"]) == 1 and '"disk"' in json.dumps(job["steps"]))
    (batch,) = job["steps"]
    steps = [batch, *(copy.deepcopy(batch) for _ in range(2))]
    for step, name in zip(steps[1:], ("1.extern", "1.0"), strict=True):
        step["step"]["id"] = name
    found = job | {"steps": steps, "constraints": "a|b", "reservation": {"id": 4, "name": "course"}}
    (run,) = runs(page(found))
    assert isinstance(run, AccountedRun)
    details = run.details
    assert (details.eligible, details.priority, details.flags) == (run.submit, 1, "SchedMain,StartReceived")
    assert (details.reason, details.constraints, details.reservation) == ("", "a|b", "course")
    (alone,) = runs(page(job))
    assert isinstance(alone, AccountedRun)
    assert (details.n_steps, alone.details.n_steps) == (1, 0)
    assert details.disk_read_b == 3 * (alone.details.disk_read_b or -1)
    assert [(step.step, step.tasks) for step in run.steps] == [("batch", 1), ("0", 1)]


def test_a_detail_of_a_wrong_kind_costs_the_run_nothing_else(job: Any) -> None:
    """Each is unknown and named; the run comes with all the rest."""
    steps = [job["steps"][0] | {"statistics": {"energy": {"consumed": "much"}}}, *job["steps"][1:]]
    *aside, run = parse_page(page(job | {"priority": "high", "reservation": [], "steps": steps}), "gw")
    assert {row.field for row in aside if isinstance(row, BadRow)} == {"priority", "reservation.name", "steps.energy"}
    assert isinstance(run, AccountedRun)
    assert (run.details.priority, run.details.reservation, run.details.flags) == (None, None, "SchedMain,StartReceived")
    assert len(run.steps) == len(steps)
