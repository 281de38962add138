"""Accounting is read politely: in slices, the newest first, with pauses, within a bound; what was read is kept."""

from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from gpuwaste.core.errors import UsageError
from gpuwaste.core.units import DAY_S
from gpuwaste.slurm.clients.command import CommandError
from gpuwaste.testing.clocks import FakeClock
from gpuwaste.views.look.folder import LookFolder
from gpuwaste.views.look.slices import ReadingLimits, ReadingResult, SliceReader, job_columns

MIDNIGHT = 1_700_006_400  # 2023-11-15T00:00:00Z
NOON = MIDNIGHT + DAY_S // 2
HOUR = 3600


class Scripted:
    """Answers of sacct that each take some seconds; `asked` has the windows, in hours from MIDNIGHT."""

    def __init__(self, folder: Path, took_s: Callable[[int, int], float] = lambda *_: 2.0) -> None:
        self.folder = LookFolder(folder)
        self.folder.prepare()
        self.clock = FakeClock(NOON)
        self.asked: list[tuple[float, float]] = []
        self.timeouts: list[float] = []
        self._took_s = took_s

    def lines(self, start: int, end: int, timeout_s: float) -> Generator[bytes]:
        """Answer."""
        self.asked.append(((start - MIDNIGHT) / HOUR, (end - MIDNIGHT) / HOUR))
        self.timeouts.append(timeout_s)
        took_s = self._took_s(start, end)
        self.clock.advance(min(took_s, timeout_s))
        if took_s > timeout_s:
            raise CommandError("sacct: no answer")
        yield b"row\n"

    def read(self, days: float, **limits: float) -> ReadingResult:
        """Read up to noon."""
        self.folder.begin(("JobIDRaw", "JobID", "Submit"), b"\x1f0123456789abcdef\x1f")
        reader = SliceReader(self.folder, self.lines, self.clock, ReadingLimits(**limits))  # type: ignore[arg-type]
        return reader.read(int(NOON - days * DAY_S), NOON, self.folder.columns()[2])


def test_days_are_read_from_the_newest_on_with_pauses_in_proportion(tmp_path: Path) -> None:
    """Slices end at midnight UTC; after each answer there is a pause of half of its time."""
    sacct = Scripted(tmp_path / "look")
    assert sacct.read(2) == ReadingResult([], "")
    assert sacct.asked == [(0, 12), (-24, 0), (-36, -24)]
    assert sacct.clock.waits == [1.0, 1.0, 1.0]
    assert [one.path.name for one in sacct.folder.slices()][-1] == "2023-11-15T000000Z_2023-11-15T120000Z.txt.gz"


def test_slices_become_shorter_where_answers_are_long_and_longer_again(tmp_path: Path) -> None:
    """After an answer of more than ten seconds the next slice is half as long, down to an hour."""
    sacct = Scripted(tmp_path / "look", lambda start, _end: 30.0 if start >= MIDNIGHT - 12 * HOUR else 0.1)
    assert sacct.read(2.5).unread == []
    assert sacct.asked == [(0, 12), (-12, 0), (-18, -12), (-24, -18), (-48, -24)]


def test_reading_ends_at_its_time_limit_and_continues_there_the_next_time(tmp_path: Path) -> None:
    """What was not read is named with the reason; the same folder then reads only that."""
    sacct = Scripted(tmp_path / "look", lambda *_: 8.0)
    found = sacct.read(3, total_s=21.0)
    assert found.unread == [(NOON - 3 * DAY_S, MIDNIGHT - DAY_S)]
    assert found.reason == "the time limit of 21 s was reached"
    assert max(sacct.timeouts) <= 21.0
    sacct.asked.clear()
    assert sacct.read(3) == ReadingResult([], "")
    assert sacct.asked == [(-48, -24), (-60, -48)]


def test_a_slice_without_an_answer_is_tried_shorter_down_to_an_hour(tmp_path: Path) -> None:
    """A silent slurmdbd gets ever shorter questions, and the reason is what the last one met."""
    sacct = Scripted(tmp_path / "look", lambda *_: 1000.0)
    found = sacct.read(1, silence_s=5.0)
    assert [end - start for start, end in sacct.asked] == [12, 12, 6, 3, 1.5, 1]
    assert found.unread == [(NOON - DAY_S, NOON)]
    assert found.reason == "sacct: no answer"


def test_a_refusal_ends_the_reading_at_once(tmp_path: Path) -> None:
    """A sacct that fails with an exit code is not asked again."""
    sacct = Scripted(tmp_path / "look")

    def refuse(*_: object) -> Generator[bytes]:
        yield b"row\n"
        raise CommandError("sacct: exit code 1: no access", code=1)

    sacct.lines = refuse  # type: ignore[method-assign, assignment]
    assert sacct.read(1).reason == "sacct: exit code 1: no access"
    assert sacct.folder.slices() == []  # the rows before the error are not a slice


def test_an_interrupt_keeps_the_slices_before_it(tmp_path: Path) -> None:
    """Ctrl-C within a slice leaves the earlier ones, and no file of the one that was being read."""
    sacct = Scripted(tmp_path / "look")
    answer = sacct.lines

    def pressed(start: int, end: int, timeout_s: float) -> Generator[bytes]:
        yield from answer(start, end, timeout_s)
        if len(sacct.asked) == 2:
            raise KeyboardInterrupt

    sacct.lines = pressed  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        sacct.read(2)
    assert [one.start for one in sacct.folder.slices()] == [MIDNIGHT]
    assert sorted(file.name for file in sacct.folder.accounting.iterdir()) == [
        "2023-11-15T000000Z_2023-11-15T120000Z.txt.gz",
        "columns.txt",
    ]


def test_columns_are_those_that_this_sacct_has_and_name_no_job() -> None:
    """An older sacct lacks some; names and users' comments are never requested."""
    found = job_columns(("JobIDRaw", "JobID", "Submit", "ExitCode", "JobName", "Comment"))
    assert found == ("JobIDRaw", "JobID", "Submit", "ExitCode")


@pytest.mark.parametrize("content", [b"", b"JobIDRaw|JobID|Submit\n", b"\xff" * 5000])
def test_a_damaged_line_of_columns_is_one_clear_line(tmp_path: Path, content: bytes) -> None:
    """A folder whose columns cannot be read is refused, not misread."""
    folder = LookFolder(tmp_path / "look")
    folder.prepare()
    (folder.accounting / "columns.txt").write_bytes(content)
    with pytest.raises(UsageError, match=r"columns\.txt: is damaged: remove the folder"):
        folder.columns()


def test_a_folder_with_other_files_is_refused(tmp_path: Path) -> None:
    """Nothing is written next to files of somebody else."""
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(UsageError, match="contains other files"):
        LookFolder(tmp_path).prepare()
    assert [file.name for file in tmp_path.iterdir()] == ["thesis.tex"]
