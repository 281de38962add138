"""The comparison of a load with slurmctld's queue: what is lost, doubled or alien is named."""

from gpuwaste.testing.submit_load import LoadResult, SbatchCall, SbatchResult, compare


def _outcome(name: str, job_id: int | None, *, doomed: bool = False, began_s: float = 0.0) -> SbatchResult:
    return SbatchResult(SbatchCall("alice", name, doomed=doomed), job_id, "why", began_s, began_s + 2.0)


def test_a_queue_that_holds_each_accepted_job_once_is_right() -> None:
    """Nothing is said when ids and names agree, whatever was refused."""
    result = LoadResult([_outcome("t.0", 7), _outcome("t.1", None, doomed=True), _outcome("t.2", 8)])
    assert compare(result, [(8, "t.2"), (7, "t.0")]) == []
    assert result.wrong() == []


def test_lost_doubled_and_alien_jobs_are_named() -> None:
    """An accepted job that is gone, one that is there twice, and one that was refused and is there all are told."""
    result = LoadResult([_outcome("t.0", 7), _outcome("t.1", 8), _outcome("t.2", None)])
    assert compare(result, [(8, "t.1"), (9, "t.1"), (10, "t.2")]) == [
        "job 7 (t.0) was accepted and is not queued",
        "job 9 (t.1) is queued and was not accepted",
        "job 10 (t.2) is queued and was not accepted",
        "t.1 is queued 2 times",
    ]


def test_a_controller_that_goes_away_leaves_the_job_open() -> None:
    """Where sbatch lost slurmctld in the midst of its question, the job may be queued or not, if that was to come."""
    words = "sbatch: error: Batch job submission failed: Unexpected missing socket error"
    result = LoadResult([SbatchResult(SbatchCall("alice", "t.0"), None, words, 0.0, 1.0)])
    assert result.wrong() == [f"t.0: {words}"]
    assert result.wrong(away=True) == compare(result, [(7, "t.0")]) == compare(result, []) == []


def test_a_refusal_is_wrong_unless_it_was_to_come() -> None:
    """Each refusal of a job that no policy forbids is a line with sbatch's own words."""
    result = LoadResult([_outcome("t.0", None), _outcome("t.1", None, doomed=True), _outcome("t.2", 3, began_s=5.0)])
    assert result.wrong() == ["t.0: why"]
    assert (len(result.accepted), len(result.refused), result.longest_s) == (1, 2, 2.0)
    assert result.since(4.0).outcomes == result.outcomes[2:]
