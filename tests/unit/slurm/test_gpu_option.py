"""The option line that asks for another number of GPUs, read back as sbatch reads it."""

from hypothesis import given
from hypothesis import strategies as st

from gpuwaste.slurm.submit.gpu_items import GPU_OPTIONS, GpuRequest
from gpuwaste.slurm.submit.sbatch import read_submission

REQUESTS = st.builds(
    GpuRequest, st.sampled_from(GPU_OPTIONS), st.just("") | st.from_regex(r"[a-z0-9_][a-z0-9_.-]{0,9}", fullmatch=True)
)


def _gpus(line: str, more: str = "") -> tuple[int, str]:
    (request,) = read_submission(f"#!/bin/sh\n{line} {more}\n").requests
    return request.gpus, request.gpu_type


@given(REQUESTS, st.integers(1, 64), st.integers(1, 8))
def test_the_line_asks_for_that_many(asked: GpuRequest, whole: int, on_a_node: int) -> None:
    """Each option with any type: the line comes to the number for the job, or to that of one node."""
    per_node = asked.option in {"--gres", "--gpus-per-node", "--gpus-per-socket"}
    more = "--sockets-per-node=1" if asked.option == "--gpus-per-socket" else ""
    assert _gpus(asked.line(whole, on_a_node), more) == (on_a_node if per_node else whole, asked.gpu_type)


@given(REQUESTS)
def test_the_line_for_none_asks_for_none(asked: GpuRequest) -> None:
    """No GPUs, in the option's own way."""
    assert _gpus(asked.none()) == (0, "")
