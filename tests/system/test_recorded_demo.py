"""The recorded demos: what the recorded runs reported is reported again, anywhere, by anybody, and labelled."""

import json
import math
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from gpuwaste.testing.demo.__main__ import EXIT_RECORDING, main
from gpuwaste.testing.demo.checks import DemoCheck, check_story
from gpuwaste.testing.demo.recorded import played_story
from gpuwaste.testing.demo.story import Story
from gpuwaste.testing.patience import patient
from gpuwaste.testing.recording.format import SHIPPED, SHIPPED_ALL, read_recording
from gpuwaste.testing.recording.player import PlayedSite
from gpuwaste.testing.runtime import Runtime, shared_runtime

MAX_BYTES = 300_000
QUESTIONS = ["1. What did alice waste?", "2. What does her page show?", "3. What does sbatch print?"]
# What depends on when and where a document was asked for, and words, which may change without any figure.
NOT_COMPARED = {"generated", "recorded", "notes", "thresholds", "title", "evidence", "fix", "why", "text"}
NOT_COMPARED |= {"advice"}  # the advisor is no part of a playback, so no decision of its own reaches the hub


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[PlayedSite, Story]]:
    with PlayedSite(tmp_path_factory.mktemp("play"), SHIPPED_ALL) as site:
        yield site, played_story(site, lambda _at_s, _text: None)


@pytest.fixture(scope="module")
def checked(played: tuple[PlayedSite, Story]) -> list[DemoCheck]:
    """Return what is said of the recorded run, beside what its load programs did."""
    site, story = played
    return check_story(site, story)


@pytest.fixture(scope="module")
def checked_short(tmp_path_factory: pytest.TempPathFactory) -> list[DemoCheck]:
    """Return the same of the recording of `make demo`."""
    with PlayedSite(tmp_path_factory.mktemp("short"), SHIPPED) as site:
        return check_story(site, played_story(site, lambda _at_s, _text: None))


def differences(recorded: Any, again: Any, at: str) -> Iterator[str]:
    """Yield where two documents differ; a key that one of them lacks is a newer or an older version's."""
    if isinstance(recorded, dict) and isinstance(again, dict):
        for key in sorted((recorded.keys() & again.keys()) - NOT_COMPARED):
            yield from differences(recorded[key], again[key], f"{at} {key}")
    elif isinstance(recorded, list) and isinstance(again, list) and len(recorded) == len(again):
        for number, (one, other) in enumerate(zip(recorded, again, strict=True)):
            yield from differences(one, other, f"{at} {number}")
    elif recorded != again and not (isinstance(again, float) and math.isclose(recorded, again, rel_tol=1e-12)):
        yield f"{at}: {recorded!r} was recorded, {again!r} is reported"


def test_the_reports_are_those_of_the_recorded_run(played: tuple[PlayedSite, Story]) -> None:
    """Each figure of each document that the recorded run gave to its users is given again, sums to 12 digits."""
    site, story = played
    asked = [entry for entry in site.heard.asked if entry.document]
    assert len(asked) >= len(story.jobs) + 4
    for entry in asked:
        window = site.window if entry.command[0] == "report" else ()
        again = site.json(*entry.command, *window, user=entry.user)
        assert again["recorded"] is True
        document = {key: value for key, value in entry.document.items() if not window or key not in {"start", "end"}}
        assert {"totals", "jobs"} <= again.keys() or {"runs", "findings"} <= again.keys()
        assert list(differences(document, again, " ".join(entry.command))) == []


def test_the_checks_of_the_demo_hold(checked: list[DemoCheck], checked_short: list[DemoCheck]) -> None:
    """What is reported of the recorded runs agrees with what their load programs did and with accounting."""
    assert len(checked) > len(checked_short) > 20
    assert [check for check in (*checked, *checked_short) if not check.ok] == []


@pytest.mark.parametrize("form", ["", "--parsable", "--csv"])
def test_every_table_is_labelled(played: tuple[PlayedSite, Story], form: str) -> None:
    """Titles and table headings of a recording say so, and each line for programs has it in a cell."""
    site, story = played
    job = str(story.jobs["train-ddp"])
    for command in (["report", "--allusers", *site.window], ["job", job]):
        text = site.gpuwaste(*command, *filter(None, [form]), user="root").stdout
        lines = text.splitlines()
        if form:
            separator = "|" if form == "--parsable" else ","
            assert lines[0].split(separator)[-1] == "recorded"
            assert {line.split(separator)[-1] for line in lines[1:]} <= {"1", "True"}
        else:
            assert "[recorded]" in lines[1]
            headings = [line for before, line in pairwise(lines) if not before and line[:1].isalpha()]
            assert headings
            assert all("[recorded]" in line for line in headings)
    assert story.top.count("[recorded]") >= 2


def test_a_user_reads_his_own_jobs_alone(played: tuple[PlayedSite, Story]) -> None:
    """Bob gets for alice's job what he gets for no job, also in a recording."""
    site, story = played
    foreign = site.gpuwaste("job", str(story.jobs["train-ddp"]), user="bob", check=False)
    none = site.gpuwaste("job", "4000000", user="bob", check=False)
    assert foreign.returncode == none.returncode == 3
    assert foreign.stderr.replace(str(story.jobs["train-ddp"]), "N") == none.stderr.replace("4000000", "N")


@pytest.mark.parametrize("shipped", [SHIPPED, SHIPPED_ALL])
def test_a_shipped_recording_is_small_and_says_nothing_of_its_host(shipped: Path) -> None:
    """The file is small, and no path or name of the machine on which it was made is in it."""
    assert shipped.stat().st_size < MAX_BYTES
    opening, entries = read_recording(shipped)
    text = repr([opening, *entries])
    assert not re.findall(r"/(?:root|home|work|tmp|var|usr|builds|workspace)/[^'\" ]*", text)
    assert set(re.findall(r"hostname='([^']*)'", text)) == {"host"}


def test_nobody_can_play_it_anywhere(checked_short: list[DemoCheck]) -> None:
    """`make demo` as nobody, without Slurm on PATH, in / and far from UTC: the same checks hold, a page is left."""
    # Not below pytest's own folder, which other users may not enter.
    with tempfile.TemporaryDirectory(prefix="gwtest", dir="/tmp") as directory:
        Path(directory).chmod(0o755)
        runtime = shared_runtime(Path(directory) / "runtime")
        own = Path(directory) / "own"
        own.mkdir()
        user = "nobody" if os.geteuid() == 0 else None
        if user:
            shutil.chown(own, user)
        shown = _play(runtime, own, user, "Pacific/Kiritimati")
    assert shown == [[check.what, check.truth, check.said, check.ok] for check in checked_short]


def _play(runtime: Runtime, own: Path, user: str | None, zone: str) -> Any:
    """Play the shipped recording with `own` as the folder for temporary files; return the checks."""
    result, pages = own / "result.json", own / "pages"
    argv = runtime.module("gpuwaste.testing.demo", "--result", str(result), "--pages", str(pages))
    done = subprocess.run(
        argv if user else [*argv, "--play"], capture_output=True, text=True, timeout=patient(300), check=False,
        env={"PATH": "/nonexistent", "TMPDIR": str(own), "TZ": zone, **runtime.env}, cwd="/", stdin=subprocess.DEVNULL,
        user=user, extra_groups=[] if user else None,
    )  # fmt: skip
    assert done.returncode == (EXIT_RECORDING if user else 0), done.stdout[-3000:] + done.stderr
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert "playing a recorded run" in "".join(lines[:2])
    if user:
        why = "a Slurm cluster on loopback needs root"
        assert lines[0].startswith(f"demo: NO REAL CLUSTER: {why}")
        assert lines[-1].startswith(f"demo: this was a RECORDING, not a run on this host: {why}")
    assert [line for line in lines if re.match(r"\d\. ", line)] == QUESTIONS
    assert any("make demo-all" in line for line in lines[-3:])
    page = (pages / "alice.html").read_text(encoding="utf-8")
    assert "#SBATCH --gres=gpu:a100:1" in page
    assert not re.search(r"<script|rel=.stylesheet", page), "it needs no hub"
    assert {path.name for path in own.iterdir()} == {result.name, pages.name}
    return json.loads(result.read_text())["checks"]


def test_why_the_packages_are_missing_is_the_reason_that_is_said(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The installer's own words come first and last, not what they led to: commands that are not there."""
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.setattr("gpuwaste.testing.cluster_host.search_path", lambda: "/nonexistent")
    monkeypatch.setattr("gpuwaste.testing.demo.__main__._play", lambda *_: 0)  # what it plays is the others' subject
    assert main(["--lacking", "no network"]) == EXIT_RECORDING
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "demo: NO REAL CLUSTER: no network"
    assert lines[-1] == "demo: this was a RECORDING, not a run on this host: no network (exit code 5)"


def test_a_damaged_recording_is_one_line_and_exit_code_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A recording that was cut off is refused in one line that says what to do."""
    path = tmp_path / "cut.xz"
    path.write_bytes(SHIPPED.read_bytes()[:-200])
    assert main(["--play", str(path)]) == 1
    said = capsys.readouterr().err
    assert re.fullmatch(r"demo: \S+cut\.xz: is damaged or cut off \(.*\): take a whole one .*\n", said)
