"""Which job held which GPU, on a real cluster: every sample is on the right job or unknown, never wrong."""

import random
from collections.abc import Callable
from threading import Thread

import pytest

from gpuwaste.testing.attribution import MODES, AttributionVerdict, Field, Hold, judge, table
from gpuwaste.testing.cluster import LoopbackCluster, Variant

pytestmark = pytest.mark.cluster
ClusterFactory = Callable[..., LoopbackCluster]
SEEN_IN_FULL = frozenset({"het", "multi-node", "one-node-of-two", "gpus-per-node", "untouched", "steps", "salloc"})


def _variant(seed: int, **more: object) -> Variant:
    prefix = f"a{seed}x"  # other clusters on this host have a gpu1 too, whose processes look the same
    return Variant(seed=seed, node_prefix=prefix, **more)  # type: ignore[arg-type]


def _seed() -> int:
    seed = random.SystemRandom().randrange(1000)
    print(f"seed {seed}")  # noqa: T201 pytest shows it when the test fails
    return seed


def _play(field: Field) -> None:
    """Let all kinds of jobs run side by side; the agent on one node is killed, slurmd on the other is restarted."""
    first, second = field.nodes
    killed = field.probe(first, "full")
    for node, mode in ((first, "bare"), (second, "full"), (second, "bare")):
        field.probe(node, mode)
    jobs = field.submit_layouts()
    field.salloc()
    helpers = [
        Thread(target=field.suspend, args=(jobs["suspend"], 2)),
        Thread(target=field.requeue, args=(jobs["requeue"],)),
    ]
    for helper in helpers:
        helper.start()
    field.cluster.wait_job(jobs["gpus"], "RUNNING")
    killed.kill()
    field.cluster.restart_slurmd(second)
    field.probe(first, "full")
    for helper in helpers:
        helper.join()
    field.note_second_run(jobs["requeue"])
    field.wait_all()
    _play_again(field)
    field.submit_stray()
    field.wait_all()


def _play_again(field: Field) -> None:
    """Let jobs run again that ran while no probe did: on a busy host the killed agent's next one starts slowly."""
    unseen = SEEN_IN_FULL - {item.label for item in judge(field, ["full"])}
    if not unseen:
        return
    field.submit_layouts(unseen)
    if "salloc" in unseen:
        field.salloc().wait(60)
    field.wait_all()


def _assert_never_wrong(verdicts: list[AttributionVerdict]) -> None:
    print(table(verdicts))  # noqa: T201 pytest shows it when the test fails
    wrong = [item.text for item in verdicts if item.kind == "wrong"]
    assert not wrong, "\n".join(wrong[:20])


def _rights(verdicts: list[AttributionVerdict], mode: str) -> dict[str, float]:
    """Return the share of samples on the right job by layout."""
    counts = table(item for item in verdicts if item.mode == mode)
    return {name.split()[1]: value["right"] / sum(value.values()) for name, value in counts.items()}


def _rows(field: Field, node: str, mode: str) -> dict[tuple[int, str], list[tuple[float, float]]]:
    """Return the newest row's (t0, t1) of each run by (job, GPU)."""
    newest = {}
    for line in field.lines(node, mode):
        if "row" in line:
            row = line["row"]
            newest[row["jobid"], row["gpu_uuid"], row["start"], row["hour_utc"]] = row
    runs: dict[tuple[int, str, int], list[float]] = {}
    for (job, uuid, start, _), row in newest.items():
        runs.setdefault((job, uuid, start), []).extend([row["t0"], row["t1"]])
    found: dict[tuple[int, str], list[tuple[float, float]]] = {}
    for (job, uuid, _), times in runs.items():
        found.setdefault((job, uuid), []).append((min(times), max(times)))
    return found


def _near(hold: Hold, spans: list[tuple[float, float]]) -> bool:
    return any(abs(t0 - hold.t0) < 2 and abs(t1 - hold.t1) < 2 for t0, t1 in spans)


@pytest.mark.core
def test_every_layout_is_right_or_unknown(make_cluster: ClusterFactory) -> None:
    """Arrays, het jobs, two nodes, steps, requeue, suspend, salloc, a stray, a killed agent, a restarted slurmd."""
    seed = _seed()
    field = Field(make_cluster(_variant(seed)), seed)
    _play(field)
    verdicts = judge(field)
    _assert_never_wrong(verdicts)
    full, bare = _rights(verdicts, "full"), _rights(verdicts, "bare")
    for label in SEEN_IN_FULL:
        assert full[label] > 0.5, (label, full)
    for label in ("multi-node", "gpus", "suspend"):
        assert bare[label] > 0.3, (label, bare)
    # One of the victim's three GPUs is the stray's too; the stray's own is in doubt as soon as it is seen astray.
    assert full["stray"] < 0.5, full
    assert 0.3 < full["victim"] < 1, full
    second = field.nodes[1]
    rows, names = _rows(field, second, "full"), field.labels()
    for hold in field.truth():
        if hold.node == second and names[hold.job_id] != "requeue":
            assert _near(hold, rows.get((hold.job_id, hold.uuid), [])), (names[hold.job_id], hold, rows)
    suspended = {job for line in field.lines(second, "full") for job in line.get("suspended", [])}
    suspended |= {job for line in field.lines(field.nodes[0], "full") for job in line.get("suspended", [])}
    assert {names[job] for job in suspended} == {"suspend"}


@pytest.mark.parametrize("cgroup", ["constrain_devices", "cgroup_v2"])
def test_shards_and_constrained_devices(make_cluster: ClusterFactory, cgroup: str) -> None:
    """With cgroups that constrain devices, v1 and v2, and with shards: each holder is right, with its share."""
    seed = _seed()
    field = Field(make_cluster(_variant(seed, shards=4, **{cgroup: True})), seed)
    for node in field.nodes:
        for mode in MODES:
            field.probe(node, mode)
    submits = (
        [("shards", {"gres": f"shard:{field.rng.randrange(1, 4)}"})] * 4 + [("whole", {"gres": "gpu:1"})] * 2
    )  # fmt: skip
    field.rng.shuffle(submits)
    for label, options in submits:
        field.submit(label, field.load(4), **options)
    field.submit("wide", f"srun {field.load(4)}", N=2, gres="gpu:2")
    field.wait_all()
    verdicts = judge(field)
    _assert_never_wrong(verdicts)
    assert min(_rights(verdicts, "full").values()) > 0.5
    names = field.labels()
    shares = [
        (names[job], share)
        for node in field.nodes
        for line in field.lines(node, "full")
        for held in line.get("held", {}).values()
        for job, _, _, share, keyed in held
        if keyed
    ]
    assert {share for name, share in shares if name == "whole"} == {1.0}
    assert {share for name, share in shares if name == "shards"} <= {0.25, 0.5, 0.75}
