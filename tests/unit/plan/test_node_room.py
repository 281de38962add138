"""When single nodes have room for the GPUs of a request, where a pool as a whole already has."""

import pytest
from tests.unit.plan.test_live_queue import NOW, job, read, request

from gpuwaste.plan.node_room import NodeRoom, room_in_s, rooms_of
from gpuwaste.plan.when.expectation import expect
from gpuwaste.slurm.gres import GresOnNode

POOL = {0}


def rooms(*held: list[tuple[int, int]]) -> list[NodeRoom]:
    """Return nodes of four GPUs in pool 0 with what runs on each."""
    return [NodeRoom(0, 4, list(jobs)) for jobs in held]


@pytest.mark.parametrize(
    ("asked", "held", "expected"),
    [
        ({"gpus": 4}, [[(50, 1)], [(90, 1)]], 50),
        ({"gpus": 3}, [[(50, 1)], [(90, 1)]], 0),
        ({"gpus": 4}, [[(50, 1), (70, 2)], [(90, 3)]], 70),
        ({"gpus": 8, "nodes": 2}, [[(50, 1)], [(90, 1)]], 90),
        ({"gpus": 6, "nodes": 2}, [[(50, 1)], [(90, 1)]], 0),
        ({"gpus": 0}, [[(50, 4)], [(90, 4)]], 0),
        ({"gpus": 8, "nodes": 1}, [[], []], 0),
        ({"gpus": 4}, [], 0),
    ],
)
def test_a_request_starts_when_enough_nodes_have_its_gpus(
    asked: dict[str, int], held: list[list[tuple[int, int]]], expected: int
) -> None:
    """The earliest instant at which as many nodes as it wants have its GPUs free; what no node has says nothing."""
    assert room_in_s(request(**asked), POOL, rooms(*held)) == expected


def test_other_pools_and_unknown_nodes_are_no_room() -> None:
    """A free node of another pool is not waited for, and what runs on a node that is not there is left out."""
    found = rooms_of({"gpu1": (0, 4), "h1": (1, 4)}, [({"gpu1": 1, "gone": 4}, 30), ({"gpu1": 0}, 10)])
    assert [room.held for room in found] == [[(30, 1)], []]
    assert room_in_s(request(gpus=4), POOL, found) == 30


def test_gpus_that_are_free_on_two_nodes_are_not_four_on_one() -> None:
    """One GPU of each node is held: six are free, yet four on one node start when the first job is expected to end."""
    there = {"nodes": {"gpu2": GresOnNode(gpus=1)}, "node_list": "gpu2"}
    here = {"nodes": {"gpu1": GresOnNode(gpus=1)}}
    tres = {"tres": "cpu=1,mem=1G,node=1,gres/gpu=1"}
    live = read(job(1, "RUNNING", **here, **tres), job(2, "RUNNING", **there, **tres))
    four, one = expect(live.queue, [live.candidate(request(gpus=4)), live.candidate(request(gpus=1))])
    assert four is not None
    assert one is not None
    assert one.p90 == NOW
    assert NOW < four.p10 <= NOW + 1800
