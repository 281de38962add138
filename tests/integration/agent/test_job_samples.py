"""GET /v1/samples: the hub gets the samples of one run, nobody else gets any."""

import fcntl
import random
import signal
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.integration.agent.sample_node import START, WINDOW, Answer, Node, answering_node
from tests.integration.agent.test_node_store import wait_for_fold
from tests.unit.agent.fakes import START_US
from tests.unit.agent.samples import BASE, at

from gpuwaste.ledger.gpu_sample import Confidence
from gpuwaste.net.munge_credentials import Munge, MungeChecker, MungeIssuer
from gpuwaste.net.request_signing import Caller, request_digest, sign_request
from gpuwaste.net.sample_query import SampleQuestion
from gpuwaste.slurm.run_key import RunKey
from gpuwaste.testing.cluster_process import wait_until
from gpuwaste.testing.lone_hub import munged_path, private_munged
from gpuwaste.testing.patience import patient

pytestmark = [
    pytest.mark.sockets,
    pytest.mark.skipif(munged_path() is None, reason="munged is not installed (Debian: munge)"),
]
NOBODY = 65534
DAY_US = 86_400_000_000


@pytest.fixture(scope="module")
def munge() -> Iterator[str]:
    with private_munged() as socket:
        yield socket


@pytest.fixture
def node(munge: str, tmp_path: Path) -> Iterator[Node]:
    with answering_node(munge, tmp_path) as node:
        yield node


def reading() -> list[psutil.Process]:
    """Return the children that read samples for the hub."""
    children = psutil.Process().children()
    return [c for c in children if any("gpuwaste.agent.job_samples" in word for word in c.cmdline())]


def test_a_run_s_samples_come_as_they_were_folded_or_not(node: Node) -> None:
    """A finished segment in the day's file and an open one make one series; a pause is a gap, and null is not 0."""
    rows = [replace(at(BASE, n), util_pct=float(n), power_mw=n * 1000) for n in range(92)]
    rows[5] = replace(rows[5], util_pct=None)
    for row in rows:
        node.store.append([row])
    wait_for_fold()
    assert {path.suffix for path in node.raw.iterdir()} >= {".duckdb", ".samples"}
    node.store.append([at(BASE, 100)])
    found = node.samples()
    (gpu,) = found.gpus
    assert gpu.util_pct
    assert gpu.power_w
    assert gpu.mem_used_b
    assert gpu.sm_pct
    values: list[float | None] = [float(n) for n in range(92)]
    values[5] = None
    assert gpu.util_pct.mean == [*values, None, 12.5]
    assert gpu.power_w.mean == [*map(float, range(92)), None, 70.0]
    assert (gpu.mem_used_b.mean[0], gpu.sm_pct.mean[0], gpu.mem_total_b, gpu.power_limit_w) == (123 << 10, 25, 456, 400)
    assert found.t_ms[:2] == [START_US // 1000, START_US // 1000 + 10_000]
    assert (found.interval_ms, found.kept_since, found.kept_days) == (0, START_US // 1_000_000, 14)
    assert (found.node, found.job_id, found.start) == ("gpu1", 9, START)


def test_samples_of_other_runs_and_of_disputed_gpus_are_nobody_s(node: Node) -> None:
    """Samples of another job or run of its id and disputed ones are left out; those without a start are there."""
    key = RunKey("gw", 9, START + 5000)
    other = replace(BASE, gpu_uuid="GPU-x")
    node.store.append(
        [
            replace(BASE, run_key=None),
            replace(other, job_id=10, run_key=RunKey("gw", 10, START)),
            replace(other, run_key=key),
            replace(other, gpu_uuid="GPU-y", confidence=Confidence.CONFLICT),
            replace(other, gpu_uuid="GPU-z", job_id=None, run_key=None),
        ]
    )
    node.store.append([at(BASE, 1)])
    folded = [gpu.gpu_uuid for gpu in node.samples().gpus]
    list(node.store.samples_since(0))  # which folds
    assert [gpu.gpu_uuid for gpu in node.samples().gpus] == folded == ["GPU-a"]
    assert len(node.samples().t_ms) == 2


def test_a_spike_stays_where_samples_are_added_up(node: Node) -> None:
    """Of more samples than were asked for come mean, minimum and maximum: one busy sample of 900 is seen."""
    draw = random.Random(7)
    utils = [float(draw.randrange(0, 20)) for _ in range(900)]
    utils[432] = 100.0
    for n, util in enumerate(utils):
        node.store.append([replace(at(BASE, n), util_pct=util)])
    wait_for_fold()
    found = node.samples(points=200, until_us=START_US - 1 + 9_000_000_000)
    (gpu,) = found.gpus
    series = gpu.util_pct
    assert series
    assert series.max
    assert series.min
    assert found.interval_ms == 90_000
    assert len(found.t_ms) == len(series.mean) == 100
    assert max(m for m in series.max if m is not None) == 100.0
    assert max(m for m in series.mean if m is not None) < 40
    assert series.mean[3] == pytest.approx(sum(utils[27:36]) / 9, abs=0.01)
    assert series.min[3] == min(utils[27:36])


def test_nobody_but_the_hub_s_user_gets_samples(node: Node) -> None:
    """Without a credential, with another user's, a used one, one for another question or for another node: refused."""
    node.store.append([BASE])
    target = SampleQuestion("gpu1", WINDOW).target
    digest = request_digest("GET", target, b"")
    made = subprocess.run(
        ["munge", f"--socket={node.munge}", f"--string={digest}"], user=NOBODY, capture_output=True, check=True
    )
    forged = {"Authorization": f"Munge {made.stdout.decode().strip()}".replace("\n", "")}
    mine = sign_request(MungeIssuer(Munge(node.munge)), "GET", target)
    assert node.get(target, {}).status == 401
    assert node.get(target, {"Authorization": "Bearer x"}).status == 401
    assert node.get(target, forged).status == 403
    assert node.get(target.replace("job=9", "job=8"), dict(mine)).status == 401
    again = sign_request(MungeIssuer(Munge(node.munge)), "GET", target)
    assert [node.get(target, again).status for _ in range(2)] == [200, 401]
    assert node.asked(node="gpu2").status == 400
    for change in ({"points": 2001}, {"points": 0}, {"until_us": START_US - 1}, {"job_id": 10**10}):
        assert node.asked(replace(WINDOW, **change)).status == 400, change
    assert reading() == []


def test_one_question_at_a_time_and_a_killed_child_costs_its_answer_alone(node: Node) -> None:
    """While a child reads, a question is put off at once; after kill -9 of the child the next question is answered."""
    node.store.append([BASE])
    assert node.samples().gpus
    answers: list[Answer] = []
    with (node.raw / "fold.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        asking = threading.Thread(target=lambda: answers.append(node.asked()))
        asking.start()
        wait_until(lambda: bool(reading()), 20, "a child that reads")
        put_off = node.asked()
        (child,) = reading()
        child.send_signal(signal.SIGKILL)
        asking.join(20)
    assert (put_off.status, b"another question" in put_off.body) == (503, True)
    assert (answers[0].status, answers[0].body) == (500, b"the samples cannot be read: see the agent's log\n")
    assert node.samples().gpus


def test_questions_that_prove_nothing_take_no_place(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """While a question with a made-up credential is looked at, which takes long, the hub's own is answered."""
    node.store.append([BASE])
    checked, begun, go_on = MungeChecker.check, threading.Event(), threading.Event()

    def slow(self: MungeChecker, credential: str, digest: str) -> Caller:
        if credential == "made-up":
            begun.set()
            assert go_on.wait(patient(60))
        return checked(self, credential, digest)

    monkeypatch.setattr(MungeChecker, "check", slow)
    answers: list[Answer] = []
    target = SampleQuestion("gpu1", WINDOW).target
    stranger = threading.Thread(target=lambda: answers.append(node.get(target, {"Authorization": "Munge made-up"})))
    stranger.start()
    try:
        assert begun.wait(patient(60))
        assert node.samples().gpus
    finally:
        go_on.set()
        stranger.join(60)
    assert answers[0].status == 401


def test_what_is_past_retention_is_said_by_the_oldest_day(node: Node) -> None:
    """Of a run before the oldest day that is kept there is nothing, and the answer says since when there is."""
    node.store.append([BASE])
    found = node.samples(since_us=START_US - 9 * DAY_US, until_us=START_US - 8 * DAY_US)
    assert (found.gpus, found.t_ms, found.kept_since) == ([], [], START_US // 1_000_000)


def test_a_damaged_day_is_counted_and_the_rest_is_answered(node: Node) -> None:
    """A day's file that is no database costs that day alone; reading changes no file."""
    (node.raw / "2026-01-02.duckdb").write_bytes(b"no database" * 1000)
    node.store.append([BASE])

    def files() -> dict[str, Any]:
        return {path.name: path.read_bytes() for path in node.raw.iterdir()}

    before = files()
    found = node.samples()
    assert (found.unreadable_days, len(found.gpus)) == (1, 1)
    assert {name: data for name, data in files().items() if name != "fold.lock"} == before


@pytest.mark.long
def test_a_hundred_and_twelve_instances_are_bounded(node: Node) -> None:
    """The more GPUs a run has, the fewer values each: the answer of 16 GPUs in 7 instances each stays below 1 MB."""
    gpus = [replace(BASE, gpu_uuid=f"GPU-{g}", instance=f"{g % 7}/0") for g in range(112)]
    draw = random.Random(3)
    for n in range(300):
        node.store.append([replace(at(gpu, n), util_pct=draw.random() * 100) for gpu in gpus])
    found = node.samples(until_us=START_US + 4_000_000_000)
    assert len(found.gpus) == 112
    assert len(found.t_ms) <= 16 * 2000 // 112
    assert len(node.asked(replace(WINDOW, until_us=START_US + 4_000_000_000)).body) < 1_000_000
