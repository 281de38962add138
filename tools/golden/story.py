"""What happened before anybody asks: runs and their hours, verdicts, a dispute, notices, rules, actions, an inlet."""

import json
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from standardwebhooks import Webhook

from gpuwaste.jobs.importers.accounting_importer import Importer
from tools.golden.site import DAY, HOUR, NOW, Site, fill
from tools.golden.world import ACTOR, ADVISOR, OPERATOR, STRANGER, USER, Answer, JobRecord, World

_SECRET: Final = "whsec_" + b64encode(b"0123456789abcdef0123456789abcdef").decode()
_INLET: Final = '[inlet]\n[webhook]\nsecret_file = "{key}"\n'
_OUTLET: Final = '[outlet]\nevents = ["job.*"]\n[webhook]\nurl = "http://127.0.0.1:9/x"\nnetworks = ["127.0.0.0/8"]\n'
_LADDER: Final = """
mode = "act"
where = "ledger.idle_s >= 600.0"
since = "ledger.idle_s"
approve = "person"
valid = "12h"
[[do]]
after = "10m"
action = "notify"
subject = "Job {job.id} is idle"
text = "Your job {job.id} has held {job.gpus} idle GPUs for {ledger.idle_s}."
[[do]]
after = "20m"
action = "cancel"
"""
_POLICY: Final = """
[policy]
name = "strict"
mode = "reject"
[targets.failure]
warn = 0.3
reject = 0.9
[sample]
pass_ratio = 0
[floor]
precision = 0
"""
_ACTIONS: Final = ("pass", "annotate", "warn", "reject")
_LATER: Final = (0, 300, 420)  # seconds at which the hub looks again: conditions hold, mails become due
_EVERY: Final = 5  # of so many runs one has a verdict
_TARGETS: Final = ("failure", "gpu_underused", "timeout")


def made() -> Site:
    """Return the site with verdicts' tokens at every fifth run of the last two weeks."""
    site = Site()
    fill(site)
    site.jobs[:] = [_judged(number, job) for number, job in enumerate(site.jobs)]
    return site


def _judged(number: int, job: JobRecord) -> JobRecord:
    recent = job.submit > NOW - 14 * DAY and job.cluster == "gw"
    return replace(job, verdict_id=f"{number:016d}") if recent and number % _EVERY == 0 else job


def lay_out(folder: Path) -> None:
    """Write the site's files: rules, policies, an inlet, an outlet."""
    own = Path(__file__).parents[2] / "etc/rules.d"
    for name in ("rules.d", "policies.d", "inlets.d", "outlets.d", "hub"):
        (folder / name).mkdir(mode=0o700)
    for path in sorted(own.glob("*.toml")):
        (folder / "rules.d" / path.name).write_text(path.read_text(encoding="utf-8"), encoding="utf-8")
    (folder / "rules.d/ladder.toml").write_text(_LADDER, encoding="utf-8")
    (folder / "policies.d/10-strict.toml").write_text(_POLICY, encoding="utf-8")
    key = folder / "inlets.d/key"
    key.touch(mode=0o600)
    key.write_text(_SECRET, encoding="utf-8")
    (folder / "inlets.d/storage.toml").write_text(_INLET.replace("{key}", str(key)), encoding="utf-8")
    (folder / "outlets.d/tickets.toml").write_text(_OUTLET, encoding="utf-8")


def tell(world: World, site: Site) -> Iterator[tuple[str, Answer]]:
    """Have it all happen; yield what is answered to those who tell it."""
    world.hub.get(Importer).step()
    ours = [hour for hour in site.hours if hour.run_key.cluster == "gw"]
    others = [hour for hour in site.hours if hour.run_key.cluster != "gw"]
    world.store_others([job for job in site.jobs if job.cluster != "gw"], others)
    yield from world.send_hours(ours)
    yield "verdicts", _send_verdicts(world, site)
    for seconds in _LATER:
        world.set(NOW + seconds)
        world.look()
    yield from _send_site_event(world)
    cookie = world.cookie(USER)
    own = next(job for job in site.jobs if job.user == USER and job.start and job.end and job.end > NOW - 9 * DAY)
    form = {**cookie, "Sec-Fetch-Site": "same-origin"}
    yield "dispute", world.send("POST", f"/jobs/{own.printed_id}/dispute", b"words=It+was+compiling.", form)
    yield "dispute of another's", world.send("POST", "/jobs/4711/dispute", b"words=No.", form)
    yield "wish", world.order(STRANGER, "/v1/notices/wish", mail=False)
    yield from _decide(world)
    world.look()


def _send_verdicts(world: World, site: Site) -> Answer:
    head = {"batch_id": "v1", "cluster": "gw", "node": "ctl", "boot_id": "b", "agent_version": "1", "protocol": 1}
    rows = [_verdict(number, job) for number, job in enumerate(job for job in site.jobs if job.verdict_id)]
    body = "".join(json.dumps(line) + "\n" for line in [head, *rows])
    return world.ask(ADVISOR, "POST", "/v1/verdicts", body.encode())


def _verdict(number: int, job: JobRecord) -> dict[str, Any]:
    action = _ACTIONS[number % 4]
    target = _TARGETS[number % 3]
    p = round(0.3 + number % 7 / 10, 2)
    return {
        "id": job.verdict_id, "cluster": "gw", "at_utc_us": job.submit * 1_000_000 + number, "op": "submit",
        "policy": ("site", "night")[number % 2], "mode": "warn" if number % 3 else "shadow",
        "action": action if number % 3 else "pass", "would_be": action, "held": "" if number % 3 else "shadow",
        "sampled": number % 8 == 0, "override": "I know" if number % 9 == 0 else "", "user": job.user,
        "account": job.account, "partition": job.partition, "qos": job.qos, "name": job.name,
        "is_array": job.array_job_id is not None, "het_offset": job.het_offset, "run_job_id": None,
        "gpus": job.gpus or 0, "time_limit_s": job.time_limit_s, "p": {target: p},
        "quantiles": {"walltime": {"0.5": 600.0, "0.9": 7200.0}}, "triggers": {target: p},
        "reasons": [f"{number} of your last {number + 1} jobs named {job.name} failed"],
        "lines": ["gpuwaste: this job is likely to fail"], "script": "", "model_hash": "cafe",
        "shadow": {"beef": {target: 0.5}}, "feature_hash": "f", "latency_us": 900 + number,
    }  # fmt: skip


def _send_site_event(world: World) -> Iterator[tuple[str, Answer]]:
    """Send what a storage system sends: one good event, and one that is set aside."""
    good = {"specversion": "1.0", "id": "e1", "source": "/storage/1", "type": "site.fs_full",
            "data": {"file_system": "/scratch", "used_ratio": 0.97}}  # fmt: skip
    for number, event in enumerate((good, {**good, "id": "e2", "data": {"file_system": 7}})):
        body = json.dumps(event)
        at = datetime.fromtimestamp(world.now, UTC)
        signature = Webhook(_SECRET).sign(f"m{number}", at, body)
        head = {"webhook-id": f"m{number}", "webhook-timestamp": str(world.now), "webhook-signature": signature}
        yield f"inlet {number}", world.send("POST", "/v1/inlets/storage", body.encode(), head)


def _decide(world: World) -> Iterator[tuple[str, Answer]]:
    """Approve one waiting action, refuse another, and have the actor take the first."""
    found = json.loads(world.ask(OPERATOR, "GET", "/v1/actions").body)["actions"]
    waiting = sorted(row["id"] for row in found if row["kind"] == "cancel" and row["status"] == "intended")
    for identity, decision in zip(waiting, ("approve", "refuse"), strict=False):
        yield decision, world.order(OPERATOR, f"/v1/actions/{identity}/{decision}")
    claim = world.order(ACTOR, "/v1/actions/claim", actor="a", kinds=["cancel"])
    yield "claim", claim
    lent = json.loads(claim.body).get("action")
    if lent:
        target = f"/v1/actions/{lent['id']}/step"
        yield (
            "sent",
            world.order(ACTOR, target, actor="a", status="sent", plan={"command": f"scancel {lent['subject']}"}),
        )
        yield "done", world.order(ACTOR, target, actor="a", status="done", answer="cancelled")


WINDOW: Final = (NOW - 30 * DAY, NOW)
WEEK: Final = (NOW - 7 * DAY, NOW)
HOURS: Final = ((NOW // HOUR - 80) * HOUR, (NOW // HOUR - 7) * HOUR)
