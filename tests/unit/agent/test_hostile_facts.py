"""What a node's agent reads of others: files of the prolog, and the hub's map. Nothing in them breaks it."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.examples import examples

from gpuwaste.agent.facts.prolog_files import PrologSource
from gpuwaste.agent.facts.remote import RunAnswer
from gpuwaste.agent.facts.run_facts import LocalRun
from gpuwaste.agent.node_map import of_map
from gpuwaste.core.codec import convert
from gpuwaste.core.errors import ParseError
from gpuwaste.jobs.map_types import MapAnswer

NAMES = st.sampled_from(
    ["7.start", "7.end", ".7.start.99", "0.start", "99999999999.start", "7.start.x", "a\nb.end", "-1.end"]
)
LINES = st.lists(
    st.one_of(
        st.binary(max_size=30),
        st.sampled_from(
            [b"gpus=0-3", b"gpus=0-99999999999", b"gpus=3-1", b"shards=-1", b"shards=" + b"9" * 99, b"job=8"]
        ),
    ),
    max_size=6,
).map(b"\n".join)
LEAF = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8), st.just(10**400), st.just(7)
)
VALUE: st.SearchStrategy[Any] = st.recursive(
    LEAF,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=5,
)


@given(st.dictionaries(NAMES, LINES, max_size=4))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(60))
def test_any_files_of_a_prolog_are_facts_or_nothing(tmp_path: Path, files: dict[str, bytes]) -> None:
    """Any names and any bytes: the scan goes on, and positions are small whole numbers."""
    jobs = tmp_path / "jobs"
    jobs.mkdir(exist_ok=True)
    for path in jobs.iterdir():
        path.unlink()
    for name, data in files.items():
        (jobs / name).write_bytes(data)
    source = PrologSource(tmp_path / "jobs")
    source.scan()
    for job, file in source.starts.items():
        run = LocalRun(job, file.time_us, file.time_us, prolog_us=file.time_us)
        facts = source.facts(run)
        assert facts is None or all(0 <= position < 100_000 for position in facts.positions)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes device files")
def test_links_pipes_devices_and_hard_links_are_no_facts(tmp_path: Path) -> None:
    """None is opened to its end, followed or waited for; what they lead to stays as it was."""
    jobs = tmp_path / "jobs"
    jobs.mkdir()
    source = PrologSource(jobs)
    secret = tmp_path / "secret"
    secret.write_text("gpus=0\n", encoding="ascii")
    (jobs / "7.start").symlink_to(secret)
    os.mkfifo(jobs / "8.start")
    (jobs / "9.start").mkdir()
    os.mknod(jobs / "10.start", 0o20666, os.makedev(1, 5))  # /dev/zero
    source.scan()
    assert not any(file.fields for file in source.starts.values())
    assert secret.read_text(encoding="ascii") == "gpus=0\n"


@given(VALUE, st.dictionaries(st.sampled_from(["job_id", "nodes", "start", "state", "end", "restarts"]), VALUE))
def test_any_map_of_a_hub_is_an_answer_or_nothing(value: Any, members: dict[str, Any]) -> None:
    """A hub that talks nonsense gives no start, no state and no position that is none."""
    good = {"job_id": 7, "start": 9, "state": "RUNNING", "nodes": {"gpu1": {"positions": [0], "shards": 0, "gpus": 1}}}
    for job in (value, members, {**good, **members}, {**good, "nodes": {"gpu1": value}}):
        try:
            answer = of_map(convert({"jobs": [json.loads(json.dumps(job))]}, MapAnswer, "the map").jobs, "gpu1", (7, 0))
        except ParseError:
            continue
        if answer is not None:
            assert isinstance(answer, RunAnswer)
            assert isinstance(answer.start, int)
            assert isinstance(answer.state, str)
            assert answer.positions is None or all(isinstance(at, int) and at >= 0 for at in answer.positions)
