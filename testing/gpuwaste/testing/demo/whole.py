"""What only `make demo-all` shows: another schedule, a plan, estimates, rules, campaigns, and the store in a lake."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from gpuwaste.testing.demo.effect import measure_effect
from gpuwaste.testing.demo.ending import Ending, plan_and_submit, replay
from gpuwaste.testing.demo.ladder import go_up, own_directory, with_ladder
from gpuwaste.testing.demo.lake import with_lake
from gpuwaste.testing.demo.output import Say
from gpuwaste.testing.demo.pages import PageAlbum, take_pages
from gpuwaste.testing.demo.program import estimate_and_plan
from gpuwaste.testing.demo.story import Story
from gpuwaste.testing.mail_server import MailServer, running_mail_server
from gpuwaste.testing.running_site import Site, SiteOptions


@dataclass(frozen=True, slots=True)
class WholeDemo:
    """The options of its site, and what its rules need: their folder and a mail server."""

    options: SiteOptions
    rules: Path
    mail: MailServer
    directory: Path

    def endings(self, site: Site, story: Story, album: PageAlbum, say: Say) -> Iterator[Ending]:
        """Keep screenshots of the pages, then yield each part when it has ended."""
        take_pages(album, story, int(time.time()))
        yield replay(site, story)
        yield plan_and_submit(site, say)
        yield estimate_and_plan(site, say)
        yield go_up(site, self.rules, self.mail, say)
        yield measure_effect(site, self.directory / "effect", say)


@contextmanager
def whole_demo(options: SiteOptions, directory: Path, *, lake: bool) -> Iterator[WholeDemo]:
    """Start what a site needs besides the cluster; `directory` is the demo's own."""
    rules = directory / "rules.d"
    with running_mail_server() as mail, with_lake(options, directory, lake=lake) as stored:
        options = with_ladder(stored, rules, mail, own_directory(directory / "actor"))
        yield WholeDemo(options, rules, mail, directory)
