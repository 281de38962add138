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
TAKES = replace(WAITS, start=110, end=180, held={"a": Amount(2, 4, 8 * GIB)})
CASE = Case(0, 200, (SMALL,))
BOTH = replace(CASE, nodes=(SMALL, OTHER))


def rest(case: Case, t: int = 50, node: str = "a") -> str:
    """Return the classes of what is free of a node, as in "2 free"."""
    gpus = second(case, t)[node].gpus
    return ", ".join(f"{gpus[word]} {word}" for word in sorted(gpus) if word != "allocated")


@pytest.mark.parametrize(
    ("runs", "words"),
    [
        ((), "4 free"),
        ((WAITS,), "2 free, 2 free_unknown"),
        ((replace(WAITS, reason="QOSMaxGRESPerUser"),), "2 free, 2 free_limit"),
        ((HOLDS_MEMORY, WAITS), "1 free, 2 free_memory"),
        ((HOLDS_CPUS, WAITS), "1 free, 2 free_cpus"),
        ((HOLDS_GPUS, WAITS), "1 free_few_gpus"),
        ((replace(WAITS, nodes=2, gpus=4),), "4 free_few_gpus"),
        ((replace(WAITS, gpu_type="v100"),), "2 free, 2 free_other_type"),
        ((replace(WAITS, constraint=None),), "2 free, 2 free_unknown"),
        ((HOLDS_MEMORY, replace(WAITS, memory=0)), "1 free, 2 free_unknown"),
        ((HOLDS_MEMORY, replace(WAITS, gpu_type="v100")), "1 free, 2 free_unknown"),
        ((HOLDS_GPUS, replace(WAITS, reason="QOSMaxGRESPerUser")), "1 free_unknown"),
        ((replace(WAITS, eligible=51),), "4 free"),
        ((replace(WAITS, is_held=True, eligible=None),), "4 free"),
        ((replace(WAITS, end=50),), "4 free"),
        ((replace(WAITS, reservation="r"),), "4 free"),
        ((replace(WAITS, partitions=("q",)),), "4 free"),
        ((replace(WAITS, constraint="ib"),), "4 free"),
        ((replace(WAITS, gpus=5),), "4 free"),
    ],
)
def test_each_cause_of_free_gpus(runs: tuple[Run, ...], words: str) -> None:
    """What is free of a node at second 50 has the class that the definition names, as much as waiting jobs request."""
    assert rest(replace(CASE, runs=runs)) == words


@pytest.mark.parametrize(
    ("run", "words"),
    [
        (TAKES, "2 free, 2 free_cycle"),
        (replace(TAKES, start=111), "2 free, 2 free_unknown"),
        (replace(TAKES, reason="AssocGrpGRES"), "2 free, 2 free_limit"),
        (replace(TAKES, eligible=51), "4 free"),
        (
            replace(TAKES, gpus=5, nodes=2, held={"a": Amount(3, 2, GIB), "b": Amount(2, 2, GIB)}),
            "1 free, 3 free_cycle",
        ),
        (replace(TAKES, gpus=4, nodes=2, held=dict.fromkeys("ac", Amount(2, 2, GIB))), "2 free, 2 free_planned"),
    ],
)
def test_gpus_kept_for_the_run_that_takes_them(run: Run, words: str) -> None:
    """GPUs that a run takes are kept for it while there is room for it, until it starts; it demands no others."""
    busy = Run(7, 0, 0, 0, 90, 4, 4, GIB, held={"c": Amount(4, 4, GIB)})
    case = replace(CASE, nodes=(SMALL, OTHER, replace(SMALL, name="c")), runs=(busy, run))
    assert rest(case) == words


def test_gpus_are_kept_from_the_last_time_on_that_room_lasts() -> None:
    """A run has GPUs kept from the end of the last outage or run in its way on, and waits for any node before."""
    case = replace(CASE, runs=(TAKES,), outages=(Outage("a", 80, 85, "DOWN"),))
    assert rest(case, 79) == "2 free, 2 free_unknown"
    assert rest(case, 84) == "4 down"
    assert rest(case, 85) == "2 free, 2 free_cycle"
    between = Run(7, 0, 60, 60, 70, 3, 3, GIB, held={"a": Amount(3, 3, GIB)})
    assert rest(replace(CASE, runs=(TAKES, between)), 69) == "1 free_few_gpus"
    assert rest(replace(CASE, runs=(TAKES, between)), 70) == "2 free, 2 free_cycle"


def test_a_run_that_starts_after_the_window_has_not_started() -> None:
    """Nothing is kept for a run that starts when the window has ended; it is one of the jobs that wait."""
    assert rest(replace(CASE, runs=(TAKES,), end=111)) == "2 free, 2 free_cycle"
    assert rest(replace(CASE, runs=(TAKES,), end=110)) == "2 free, 2 free_unknown"


def test_gpus_kept_for_several_runs() -> None:
    """The run that starts first, then the lower job id has its GPUs kept first, and no more than the node has left."""
    later = replace(TAKES, job_id=1, start=180, end=190)
    busy = Run(7, 0, 0, 0, 110, 1, 1, GIB, held={"a": Amount(1, 1, GIB)})
    assert rest(replace(CASE, runs=(busy, later, TAKES))) == "2 free_cycle, 1 free_unknown"


LARGE = Run(3, 0, 20, 150, 190, 8, 8, GIB, nodes=2, partitions=("p",), held=dict.fromkeys("ab", Amount(4, 4, GIB)))
BUSY = Run(4, 0, 0, 0, 150, 1, 1, GIB, held={"a": Amount(1, 1, GIB)})


@pytest.mark.parametrize(
    ("small", "large", "words"),
    [
        (replace(WAITS, limit_s=130), LARGE, "3 free_planned"),
        (replace(WAITS, limit_s=129), LARGE, "3 free_few_gpus"),
        (WAITS, LARGE, "3 free_planned"),
        (WAITS, replace(LARGE, eligible=31), "1 free, 2 free_unknown"),
        (WAITS, replace(LARGE, gpus=2), "3 free_unknown"),
        (replace(WAITS, reason="QOSGrpGRES"), LARGE, "1 free, 2 free_limit"),
    ],
)
def test_a_node_that_a_larger_job_takes_next(small: Run, large: Run, words: str) -> None:
    """A job that would have delayed the next, larger one on its node waits for that; one that is short does not."""
    other = replace(BUSY, job_id=5, held={"b": Amount(1, 1, GIB)})
    assert rest(replace(BOTH, runs=(BUSY, other, small, large)), t=30) == words


def test_other_nodes_count() -> None:
    """A job over two nodes waits for memory where each of two has no other obstacle, else for GPUs or unknown."""
    wide = replace(WAITS, nodes=2, gpus=4, cpus=8, memory=16 * GIB)
    two = replace(BOTH, runs=(HOLDS_MEMORY, wide))
    assert rest(two) == "3 free_memory"
    assert rest(replace(two, outages=(Outage("b", 40, None, "DRAINED"),))) == "3 free_unknown"
    assert rest(replace(two, runs=(wide,), reservations=(Reservation("r", ("b",), 0, 60),))) == "4 free_few_gpus"


def test_never_more_than_waiting_jobs_request() -> None:
    """GPUs of one kind have a cause up to what is requested: by cause, then by name of the node; the rest is free."""
    second_one = replace(SMALL, name="b")
    also = replace(HOLDS_MEMORY, job_id=6, held={"b": Amount(1, 2, 60 * GIB)})
    case = replace(
        CASE, nodes=(SMALL, second_one), runs=(HOLDS_MEMORY, also, replace(WAITS, nodes=2, gpus=4, memory=16 * GIB))
    )
    assert rest(case) == "3 free_memory"
    assert rest(case, node="b") == "2 free, 1 free_memory"
    assert blocked([(50, found) for found in second(case, 50).values()]) == {
        (0, "free_memory", (1, 0), "a"): 3,
        (0, "free_memory", (6, 0), "b"): 1,
    }


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
    assert second(case, 50)["a"].gpus == {"allocated": 3, word: 1}
    assert rest(case, 60) == "1 free_few_gpus"


def test_states_that_are_not_known() -> None:
    """Before states of nodes are known, one is usable while a run is on it, and not known otherwise."""
    case = replace(BOTH, runs=(HOLDS_GPUS, WAITS), states_from=60)
    assert rest(case) == "1 free_few_gpus"
    assert rest(case, node="b") == "4 not_known"
    assert rest(case, 60, node="b") == "2 free, 2 free_unknown"


def test_a_blocker_takes_more_than_its_share() -> None:
    """The run with the most memory beyond its share of GPUs is named with what it kept free; a fair one is not."""
    more = replace(HOLDS_MEMORY, job_id=4, held={"a": Amount(0, 2, 40 * GIB)}, gpus=0)
    less = replace(HOLDS_MEMORY, held={"a": Amount(1, 2, 20 * GIB)})
    case = replace(CASE, runs=(less, more, WAITS))
    assert blocked(seconds(case)) == {(0, "free_memory", (4, 0), "a"): 190 * 2}
    fair = replace(HOLDS_MEMORY, held={"a": Amount(2, 2, 32 * GIB)})
    assert blocked(seconds(replace(case, runs=(fair, replace(WAITS, memory=40 * GIB))))) == {}


@settings(max_examples=examples(20))
@given(case=cases())
def test_drawn_seconds_add_up(case: Case) -> None:
    """Each GPU of each second of a drawn machine is in exactly one class, and the sums lose none."""
    rows = list(seconds(case))
    assert all(sum(found.gpus.values()) == found.node.gpus for _, found in rows)
    assert sum(sums(rows).values()) == sum(found.node.gpus for _, found in rows)
