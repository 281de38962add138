"""`gpuwaste model evaluate`: a small log end to end, and the logs that say too little."""

import json
from pathlib import Path

import pytest
from tests.integration.models.evaluate.logs import mixed_jobs
from tests.public_data import public

from gpuwaste.cli.main import main

ROW = "{id} {submit} 5 {run} 2 -1 -1 2 3600 -1 {status} {user} 1 -1 1 1 -1 -1\n"


def swf(path: Path, *, users: bool = True) -> Path:
    """Write the small log, or one that knows neither users nor requests."""
    rows = []
    for job in mixed_jobs(400):
        status, user = int(job.state == "COMPLETED"), int(job.user[1:]) + 1
        text = ROW.format(id=job.job_id, submit=job.submit - 1_700_000_000, run=job.elapsed_s, status=status, user=user)
        cells = text.split()
        if not users:
            for place in (7, 8, 11, 12, 14, 15):
                cells[place] = "-1"
        rows.append(" ".join(cells))
    path.write_text("; Version: 2.2\n; UnixStartTime: 1700000000\n" + "\n".join(rows) + "\n")
    return path


def test_a_small_log_end_to_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tables on stdout, the rule of ends on each, both protocols apart."""
    path = swf(tmp_path / "small.swf")
    words = ["model", "evaluate", "--swf", str(path), "--targets", "failure", "--protocol", "jfp", "--threads", "1"]
    assert main(words) == 0
    text = capsys.readouterr().out
    assert "user's last outcome" in text
    assert "ends: accounting" in text
    assert "not available at submission" in text


def test_json_is_one_object_and_the_facts_are_on_stderr(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Standard output is {target: {method: {metric: value}}} and nothing else."""
    path = swf(tmp_path / "small.swf")
    assert (
        main(["model", "evaluate", "--swf", str(path), "--targets", "failure,memory", "--json", "--threads", "1"]) == 0
    )
    printed = capsys.readouterr()
    document = json.loads(printed.out)
    assert list(document) == ["failure"]
    assert "jfp" not in document["failure"]
    assert 0 <= document["failure"]["model"]["average_precision"] <= 1
    assert "memory: n/a" in printed.err
    assert "ends of earlier jobs are known from accounting" in printed.err


def test_a_file_of_sacct_and_a_search(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What sacct -P wrote is judged by the same rules; a search does not change what is told."""
    head = "JobID|JobIDRaw|User|Submit|Start|End|ElapsedRaw|State|TimelimitRaw|ReqTRES"
    form = "{0}|{0}|{1}|{2}|{2}|{3}|{4}|{5}|60|cpu=2,node=1"
    rows = [form.format(j.job_id, j.user, j.submit, j.end, j.elapsed_s, j.state) for j in mixed_jobs(300)]
    path = tmp_path / "sacct.txt"
    path.write_text("\n".join([head, *rows, ""]))
    words = [
        "model",
        "evaluate",
        "--sacct",
        str(path),
        "--clusters",
        "c",
        "--targets",
        "failure",
        "--trials",
        "1",
        "--json",
    ]
    assert main([*words, "--threads", "1"]) == 0
    printed = capsys.readouterr()
    assert "300 jobs of 10 users" in printed.err
    assert json.loads(printed.out)["failure"]["last_outcome"]["jobs"] == 90


def test_a_log_without_users_and_requests_is_exit_code_3(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line on stderr, nothing on stdout."""
    assert main(["model", "evaluate", "--swf", str(swf(tmp_path / "bare.swf", users=False))]) == 3
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1


def test_lublin_256_is_exit_code_3(capsys: pytest.CaptureFixture[str]) -> None:
    """The synthetic log of the archive names neither users nor requests."""
    assert main(["model", "evaluate", "--swf", str(public("swf/lublin_256.swf.xz"))]) == 3
    assert capsys.readouterr().err.count("\n") == 1


def test_no_such_target_is_wrong_usage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The known ones are named, before the log is read."""
    assert main(["model", "evaluate", "--swf", str(tmp_path / "none"), "--targets", "sunshine"]) == 2
    assert "failure" in capsys.readouterr().err
