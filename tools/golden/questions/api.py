"""The API: every path with the parameters that matter, as each kind of reader, refusals included."""

import hashlib
import io
import json
import tarfile
import zipfile
from collections.abc import Iterator, Sequence
from typing import Final
from urllib.parse import quote

from tools.golden.masks import NOT_KEPT, masked_metrics
from tools.golden.site import DAY, HOUR, NOW, Site
from tools.golden.story import HOURS, WEEK, WINDOW
from tools.golden.world import ADVISOR, COORDINATOR, HOSTS, NOBODY, OPERATOR, STRANGER, USER, Answer, World

READERS: Final = (OPERATOR, USER, COORDINATOR, STRANGER)
_EVERYBODY: Final = (*READERS, NOBODY, ADVISOR, HOSTS[0])
_OKAY: Final = 200
_STEPS: Final = {OPERATOR: 1, USER: 3, COORDINATOR: 6, STRANGER: 12}
"""Every how many of the kinds of jobs a reader looks at."""
_ALL: Final = f"start={NOW - 71 * DAY}&end={NOW + DAY}"
_MONTH: Final = f"start={WINDOW[0]}&end={WINDOW[1]}"
_WEEK: Final = f"start={WEEK[0]}&end={WEEK[1]}"
_PAST: Final = f"start={NOW - 41 * DAY - 777}&end={NOW - 9 * DAY + 432}"
_HOURS: Final = f"start={HOURS[0]}&end={HOURS[1]}"
_OTHER: Final = f"{_WEEK}&other_start={NOW - 14 * DAY}&other_end={NOW - 7 * DAY}"
_REPORTS: Final = (
    *(f"user=alice&{w}" for w in (_ALL, _MONTH, _WEEK, _PAST, _HOURS)),
    *(f"account=physics&{w}" for w in (_ALL, _WEEK, _PAST)),
    *(f"cluster={c}&{w}" for c in ("gw", "gx", "gw,gx", "all") for w in (_MONTH, _HOURS)),
    f"{_ALL}&limit=12",
    f"{_ALL}&limit=0",
    f"user=bob&cluster=gx&{_ALL}",
    f"user=erin&{_ALL}",
    f"user=nobody&{_ALL}",
    f"user=alice&account=physics&{_WEEK}",
    "",
    "user=alice",
    f"start={NOW}&end={NOW - DAY}",
    "start=x",
    "limit=-1",
    f"user={'x' * 300}",
)
_LISTED: Final = (
    "top", "top?limit=3", f"top?since={NOW - 3 * DAY}", "top?since=x", "now", "now?limit=0", "now?limit=2",
    "now?limit=-1", "health", "verdicts", "verdicts?limit=3", f"verdicts?{_MONTH}", "verdicts?user=alice",
    "verdicts?user=bob", "verdicts?policy=night", "verdicts?limit=0", "verdicts/score",
    f"verdicts/score?since={NOW - DAY}",
    "events?limit=10", "events?limit=5000", "events?after=7&limit=3", "events?kinds=job.*&limit=20",
    "events?kinds=rule.fired,action.*", "events?kinds=site.*", "events?kinds=no.such", "events?limit=0", "events/kinds",
    "outlets", "inlets", "actions", "actions?status=intended", "actions?rule=ladder&limit=2", "actions?user=alice",
    f"actions?{_WEEK}", "actions?limit=0", "actions/00000000", "actions/x", "rules", "notices", "notices?user=alice",
    "notices?user=bob", f"notices?{_WEEK}", "notices/preview", "notices/preview?user=alice",
    "notices/preview?user=mallory", f"notices/replay?{_MONTH}", "notices/replay", "history?limit=20",
    "history?after=30&limit=10", "history?limit=0", "map?node=gpu1", "map?node=gpu3", "map?node=nowhere", "map",
    "plan?job=9001", "plan?job=4711", "plan?job=x", "plan", "plan/waits", "programs/runs?program=abcd", "programs/runs",
    "models/trial", "predict?job=9001", "predict?job=4711", "predict", "backup", "no-such-path",
)  # fmt: skip
_OF_A_JOB: Final = (
    "",
    "?owner=alice",
    "?owner=bob",
    "?cluster=gw",
    "?cluster=gx",
    f"?ended_since={NOW - DAY}",
    "?start=x",
)
_REQUESTS: Final = (
    {"name": "train1", "partition": "gpu", "gpus": 1, "time_limit_s": 4 * 86400, "cpus": 8},
    {"name": "train2", "partition": "gpu", "gpus": 4, "gpu_type": "a100", "time_limit_s": 3600, "nodes": 2},
    {"name": "new", "user": "bob"},
)
_RULE: Final = 'mode = "observe"\nwhere = "ledger.idle_s >= 600.0"\n[[do]]\nafter = "0s"\naction = "cancel"\n'


def asked(world: World, site: Site) -> Iterator[tuple[str, str]]:
    """Yield what the API answers."""
    for person in _EVERYBODY:
        for path in _paths(site, person):
            yield f"api/{person or 'nobody'} GET /v1/{path}", text_of(world.ask(person, "GET", f"/v1/{path}"))
        yield from _orders(world, person, open_job(site))
    for person in (OPERATOR, ADVISOR):
        answer = world.ask(person, "GET", "/v1/history/snapshot")
        yield f"api/{person} GET /v1/history/snapshot", _members(answer)
    for person in READERS[:3]:  # a stranger's has nothing but a beat after a while
        stream = world.first_bytes(person, "/v1/events/stream?after=0", b"\n:\n\n")
        yield f"api/{person} GET /v1/events/stream", stream.decode()
    yield "api/openapi.json", text_of(world.send("GET", "/openapi.json"))
    for method in ("POST", "PUT", "DELETE", "HEAD", "OPTIONS"):
        yield f"api/{method} /v1/report", text_of(world.ask(OPERATOR, method, "/v1/report"))
    yield "api/a wrong token", text_of(world.send("GET", "/v1/report", headers={"Authorization": f"Bearer {'x' * 20}"}))


def metrics(world: World) -> Iterator[tuple[str, str]]:
    """Yield the metrics."""
    answer = world.send("GET", "/metrics")
    yield "api/metrics", _text(answer, masked_metrics(answer.body.decode()))


def text_of(answer: Answer) -> str:
    """Return an answer as one text: its status, its headers, its body."""
    return _text(answer, answer.body.decode("utf-8", "surrogateescape"))


def kinds_of_jobs(site: Site) -> list[str]:
    """Return printed ids: tasks, components, whole arrays and het jobs, runs again, others."""
    ids = {job.printed_id for job in site.jobs if not job.printed_id.isdigit() or job.job_id % 9 == 0}
    ids |= {str(number) for job in site.jobs if (number := job.array_job_id or job.het_job_id)}
    again = {job.printed_id for job in site.jobs if job.restarts or job.state == "REQUEUED"}
    odd = {job.printed_id for job in site.jobs if job.gpus in {0, None} or job.verdict_id or job.end is None}
    return sorted(ids | again | odd)


def open_job(site: Site) -> str:
    """Return the printed id of a run that goes on."""
    return next(job.printed_id for job in site.jobs if job.start and job.end is None and job.cluster == "gw")


def _paths(site: Site, person: str) -> Iterator[str]:
    for query in _REPORTS if person in READERS else _REPORTS[:2]:
        yield f"report?{query}"
    yield from _LISTED
    ids: Sequence[str] = kinds_of_jobs(site)
    for printed in ids[:: _STEPS.get(person, 25)]:
        yield f"jobs/{quote(printed, safe='+')}"
    for printed in ids[::20]:
        yield from (f"jobs/{quote(printed, safe='+')}{query}" for query in _OF_A_JOB[1:])
        yield f"jobs/{quote(printed, safe='+')}/curves"
    yield from ("jobs/4711", "jobs/x", "jobs/4711/curves", f"jobs/{ids[0]}/curves?node=gpu1")
    yield "views"
    for view in VIEWS:
        if person in {OPERATOR, USER}:
            yield from (f"views/{view}", f"views/{view}?{_ALL}&offset={2 * HOUR}", f"views/{view}?{_WEEK}&clusters=gx")
        yield f"views/{view}/compare?{_OTHER}"
    yield from ("views/nothing", "views/waste?start=x", "views/waste/compare", "views/waste?clusters=none")


VIEWS: Final = (
    "energy", "jobs", "kinds", "limits", "node_failures", "predictions", "priority", "queue", "sizes",
    "states", "waits", "waste",
)  # fmt: skip


def _orders(world: World, person: str, job: str) -> Iterator[tuple[str, str]]:
    """Yield what questions with a body are answered; none of them changes what others read."""
    sent = {
        "predict": {"requests": list(_REQUESTS[:2])},
        "predict?of=bob": {"requests": [_REQUESTS[2]]},
        "predict?bad": {"requests": [{"gpus": "x"}]},
        "plan": {"requests": list(_REQUESTS[:2])},
        "plan?of=bob": {"requests": [_REQUESTS[2]]},
        "rules/look": {"name": "idle", "text": _RULE, "job": job},
        "rules/look?node": {"name": "idle", "text": _RULE, "job": "gpu1"},
        "rules/look?waiting": {"name": "idle", "text": _RULE, "job": "9001"},
        "rules/look?bad": {"name": "idle", "text": "x", "job": job},
        "rules/replay": {"name": "idle", "text": _RULE, "start": WEEK[0], "end": WEEK[1]},
        "notices/run": {"dry_run": True},
        "actions/00000000/approve": {},
        "actions/claim": {"actor": "b", "kinds": []},
        "hours": {},
        "verdicts": {},
        "plan/submitted": {},
        "inlets/storage": {},
        "inlets/nothing": {},
    }
    for target, body in sent.items():
        answer = world.ask(person, "POST", f"/v1/{target}", json.dumps(body).encode())
        yield f"api/{person or 'nobody'} POST /v1/{target}", text_of(answer)


def _text(answer: Answer, body: str) -> str:
    heads = "".join(f"{name}: {value}\n" for name, value in sorted(answer.headers.items()) if name not in NOT_KEPT)
    return f"{answer.status}\n{heads}\n{body}"


def _members(answer: Answer) -> str:
    """Return the members of a tar with the hash of each."""
    if answer.status != _OKAY:
        return text_of(answer)
    lines = []
    with tarfile.open(fileobj=io.BytesIO(answer.body)) as tar:
        for member in tar:
            content = tar.extractfile(member)
            assert content is not None  # noqa: S101 a tool of tests
            lines += _hashed(member.name, content.read())
    return _text(answer, "".join(lines))


def _hashed(name: str, content: bytes) -> list[str]:
    """Return a line with the hash; of an .npz one for each array: how it is deflated depends on the zlib."""
    if not name.endswith(".npz"):
        return [f"{name} {hashlib.sha256(content).hexdigest()}\n"]
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        arrays = [(inner, archive.read(inner)) for inner in archive.namelist()]
    return [f"{name} {inner} {hashlib.sha256(array).hexdigest()}\n" for inner, array in arrays]
