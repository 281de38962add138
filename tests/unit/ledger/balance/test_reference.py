"""The second-by-second reference of the balance: each class in a case that a reader can check, and sums."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from tests.examples import examples
from tests.unit.ledger.balance.drawn_cases import GIB, cases
from tests.unit.ledger.balance.happened import Amount, Case, Node, Outage, Reservation, Run
from tests.unit.ledger.balance.reference import blocked, second, seconds, sums

SMALL = Node("a", 0, 1000, 4, "a100", 16, 64 * GIB, ("p",))
OTHER = Node("b", 0, 1000, 4, "v100", 16, 64 * GIB, ("p", "q"))
HOLDS_MEMORY = Run(1, 0, 0, 0, 500, 1, 2, 60 * GIB, partitions=("p",), held={"a": Amount(1, 2, 60 * GIB)})
HOLDS_CPUS = replace(HOLDS_MEMORY, cpus=15, memory=GIB, held={"a": Amount(1, 15, GIB)})
HOLDS_GPUS = replace(HOLDS_MEMORY, gpus=3, cpus=3, memory=GIB, held={"a": Amount(3, 3, GIB)})
WAITS = Run(2, 0, 10, None, None, 2, 4, 8 * GIB, partitions=("p",))
CASE = Case(0, 100, (SMALL,))


def rest(case: Case, t: int = 50) -> str:
    """Return the class of what is free of node a."""
    found = second(case, "a", t)
    assert found is not None
    return next(word for word in found.gpus if word != "allocated")


@pytest.mark.parametrize(
    ("runs", "word"),
    [
        ((), "free"),
        ((WAITS,), "free_unknown"),
        ((replace(WAITS, start=110),), "free_cycle"),
        ((replace(WAITS, start=111),), "free_unknown"),
        ((replace(WAITS, reason="QOSMaxGRESPerUser"),), "free_limit"),
        ((HOLDS_MEMORY, WAITS), "free_memory"),
        ((HOLDS_CPUS, WAITS), "free_cpus"),
        ((HOLDS_GPUS, WAITS), "free_few_gpus"),
        ((replace(WAITS, nodes=2, gpus=4),), "free_few_gpus"),
        ((replace(WAITS, gpu_type="v100"),), "free_other_type"),
        ((replace(WAITS, constraint=None),), "free_unknown"),
        ((HOLDS_MEMORY, replace(WAITS, memory=None)), "free_unknown"),
        ((HOLDS_MEMORY, replace(WAITS, gpu_type="v100")), "free_unknown"),
        ((replace(WAITS, eligible=51),), "free"),
        ((replace(WAITS, is_held=True, eligible=None),), "free"),
        ((replace(WAITS, end=50),), "free"),
        ((replace(WAITS, reservation="r"),), "free"),
        ((replace(WAITS, partitions=("q",)),), "free"),
        ((replace(WAITS, constraint="ib"),), "free"),
        ((replace(WAITS, gpus=5),), "free"),
    ],
)
def test_each_cause_of_free_gpus(runs: tuple[Run, ...], word: str) -> None:
    """What is free of a node at second 50 has the class that the definition names, and none where no job waits."""
    assert rest(replace(CASE, runs=runs)) == word


LARGE = Run(3, 0, 20, 200, 300, 4, 4, GIB, partitions=("p",), held={"a": Amount(4, 4, GIB)})


@pytest.mark.parametrize(
    ("small", "large", "word"),
    [
        (replace(WAITS, limit_s=180), LARGE, "free_planned"),
        (replace(WAITS, limit_s=179), LARGE, "free_unknown"),
        (WAITS, LARGE, "free_planned"),
        (WAITS, replace(LARGE, eligible=31), "free_unknown"),
        (WAITS, replace(LARGE, gpus=2), "free_unknown"),
        (replace(WAITS, start=90), LARGE, "free_cycle"),
    ],
)
def test_a_node_kept_for_a_larger_job(small: Run, large: Run, word: str) -> None:
    """A job that would have delayed the next, larger one on its node waits for that; one that is short does not."""
    assert rest(replace(CASE, runs=(small, large)), t=30) == word


def test_other_nodes_count() -> None:
    """A job over two nodes waits for memory where each of two has no other obstacle, else for GPUs or unknown."""
    wide = replace(WAITS, nodes=2, gpus=4, cpus=8, memory=16 * GIB)
    two = replace(CASE, nodes=(SMALL, OTHER), runs=(HOLDS_MEMORY, wide))
    assert rest(two) == "free_memory"
    assert rest(replace(two, outages=(Outage("b", 40, None, "DRAINED"),))) == "free_unknown"
    assert rest(replace(two, runs=(wide,), reservations=(Reservation("r", ("b",), 0, 60),))) == "free_few_gpus"


@pytest.mark.parametrize(
    ("state", "flags", "word"),
    [
        ("DOWN*", {"MAINT"}, "down"),
        ("DRAINED", {"MAINT"}, "drained"),
        ("DOWN+DRAIN", set(), "down"),
        (None, {"MAINT", "IGNORE_JOBS"}, "maintenance"),
        (None, {"SPEC_NODES"}, "reserved"),
    ],
)
def test_nodes_that_take_no_jobs(state: str | None, flags: set[str], word: str) -> None:
    """The rest of a node has the class of its state, then of its reservation, although a job waits; held GPUs stay."""
    outages = (Outage("a", 40, 60, state),) if state else ()
    reserved = (Reservation("r", ("a",), 40, 60, frozenset(flags)),)
    case = replace(CASE, outages=outages, reservations=reserved, runs=(HOLDS_GPUS, WAITS))
    found = second(case, "a", 50)
    assert found is not None
    assert found.gpus == {"allocated": 3, word: 1}
    assert rest(case, 60) == "free_few_gpus"


def test_a_blocker_takes_more_than_its_share() -> None:
    """The run with the most memory beyond its share of GPUs is named with what it kept free; a fair one is not."""
    more = replace(HOLDS_MEMORY, job_id=4, held={"a": Amount(0, 2, 40 * GIB)}, gpus=0)
    less = replace(HOLDS_MEMORY, held={"a": Amount(1, 2, 20 * GIB)})
    case = replace(CASE, runs=(less, more, WAITS))
    assert blocked(case) == {(4, "free_memory"): 90 * 3}
    fair = replace(HOLDS_MEMORY, held={"a": Amount(2, 2, 32 * GIB)})
    assert blocked(replace(case, runs=(fair, replace(WAITS, memory=40 * GIB)))) == {}


@settings(max_examples=examples(60))
@given(case=cases())
def test_drawn_seconds_add_up(case: Case) -> None:
    """Each GPU of each second of a drawn machine is in exactly one class, and the sums lose none."""
    total = 0
    for _, found in seconds(case):
        assert sum(found.gpus.values()) == found.node.gpus
        assert len(found.gpus) <= 2
        total += found.node.gpus
    assert sum(sums(case).values()) == total
