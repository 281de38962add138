"""The table of job states, and the queries that use its sets."""

from pathlib import Path

import gpuwaste
from gpuwaste.core.job_states import ENDED, FAILED, HOLDING, NODE_FAILED, QUEUED, SETS, STATES, SYSTEM, WAITING
from gpuwaste.store.database import query_text


def test_a_state_is_in_one_phase_and_has_a_code_of_its_own() -> None:
    """A job waits, holds its nodes or has ended; a run that ended by REQUEUED is a job that waits again."""
    assert len(WAITING) + len(HOLDING) + len(ENDED) == len(STATES)
    assert not HOLDING & (ENDED | QUEUED)
    assert {"REQUEUED"} == QUEUED & ENDED
    assert len({state.code for state in STATES.values()}) == len(STATES)


def test_blame_is_for_ends_only() -> None:
    """FAILED and OUT_OF_MEMORY are the job's own; a node that failed is no fault of it; a timeout is neither."""
    assert {"FAILED", "OUT_OF_MEMORY"} == FAILED
    assert NODE_FAILED < SYSTEM
    assert FAILED | SYSTEM < ENDED
    assert {"COMPLETED", "CANCELLED", "TIMEOUT"} == ENDED - FAILED - SYSTEM


def test_queries_have_the_sets_from_the_table() -> None:
    """A query names a set, its text has the states; no query spells one out."""
    assert "j.state IN ('FAILED', 'OUT_OF_MEMORY')" in query_text("failed_scripts")
    sources = [path.read_text() for root in gpuwaste.__path__ for path in Path(root).rglob("*.sql")]
    assert all(any(f"{{{name}}}" in text for text in sources) for name in SETS)
    for states in map(sorted, SETS.values()):
        spelled = {f"IN ({', '.join(map(repr, order))})" for order in (states, states[::-1])}
        assert not [text for text in sources if any(words in text for words in spelled)]
