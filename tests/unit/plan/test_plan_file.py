"""Plan files: what is written comes back, and what has changed or is hostile is refused with one line."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.plan.facts import NOW, SCRIPT, accepted, site

from gpuwaste.core.codec import convert
from gpuwaste.core.errors import GpuwasteError, ParseError, SlurmError, UsageError
from gpuwaste.plan.builder import Sources, build_plan
from gpuwaste.plan.plan_file import (
    MAX_PLAN_B,
    PlanFile,
    candidate_of,
    plan_file,
    read_plan,
    submit_candidate,
    unchanged,
    write_plan,
)
from gpuwaste.plan.plan_request import PlannedSubmission

KEYS = st.sampled_from(["plan", "words", "gpuwaste_plan", "candidates", "chosen"])
LEAVES = st.none() | st.integers() | st.text(max_size=5)
JSON = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4), max_leaves=12
)


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write a script and its plan in the folder that is current then."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("SBATCH_")]:
        monkeypatch.delenv(name)
    (tmp_path / "train.sh").write_text(SCRIPT)
    submission = PlannedSubmission(("--comment=x", "train.sh", "--seed", "3"), SCRIPT.encode(), {}, "alice", NOW)
    plan = build_plan(submission, site(), Sources(lambda _: accepted()), "fastest")
    write_plan(tmp_path / "a.plan", plan_file(submission, str(tmp_path), plan))
    return tmp_path / "a.plan"


def changed(path: Path, **fields: Any) -> Path:
    """Write other fields into the plan file."""
    found = json.loads(path.read_text())
    path.write_text(json.dumps({**found, **fields}))
    return path


def test_a_plan_comes_back(path: Path) -> None:
    """Written and read it is the same, only its owner may read it, and its submission is what was planned."""
    plan = read_plan(path)
    assert path.stat().st_mode & 0o777 == 0o600
    one = candidate_of(path, plan, None)
    assert one.number == plan.plan.chosen
    submission = unchanged(path, plan, "alice", NOW)
    assert submission.with_options(one.options)[-3:] == ("train.sh", "--seed", "3")


def test_a_changed_script_is_refused(path: Path) -> None:
    """One byte more in the script, and the plan is no longer its plan."""
    (path.parent / "train.sh").write_text(SCRIPT + "#\n")
    with pytest.raises(UsageError, match=r"train.sh has changed since the plan was made: plan again"):
        unchanged(path, read_plan(path), "alice", NOW)


def test_what_else_has_changed_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Another user, another folder, a variable that sbatch reads."""
    plan = read_plan(path)
    with pytest.raises(UsageError, match="a plan of user 'alice'"):
        unchanged(path, plan, "bob", NOW)
    with monkeypatch.context() as patch:
        patch.setenv("SBATCH_PARTITION", "other")
        with pytest.raises(UsageError, match="SBATCH_PARTITION has changed since"):
            unchanged(path, plan, "alice", NOW)
    monkeypatch.chdir("/")
    with pytest.raises(UsageError, match="planned in"):
        unchanged(path, plan, "alice", NOW)


def test_a_plan_is_submitted_once(path: Path) -> None:
    """A plan that has its jobs is refused, with the first of them."""
    with pytest.raises(UsageError, match="already submitted as job 7"):
        candidate_of(path, read_plan(changed(path, submitted=[7, 8])), None)


def test_only_what_is_valid_is_taken(path: Path) -> None:
    """An invalid candidate is refused with its reason, a number that is not there with those that are."""
    plan = read_plan(path)
    bad = next(one for one in plan.plan.candidates if one.status == "invalid")
    with pytest.raises(UsageError, match=r"cannot be submitted: (partition|QOS)"):
        candidate_of(path, plan, bad.number)
    with pytest.raises(UsageError, match="no candidate 99"):
        candidate_of(path, plan, 99)


@pytest.mark.parametrize("options", [["evil.sh"], ["--"], ["--time=5", "evil.sh"], ["-"], ["-p", "x"]])
def test_options_that_are_none_are_refused(path: Path, options: list[str]) -> None:
    """A word that is no option would be taken as the script: a plan that somebody edited cannot do that."""
    plan = json.loads(path.read_text())["plan"]
    plan["candidates"][0]["options"] = options
    with pytest.raises(UsageError, match="candidate 1"):
        unchanged(path, read_plan(changed(path, plan=plan)), "alice", NOW)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "not JSON"),
        (b"\xff\xfe\x00", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[]", "not a plan file"),
        (b"{}", "not a plan file"),
        (b'{"gpuwaste_plan": 2}', "plan version 2"),
        (b'{"gpuwaste_plan": 1}', "missing required field"),
        (b" " * (MAX_PLAN_B + 1), "more than 1048576 bytes"),
    ],
)
def test_a_hostile_file_is_one_line(tmp_path: Path, data: bytes, said: str) -> None:
    """Empty, binary, deep, of another kind, of another version, cut off, huge."""
    (tmp_path / "x.plan").write_bytes(data)
    with pytest.raises(ParseError, match=said) as caught:
        read_plan(tmp_path / "x.plan")
    assert "\n" not in str(caught.value)


def test_what_is_no_file_is_one_line(tmp_path: Path) -> None:
    """A folder, a pipe, nothing: not waited for."""
    os.mkfifo(tmp_path / "pipe")
    for name in ("pipe", "none", "."):
        with pytest.raises(UsageError, match="cannot be read"):
            read_plan(tmp_path / name)


@given(JSON)
def test_whatever_json_is_an_error_of_ours(value: object) -> None:
    """No shape of JSON comes to anything but a GpuwasteError."""
    with pytest.raises(GpuwasteError):
        convert(value, PlanFile, "plan")


def test_a_cascade_is_a_chain(path: Path) -> None:
    """Each job depends on the one before; where one is rejected the error names those that are there."""
    plan = read_plan(path)
    one = next(each for each in plan.plan.candidates if each.kind == "cascade")
    sent: list[tuple[str, ...]] = []

    def sbatch(words: tuple[str, ...]) -> int:
        sent.append(words)
        if len(sent) == 6:
            raise SlurmError("sbatch rejected the job: no")
        return 100 + len(sent)

    submission = unchanged(path, plan, "alice", NOW)
    assert submit_candidate(submission, one, sbatch) == [101, 102, 103]  # type: ignore[arg-type]
    assert "--dependency=afterany:102" in sent[2]
    assert not any("dependency" in word for word in sent[0])
    with pytest.raises(SlurmError, match=r"job 3 of 3: .*already submitted: 104,105"):
        submit_candidate(submission, one, sbatch)  # type: ignore[arg-type]
