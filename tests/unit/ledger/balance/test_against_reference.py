"""The balance gives what its second-by-second reference gives."""

from collections import Counter
from dataclasses import replace

from hypothesis import given, settings
from tests.examples import examples
from tests.unit.ledger.balance.drawn_cases import GIB, cases
from tests.unit.ledger.balance.engine_inputs import engine_inputs
from tests.unit.ledger.balance.happened import Amount, Case
from tests.unit.ledger.balance.reference import blocked, doubtful, seconds, sums
from tests.unit.ledger.balance.test_reference import BUSY, CASE, HOLDS_MEMORY, LARGE, OTHER, SMALL, TAKES, WAITS

from gpuwaste.ledger.balance.balance import balance


def assert_same(case: Case) -> None:
    """Compare each hour, kind and class, what is estimated or over, and each run that kept GPUs of a node free."""
    rows = list(seconds(case))
    found = balance(engine_inputs(case))
    given_seconds = {(at.hour, *at.kind, at.of.value): gpu_s for at, gpu_s in found.seconds.items() if gpu_s}
    assert given_seconds == dict(sums(rows))
    doubts = tuple(
        Counter({(at.hour, *at.kind): gpu_s for at, gpu_s in part.items() if gpu_s})
        for part in (found.estimated, found.over)
    )
    assert doubts == doubtful(rows)
    given_blocked: Counter[tuple[int, str, tuple[int, int], str]] = Counter()
    for at, gpu_s in found.blocked.items():
        given_blocked[at.hour, at.of.value, at.run, at.node] += gpu_s
    assert given_blocked == blocked(rows)


def of_node_a(case: Case) -> dict[str, int]:
    """Return the GPU-seconds of kind p, a100 by class; the reference has the same."""
    assert_same(case)
    return {at.of.value: gpu_s for at, gpu_s in balance(engine_inputs(case)).seconds.items() if gpu_s}


def test_a_run_with_its_share_is_in_nobodys_way() -> None:
    """Where no run has more memory than its share of the GPUs, none is named for the GPUs that others cannot use."""
    fair = replace(HOLDS_MEMORY, held={"a": Amount(2, 2, 32 * GIB)})
    case = replace(CASE, runs=(fair, replace(WAITS, memory=40 * GIB)))
    assert of_node_a(case) == {"allocated": 400, "free": 20, "free_memory": 380}
    assert balance(engine_inputs(case)).blocked == {}


def test_a_run_whose_nodes_are_not_known() -> None:
    """It waits until it starts, and nothing is kept for it anywhere."""
    assert of_node_a(replace(CASE, runs=(replace(TAKES, held={}),))) == {"free": 600, "free_unknown": 200}


def test_a_larger_job_that_starts_after_the_window() -> None:
    """It does not explain yet why a smaller one does not start: with a longer window it does."""
    case = replace(CASE, nodes=(SMALL, OTHER), runs=(BUSY, WAITS, replace(LARGE, start=250, end=290)))
    assert "free_planned" not in of_node_a(case)
    assert "free_planned" in of_node_a(replace(case, end=251))


def test_a_job_without_a_request_of_memory() -> None:
    """It needs none, on a node too of which runs hold more than all memory."""
    greedy = replace(HOLDS_MEMORY, held={"a": Amount(1, 2, 80 * GIB)})
    case = replace(CASE, runs=(greedy, replace(WAITS, memory=0)))
    assert of_node_a(case) == {"allocated": 200, "free": 220, "free_unknown": 380}


def test_runs_of_which_only_the_sum_is_known_and_runs_beyond_their_node() -> None:
    """Estimated are never more GPUs than are allocated; what runs hold beyond a node is in no class."""
    even = replace(HOLDS_MEMORY, held={"a": Amount(3, 2, GIB)}, is_estimated=True)
    second = replace(even, job_id=77, held={"a": Amount(2, 2, GIB)}, is_estimated=False)
    case = replace(CASE, runs=(even, second))
    assert of_node_a(case) == {"allocated": 4 * 200}
    found = balance(engine_inputs(case))
    assert (sum(found.estimated.values()), sum(found.over.values())) == (3 * 200, 200)


@settings(max_examples=examples(200))
@given(case=cases())
def test_drawn_cases_are_as_the_reference_has_them(case: Case) -> None:
    """Each GPU-second of drawn machines has the same hour, kind and class, and the same run keeps it free."""
    assert_same(case)
