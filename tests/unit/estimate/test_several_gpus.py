"""A step on several GPUs: the exchange of gradients computed by hand, the bubble of a pipeline, and what is refused."""

import pytest

from gpuwaste.estimate.estimate_types import StepTime
from gpuwaste.estimate.gradient_bytes import gradient_bytes
from gpuwaste.estimate.program import Buffer, Op, Program
from gpuwaste.estimate.several_gpus import BUCKET_B, EXCHANGES, SLOWER, Spread, several_gpus
from gpuwaste.slurm.gpu_links import SiteLinks, site_links

ONE = StepTime(gpu="a100-40gb", step_s=0.3, low_s=0.27, high_s=0.33, basis="measured")
GIB = 1 << 30


def program(*, gradient_b: int | None = GIB, training: bool | None = True, kind: str = "mm") -> Program:
    """Return a program of one operation; its gradients are written as the torch probe does."""
    sizes = [GIB, GIB, GIB]
    return Program(
        name="p",
        source="torch",
        ops=[Op(kind=kind)],  # type: ignore[arg-type]  # one of KINDS
        buffers=[
            *(Buffer(size_b=size, first=0, last=0, kind="parameter") for size in sizes),
            Buffer(size_b=240_000_000, first=0, last=0),
        ],
        parameters_b=sum(sizes),
        outputs_b=0,
        fingerprint="0" * 64,
        training=training,
        gradient_b=gradient_b,
    )


def on(gpus: int, *, nodes: int = 1, links: SiteLinks | None = None, one: StepTime = ONE, **more: object) -> StepTime:
    """Return the step of copies on GPUs."""
    return several_gpus(one, program(**more), Spread(gpus, nodes), links or SiteLinks())  # type: ignore[arg-type]


def ring(size_b: float, ranks: int, rate: float, latency_s: float) -> float:
    """Return a ring all-reduce by hand, bucket by bucket."""
    buckets = -(-size_b // BUCKET_B)
    return 2 * (ranks - 1) / ranks * size_b / rate + buckets * 2 * (ranks - 1) * latency_s


def test_copies_take_the_step_and_a_part_of_the_all_reduce() -> None:
    """The middle is between the last bucket only and the whole exchange; the range has the ends of both."""
    found = on(4)
    whole = ring(GIB, 4, 235e9, 3.4e-6)
    last = ring(BUCKET_B, 4, 235e9, 3.4e-6)
    assert found.step_s == pytest.approx(0.3 + (whole + last) / 2)
    assert found.low_s == pytest.approx(0.27 + ring(BUCKET_B, 4, 300e9, 3.4e-6))
    assert found.high_s == pytest.approx((0.33 + ring(GIB, 4, 200e9, 3.4e-6)) * SLOWER)
    assert found.basis == (
        "measured; 4 GPUs data parallel over NVLink 3 (235 of 300 GB/s by NCCL's plan and data sheet): not measured"
    )


def test_an_exchange_longer_than_the_backward_pass_is_exposed() -> None:
    """Over 1 GB/s a backward pass of 0.2 s hides 0.2 s of it, whatever the overlap."""
    found = on(2, links=site_links(["a100=1"]))
    whole = ring(GIB, 2, 1e9, 5.7e-6)
    assert whole > 1
    assert found.step_s == pytest.approx(0.3 + (whole - 0.2 + whole) / 2)
    assert found.low_s == pytest.approx(0.27 + whole - 0.18)
    assert "over a link of 1 GB/s (the site's figure): not measured" in found.basis


def test_between_nodes_the_network_is_added() -> None:
    """4 GPUs on 2 nodes: a ring of 2 in the node, then one of 2 nodes; one GPU per node has the network only."""
    links = site_links(["node=hdr*2"])
    found = on(4, nodes=2, links=links)
    whole = ring(GIB, 2, 235e9, 3.4e-6) + ring(GIB, 2, 48e9, 9.6e-6)
    last = ring(BUCKET_B, 2, 235e9, 3.4e-6) + ring(BUCKET_B, 2, 48e9, 9.6e-6)
    assert found.step_s == pytest.approx(0.3 + (whole + last) / 2)
    assert "4 GPUs on 2 nodes data parallel over NVLink 3 (" in found.basis
    assert "and 2 x InfiniBand HDR (48 of 50 GB/s" in found.basis
    spread = on(2, nodes=2, links=links)
    assert "over 2 x InfiniBand HDR" in spread.basis


def test_estimate_and_range_are_in_order() -> None:
    """Lower end, estimate and upper end grow with the number of GPUs, and are in this order."""
    rows = [on(gpus) for gpus in (2, 4, 8, 16)]
    for each in rows:
        assert each.low_s is not None
        assert each.step_s is not None
        assert each.high_s is not None
        assert ONE.step_s < each.step_s  # type: ignore[operator]
        assert each.low_s < each.step_s < each.high_s
    assert [each.step_s for each in rows] == sorted(each.step_s or 0 for each in rows)


def test_without_gradients_copies_take_the_step_of_one() -> None:
    """Inference on several GPUs exchanges nothing."""
    found = on(4, training=False)
    assert (found.step_s, found.low_s, found.high_s) == (0.3, 0.27, 0.33)
    assert found.basis == "measured; 4 GPUs as copies without exchange: not measured"


def test_a_time_without_interval_gets_none() -> None:
    """Nothing is made up around a time that has no interval."""
    found = on(2, one=StepTime(gpu="a100-40gb", step_s=0.3))
    assert found.step_s is not None
    assert (found.low_s, found.high_s) == (None, None)


def test_a_pipeline_has_a_bubble_and_sends() -> None:
    """4 stages and 4 micro batches take t / 4 x 7 / 4; sends are none to the largest array at 7 places and back."""
    found = several_gpus(ONE, program(), Spread(4), SiteLinks(), micro_batches=4)
    sends = 14
    assert found.low_s == pytest.approx(0.27 * 7 / 16)
    assert found.step_s == pytest.approx(0.3 * 7 / 16 + sends * (60e6 / 235e9 + 3.4e-6) / 2)
    assert found.high_s == pytest.approx(0.33 * 7 / 16 + sends * (60e6 / 200e9 + 3.4e-6))
    assert "4 GPUs as a pipeline of equal stages with 4 micro batches over NVLink 3" in found.basis
    assert found.basis.endswith(": not measured")


def test_one_micro_batch_is_as_slow_as_one_gpu() -> None:
    """With one micro batch the stages wait for each other: no time is gained, sends are added."""
    found = several_gpus(ONE, program(), Spread(4), SiteLinks(), micro_batches=1)
    assert found.low_s == pytest.approx(0.27)
    assert (found.step_s or 0) > 0.3


def test_one_gpu_and_a_refusal_are_passed_on() -> None:
    """On one GPU nothing changes, and the reason for no time is the same on several."""
    refused = StepTime(gpu="h100", refused="not calibrated")
    assert on(1) is ONE
    assert on(4, one=refused) is refused


@pytest.mark.parametrize(
    ("spread", "gpu", "words"),
    [
        (Spread(2), "gaudi", "the link between GPUs of type gaudi is unknown"),
        (Spread(4, 2), "a100-40gb", "the link between nodes is unknown: give node=LINK"),
        (Spread(17), "a100-40gb", "no node has more than 16 GPUs"),
    ],
)
def test_an_unknown_link_has_no_time(spread: Spread, gpu: str, words: str) -> None:
    """A type without a link, several nodes without the site's table, and more GPUs than a node has are refused."""
    found = several_gpus(StepTime(gpu=gpu, step_s=0.3), program(), spread, SiteLinks())
    assert found.step_s is None
    assert words in found.refused


def test_a_program_for_several_gpus_has_no_time_on_others() -> None:
    """A program with collectives is one GPU's part of a division that is in the file."""
    assert on(2, kind="collective").refused == EXCHANGES


def test_gradients_are_those_of_the_probe_else_a_range() -> None:
    """Without the probe's number: a third of the parameters where each size is there three times, up to all of them."""
    exact = gradient_bytes(program(gradient_b=7))
    assert (exact.low_b, exact.gradient_b, exact.high_b) == (7, 7, 7)
    adam = gradient_bytes(program(gradient_b=None))
    assert (adam.low_b, adam.gradient_b, adam.high_b) == (GIB, GIB, 3 * GIB)
    sgd = program(gradient_b=None)
    odd = gradient_bytes(
        Program(
            name="p",
            source="hlo",
            ops=sgd.ops,
            buffers=sgd.buffers[:2],
            parameters_b=2 * GIB,
            outputs_b=0,
            fingerprint="0" * 64,
        )
    )
    assert odd.low_b == 0
    assert odd.gradient_b == pytest.approx(2 * GIB / 3**0.5)
    assert odd.high_b == 2 * GIB
    assert "does not state it" in odd.basis
