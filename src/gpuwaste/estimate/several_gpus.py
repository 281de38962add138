"""A step on several GPUs, from its time on one: copies that exchange gradients, or a pipeline of stages.

Copies (data parallel): each GPU computes the file's batch, so a step of n GPUs handles n batches. Its time is the step
on one GPU and the part of the all-reduce that the backward pass does not hide. Frameworks start it bucket by bucket
during the backward pass (Li et al., VLDB 2020): the estimate is in the middle between full overlap and none, the range
goes from one to the other and its upper end is SLOWER. Nothing of it is measured, and each answer states that.
"""

from dataclasses import dataclass
from math import ceil
from typing import Final, Literal

from msgspec.structs import replace

from gpuwaste.estimate.estimate_types import StepTime
from gpuwaste.estimate.gradient_bytes import GradientBytes, gradient_bytes
from gpuwaste.estimate.program import Program
from gpuwaste.slurm.gpu_links import MOST_IN_NODE, GpuLink, SiteLinks

BUCKET_B: Final = 25 << 20  # torch's DistributedDataParallel, bucket_cap_mb
_BACKWARD: Final = 2 / 3  # of a step: a backward pass has twice the FLOPs of the forward pass
SLOWER: Final = 1.2
"""Copies wait for the slowest of them and share the node's CPUs: factor of the upper end of the range.

95 of 100 steps of five models on 2 to 4 T4 of a node took at most so much longer than the exchange explains (Pollux'
public measurements, `make bench NAME=estimate-gpus`).
"""
Rate = Literal["bus", "slow", "peak"]
"""Which bandwidth of a link: NCCL's plan, where it is poor, the data sheet's."""
NOT_MEASURED: Final = "not measured"
EXCHANGES: Final = "the program exchanges data between GPUs already: its time on other numbers is not estimated"


@dataclass(frozen=True, slots=True)
class Spread:
    """GPUs of a request, all of one type, evenly on `nodes` nodes."""

    gpus: int
    nodes: int = 1

    @property
    def in_node(self) -> int:
        """GPUs of one node."""
        return ceil(self.gpus / self.nodes)

    def __str__(self) -> str:
        return f"{self.gpus} GPUs" + (f" on {self.nodes} nodes" if self.nodes > 1 else "")


@dataclass(frozen=True, slots=True)
class LinkPath:
    """The links that an all-reduce takes: inside of the nodes, then between them."""

    spread: Spread
    inside: GpuLink | None
    between: GpuLink | None

    def seconds(self, size_b: float, rate: Rate) -> float:
        """Return the time of one all-reduce, at the links' `bus`, `slow` or `peak` bandwidth."""
        rings = ((self.inside, self.spread.in_node), (self.between, self.spread.nodes))
        return sum(link.seconds(size_b, ranks, _rate(link, rate)) for link, ranks in rings if link is not None)

    def bucketed(self, size_b: float, rate: Rate) -> float:
        """Return the time of all buckets of a gradient, one after another."""
        buckets = max(1, ceil(size_b / BUCKET_B))
        return buckets * self.seconds(size_b / buckets, rate)

    def __str__(self) -> str:
        return " and ".join(link.title for link in (self.inside, self.between) if link is not None)


def _rate(link: GpuLink, rate: Rate) -> float:
    return {"bus": link.bus_b_s, "slow": link.slow_b_s, "peak": link.peak_b_s}[rate]


def several_gpus(
    one: StepTime, program: Program, spread: Spread, links: SiteLinks, *, micro_batches: int | None = None
) -> StepTime:
    """Return the step on several GPUs: copies of the program, or with micro batches a pipeline of it."""
    if one.step_s is None or spread.gpus <= 1:
        return one
    if any(op.kind == "collective" for op in program.ops):
        return StepTime(gpu=one.gpu, refused=EXCHANGES)
    path = _path(one.gpu, spread, links)
    if isinstance(path, str):
        return StepTime(gpu=one.gpu, refused=path)
    if micro_batches is not None:
        return pipeline(one, _largest_b(program), path, micro_batches)
    return data_parallel(one, gradient_bytes(program), path)


def _path(gpu: str, spread: Spread, links: SiteLinks) -> LinkPath | str:
    """Return the links between the GPUs, or why they are unknown."""
    if spread.in_node > MOST_IN_NODE:
        return f"no node has more than {MOST_IN_NODE} GPUs, and the nodes of the request are unknown"
    inside = links.of(gpu, spread.in_node) if spread.in_node > 1 else None
    if spread.in_node > 1 and inside is None:
        return f"the link between GPUs of type {gpu} is unknown: give it in [estimate] links"
    if spread.nodes > 1 and links.between is None:
        return "the link between nodes is unknown: give node=LINK in [estimate] links"
    return LinkPath(spread, inside, links.between if spread.nodes > 1 else None)


def data_parallel(one: StepTime, gradients: GradientBytes, path: LinkPath) -> StepTime:
    """Return the step of copies that exchange gradients by ring all-reduce, in each node and then between nodes."""
    assert one.step_s is not None  # noqa: S101 narrows the type: several_gpus looks
    if not gradients.high_b:
        return replace(one, basis=f"{one.basis}; {path.spread} as copies without exchange: {NOT_MEASURED}")
    size_b = gradients.gradient_b
    exposed_s = (_overlapped(one.step_s, size_b, path, "bus") + path.bucketed(size_b, "bus")) / 2
    low_s = high_s = None
    if one.low_s is not None and one.high_s is not None:
        low_s = one.low_s + (_overlapped(one.low_s, gradients.low_b, path, "peak") if gradients.low_b else 0.0)
        high_s = (one.high_s + path.bucketed(gradients.high_b, "slow")) * SLOWER
    more = f", {gradients.basis}" if gradients.basis else ""
    return replace(
        one,
        step_s=one.step_s + exposed_s,
        low_s=low_s,
        high_s=high_s,
        basis=f"{one.basis}; {path.spread} data parallel over {path}{more}: {NOT_MEASURED}",
    )


def _overlapped(step_s: float, size_b: float, path: LinkPath, rate: Rate) -> float:
    """Return the part of the all-reduce that the backward pass cannot hide: its last bucket, or what is longer."""
    last_s = path.seconds(min(size_b, BUCKET_B), rate)
    return max(last_s, path.bucketed(size_b, rate) - _BACKWARD * step_s)


def pipeline(one: StepTime, activation_b: float, path: LinkPath, micro_batches: int) -> StepTime:
    """Return the step of a pipeline with a stage on each GPU: the file's batch in micro batches.

    t / p x (1 + (p - 1) / m) with p equal stages and m micro batches (Huang et al. 2019; Narayanan et al. 2019), and
    at most one send at each of its m + p - 1 places, forward and backward. The size of a send is not in the file: the
    range goes from none to the largest array of the program, the estimate has half of that.
    """
    assert one.step_s is not None  # noqa: S101 narrows the type: several_gpus looks
    stages = path.spread.gpus
    share = (1 + (stages - 1) / micro_batches) / stages
    sends = 2 * (micro_batches + stages - 1)
    slowest = min((link for link in (path.inside, path.between) if link is not None), key=lambda link: link.bus_b_s)
    bound_s = sends * (activation_b / micro_batches / slowest.slow_b_s + slowest.latency_s)
    usual_s = sends * (activation_b / micro_batches / slowest.bus_b_s + slowest.latency_s) / 2
    return replace(
        one,
        step_s=one.step_s * share + usual_s,
        low_s=None if one.low_s is None else one.low_s * share,
        high_s=None if one.high_s is None else one.high_s * share + bound_s,
        basis=f"{one.basis}; {path.spread} as a pipeline of equal stages with {micro_batches} micro batches over "
        f"{path}: {NOT_MEASURED}",
    )


def _largest_b(program: Program) -> float:
    """Return the bytes of the largest array that the program makes: a bound of what a stage can send in one array."""
    return float(max((each.size_b for each in program.buffers if each.kind == "temporary"), default=0))
