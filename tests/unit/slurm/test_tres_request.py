"""Requests from printed TRES lists."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuwaste.slurm.submit.job_request import request_from_tres

KNOWN = {"user": "alice", "submit": 7, "account": "", "partition": "", "qos": "", "name": "x", "time_limit_s": None}


def test_amounts_come_from_the_list() -> None:
    """Counts, memory with its unit, GPUs and their type; a large count is printed as 1K."""
    request = request_from_tres("cpu=1K,mem=1.50G,node=2,gres/gpu=4,gres/gpu:a100=4", **KNOWN)
    assert (request.nodes, request.cpus, request.mem_b) == (2, 1024, 3 << 29)
    assert (request.gpus, request.gpu_type) == (4, "a100")


@pytest.mark.parametrize("text", ["", "(null)", "cpu", "=4", "cpu=x,node=-", "cpu=0.5,node=1.5"])
def test_what_is_no_amount_is_unknown(text: str) -> None:
    """A list that is none leaves the amounts unknown and the request usable."""
    request = request_from_tres(text, **KNOWN)
    assert (request.nodes, request.cpus, request.mem_b, request.gpus) == (None, None, None, 0)


ITEMS = st.lists(
    st.tuples(
        st.sampled_from(["cpu", "node", "mem", "gres/gpu", "gres/gpu:a100", "billing", ""]),
        st.from_regex(r"[0-9٣²]{0,30}(\.[0-9]{0,4})?[KMGTPE]?", fullmatch=True) | st.text(max_size=6),
    ).map("=".join),
    max_size=6,
).map(",".join)


@given(ITEMS | st.text(max_size=80))
def test_any_list_gives_a_request_of_plain_numbers(text: str) -> None:
    """Whatever a list holds, no exception leaves and no amount is negative."""
    request = request_from_tres(text, **KNOWN)
    assert request.gpus >= 0
    assert all(amount is None or amount >= 0 for amount in (request.nodes, request.cpus, request.mem_b))
