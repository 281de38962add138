"""The demo's own part of a recording: its progress, its commands, what the load programs did, and the story of it."""

import json
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from gpuwaste.core.version import own_version
from gpuwaste.testing.cluster_directory import CLUSTER_NAME
from gpuwaste.testing.demo.jobs import FIRST, NEAR, SECOND
from gpuwaste.testing.demo.story import Outage, Story, advice_of, advice_of_line, questions
from gpuwaste.testing.recording.format import FORMAT, Entry, Opening, RecordedCommand, RecordingError, Said, Truth
from gpuwaste.testing.recording.player import PlayedSite
from gpuwaste.testing.recording.tape import read_tapes, save
from gpuwaste.testing.running_site import Site, SiteOptions

_PLAN = {job.name: job for job in (*FIRST, *SECOND, *NEAR)}


@dataclass(slots=True)
class Notes:
    """Shows lines of progress and keeps them."""

    show: Callable[[str], None]
    lines: list[Said] = field(default_factory=list)

    def say(self, text: str) -> None:
        """Show one line and keep it."""
        self.keep(text)
        self.show(text)

    def keep(self, text: str) -> None:
        """Keep one line for the recording."""
        self.lines.append(Said(_now_us(), text))


def save_run(path: Path, site: Site, options: SiteOptions, story: Story, notes: Notes) -> int:
    """Write the recording of a story that has just ended; returns its bytes.

    A playback has the story only: `options` are those without what later parts need (rules, a mail server).
    """
    tapes = site.options.tapes
    if tapes is None:
        raise RecordingError("the site did not record")
    renamed = {str(site.cluster.directory): "/cluster", socket.gethostname(): "host"}
    entries: list[Entry] = [*notes.lines, *_asked(site, story), *read_tapes(tapes, renamed)]
    outage = story.outage
    entries.append(
        Truth(
            _now_us(),
            story.jobs,
            None if outage is None else (outage.node, outage.began, outage.ended),
            tuple(site.oracle()),
        )
    )
    opening = Opening(
        FORMAT, min(entry.t_us for entry in entries), own_version(), CLUSTER_NAME, tuple(site.cluster.nodes),
        options.interval_s, options.ship_every_s, options.sacct_every_s, options.hub, options.agent,
    )  # fmt: skip
    return save(path, [opening, *entries], renamed)


def _asked(site: Site, story: Story) -> Iterator[RecordedCommand]:
    """Yield who wastes most at its moment, and what each person reads at the end."""
    yield RecordedCommand(
        int(story.top_at * 1e6),
        "root",
        ("now", "--hours", "1"),
        {},
    )
    of_jobs = [("root", ["job", str(job)]) for job in story.jobs.values()]
    for user, command in [*questions(story), *of_jobs]:
        found = site.gpuwaste(*command, "--json", user=user, check=False)
        if not found.returncode:
            yield RecordedCommand(_now_us(), user, tuple(command), json.loads(found.stdout))


def played_story(site: PlayedSite, say: Callable[[float, str], None]) -> Story:
    """Play the recording and return its story. Raises RecordingError where it is not one of this demo."""
    lines: list[str] = []

    def progress(at_s: float, text: str) -> None:
        lines.append(text)
        if advice_of_line(text) is None:  # shown later, as a terminal shows it
            say(at_s, text)

    heard = site.play(progress)
    truth = heard.truth
    if truth is None:
        raise RecordingError(f"{site.recording}: no run of the demo: it lacks what the load programs did")
    unknown = sorted(truth.jobs.keys() - _PLAN.keys())
    if unknown:
        raise RecordingError(
            f"{site.recording}: its jobs {', '.join(unknown)} are not the demo's any more: record anew"
        )
    return Story(
        site.opening.t_us / 1e6,
        dict(truth.jobs),
        {name: _PLAN[name] for name in truth.jobs},
        None if truth.outage is None else Outage(*truth.outage),
        heard.top,
        advice=advice_of(lines),
    )


def _now_us() -> int:
    return time.time_ns() // 1000
