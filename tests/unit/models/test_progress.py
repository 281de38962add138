"""Progress of a training."""

import io

from gpuwaste.models.training_progress import TrainingProgress


def test_without_a_terminal_there_are_plain_lines() -> None:
    """One line for each stage, no control characters; times of a name add up."""
    stream = io.StringIO()
    progress = TrainingProgress(stream)
    for _ in range(2):
        with progress.stage("search failure", 3) as tick:
            tick()
    lines = stream.getvalue().splitlines()
    assert [line.partition(":")[0] for line in lines] == ["search failure"] * 2
    assert not set(stream.getvalue()) & set("\r\x1b")
    assert list(progress.seconds) == ["search failure"]
    assert progress.seconds["search failure"] >= 0


def test_without_a_stream_only_the_times_are_kept() -> None:
    """A caller that shows nothing gets the stages' times."""
    progress = TrainingProgress()
    with progress.stage("export"):
        pass
    assert set(progress.seconds) == {"export"}
