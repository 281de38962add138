"""What squeue says of a user's own jobs of one name."""

from hypothesis import given
from hypothesis import strategies as st

from gpuwaste.plan.user_site import QueuedJobs, queued_jobs

HOUR = 3600


class Squeue:
    """Prints a queue, and keeps the words it was asked with."""

    def __init__(self, text: str) -> None:
        self.printed = text
        self.words: tuple[str, ...] = ()

    def text(self, *argv: str) -> str:
        """Return the queue."""
        self.words = argv
        return self.printed


def test_jobs_are_counted_by_what_they_wait_for() -> None:
    """Those with a dependency and arrays of one task at a time follow each other; the others may start at once."""
    queue = Squeue(
        "7|30:00|Dependency\n8_[1-9%1]|1:00:00|Resources\n9_[1-5%2]|10:00|Priority\n"
        "10|30:00|DependencyNeverSatisfied\n11|5:00|None\n12|1:00:01|Priority\n13|UNLIMITED|Priority\n"
    )
    assert queued_jobs(queue, "alice", "train", HOUR) == QueuedJobs(after=11, alone=6)
    assert queue.words[:2] == ("squeue", "--noheader")
    assert {"--user=alice", "--name=train", "--states=PENDING"} <= set(queue.words)


def test_a_name_is_no_option_and_no_list_is_endless() -> None:
    """A name that looks like an option stays behind its own; an array of a million tasks counts as a thousand."""
    queue = Squeue("1_[0-999999]|10:00|Priority\n")
    assert queued_jobs(queue, "alice", "--help", HOUR) == QueuedJobs(alone=1000)
    assert "--name=--help" in queue.words


@given(st.text(alphabet=st.sampled_from("0123456789_[]%|:-\n DependcyUNLMT"), max_size=200))
def test_whatever_squeue_prints_is_read(text: str) -> None:
    """Cut, mixed up or of another program: jobs that cannot be read are not counted."""
    found = queued_jobs(Squeue(text), "alice", "train", HOUR)
    assert 0 <= found.after <= 1000
    assert 0 <= found.alone <= 1000
