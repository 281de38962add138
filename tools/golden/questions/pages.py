"""The pages in each form, as each kind of reader, and the files that they refer to."""

import hashlib
import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import quote

from tools.golden.questions.api import READERS, VIEWS, kinds_of_jobs, text_of
from tools.golden.questions.commands import saved_simulation
from tools.golden.site import DAY, NOW, Site
from tools.golden.story import WEEK
from tools.golden.world import OPERATOR, World

_STATIC: Final = re.compile(r'"(/static/[^"]+)"')
_WEEK: Final = f"start={WEEK[0]}&end={WEEK[1]}"
_ALL: Final = f"start={NOW - 71 * DAY}&end={NOW + DAY}"
_TARGETS: Final = (
    "/", "/jobs", "/jobs?id=7", "/no-such-page", "/me", "/me?days=7", "/me?days=8", "/me?days=-1", f"/me?{_ALL}",
    f"/me?{_ALL}&page=2", f"/me?{_ALL}&state=FAILED", f"/me?{_ALL}&name=train1&partition=gpu",
    f"/me?{_ALL}&finding=idle_tail", "/me?start=x", f"/me.json?{_WEEK}", f"/me.csv?{_WEEK}", f"/users/alice?{_WEEK}",
    f"/users/alice.json?{_WEEK}", f"/users/alice.csv?{_ALL}", "/users/nobody", f"/accounts/physics?{_ALL}",
    f"/accounts/physics.json?{_WEEK}", f"/accounts/physics.csv?{_WEEK}", f"/accounts/chemistry?{_WEEK}", "/now",
    "/now.json", "/now.csv", "/helpdesk", "/helpdesk?id=x", "/verdicts", "/verdicts.json", "/verdicts.csv",
    f"/verdicts?{_WEEK}", "/verdicts?user=alice", "/models", "/models.json", "/analytics", "/analytics/nothing",
    "/simulations", "/simulations/nothing", "/jobs/4711", "/jobs/x.json", "/jobs/4711/curves.json",
)  # fmt: skip
_FORMS: Final = ("", ".json", ".csv")


def asked(world: World, site: Site) -> Iterator[tuple[str, str]]:
    """Yield the pages."""
    seen: set[str] = set()
    simulations = saved_simulation(world)
    for person in READERS:
        cookie = world.cookie(person)
        for target in _of(person, site, simulations):
            text = text_of(world.send("GET", target, headers=cookie))
            seen.update(_STATIC.findall(text))
            yield f"page/{person} {target}", text
    for target in ("/", "/me", "/now", "/jobs/7", "/analytics", "/enter", "/enter.js", "/me.json"):
        yield f"page/nobody {target}", text_of(world.send("GET", target))
    for target in ("/enter", "/sign-out", "/jobs/7/dispute"):
        yield f"page/nobody POST {target}", text_of(world.send("POST", target, b"link=x"))
    for target in sorted(seen):
        answer = world.send("GET", target)
        yield f"page/{target}", f"{answer.headers['content-type']} {hashlib.sha256(answer.body).hexdigest()}\n"


def _of(person: str, site: Site, simulations: tuple[str, ...]) -> Iterator[str]:
    yield from _TARGETS
    ids = [quote(printed, safe="+") for printed in kinds_of_jobs(site)]
    for printed in ids[:: 2 if person == OPERATOR else 7]:
        yield f"/jobs/{printed}"
    for printed in ids[::19]:
        yield from (f"/jobs/{printed}{form}" for form in (*_FORMS[1:], "?node=gpu1", "/curves.json"))
        yield f"/helpdesk?id={printed}"
    for view in VIEWS if person == OPERATOR else VIEWS[:1]:
        yield from (f"/analytics/{view}{form}?{_ALL}" for form in (*_FORMS, ".svg"))
        yield f"/analytics/{view}?{_WEEK}&compare=previous"
    for name in simulations:
        yield from (f"/simulations/{name}{form}" for form in (*_FORMS, ".svg", ".1.svg"))
