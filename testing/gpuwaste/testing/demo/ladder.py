"""A ladder of rules on a real cluster: an idle job is recorded, its user gets mail, it is cancelled; other jobs go on.

Each rule sees the same jobs: one of a mode each, so that the three modes stand side by side.
"""

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from gpuwaste.testing.cluster_process import wait_until
from gpuwaste.testing.daemon_config import free_port
from gpuwaste.testing.demo.checks import DemoCheck
from gpuwaste.testing.demo.ending import Ending
from gpuwaste.testing.mail_server import MailServer, ReceivedMail
from gpuwaste.testing.running_site import Site, SiteOptions

ACTOR: Final = "dave"  # has no account: he submits nothing, and Slurm makes him an Operator for the ladder
EXEMPT: Final = "proj2"
_IDLE: Final = "--phase 5:60 --phase 600:0"
_BUSY: Final = "--phase 600:90"
_WAIT_S: Final = 240.0
_RULE: Final = """\
mode = "{mode}"
where = "ledger.idle_s >= 20.0"
since = "ledger.idle_s"
approve = "none"
notify = "none"

[[do]]
after = "{after}"
{do}

[exempt]
accounts = ["{exempt}"]
"""
_SUBJECT: Final = "its GPUs are idle"
_MAIL: Final = f'action = "notify"\nsubject = "Job {{job.id}}: {_SUBJECT}"\ntext = "Idle for {{ledger.idle_s}}."'
_RUNGS: Final = (
    ("1-observe", "observe", "20s", 'action = "cancel"'),
    ("2-notify", "notify", "20s", _MAIL),
    ("3-act", "act", "90s", 'action = "cancel"'),
)


@dataclass(frozen=True, slots=True)
class Climbed:
    """What came of three jobs: states in Slurm by name, firings, actions and mails of all."""

    jobs: Mapping[str, int]
    states: Mapping[str, str]
    fired: tuple[Mapping[str, Any], ...]
    actions: tuple[Mapping[str, Any], ...]
    mails: tuple[ReceivedMail, ...]


def with_ladder(options: SiteOptions, rules: Path, mail: MailServer, directory: Path) -> SiteOptions:
    """Return the options of a site with what a ladder needs; `directory` is the actor's own."""
    hub = {"rules_dir": str(rules), "actor_user": ACTOR}
    notify = {
        "smtp_host": "127.0.0.1",
        "smtp_port": mail.port,
        "sender": "hpc@example.org",
        "address": "{user}@example.org",
        "dry_run": False,
    }
    actor = {
        "actions": ["cancel"],
        "state_dir": str(directory),
        "stop_file": str(directory / "stop"),
        "listen": f"127.0.0.1:{free_port()}",
    }
    return replace(options, hub={**options.hub, **hub}, notify={**options.notify, **notify}, actor=actor)


def own_directory(directory: Path) -> Path:
    """Make the directory of the actor's user."""
    directory.mkdir(mode=0o755)
    shutil.chown(directory, ACTOR, ACTOR)
    return directory


def climb(site: Site, rules: Path, mail: MailServer, say: Callable[[str], None]) -> Climbed:
    """Run an idle, a busy and an exempt job; return when the idle one is cancelled. The site has `with_ladder`."""
    cluster = site.cluster
    cluster.run(["sacctmgr", "-i", "add", "user", ACTOR, "account=root", "adminlevel=Operator"], check=False)
    site.start_actor(ACTOR)
    jobs = {
        "idle": site.submit("alice", _IDLE, gres="gpu:a100:1", job_name="idle", time=15),
        "busy": site.submit("bob", _BUSY, gres="gpu:a100:1", job_name="busy", time=15),
        "exempt": site.submit("carol", _IDLE, gres="gpu:a100:1", job_name="exempt", time=15),
    }
    rules.mkdir(mode=0o755, exist_ok=True)
    for name, mode, after, do in _RUNGS:
        text = _RULE.format(mode=mode, after=after, do=do, exempt=EXEMPT)
        (rules / f"{name}.toml").write_text(text, encoding="utf-8")
    say("rules: after 20 idle seconds a job is recorded and its user gets mail; after 90 it is cancelled")
    wait_until(lambda: bool(_fired(site)), _WAIT_S, "a rule to fire", lambda: _why(site, jobs["idle"]), poll_s=1.0)
    say(f"rule 1-observe: {_fired(site)[0]['subject']} would be cancelled")
    wait_until(lambda: bool(_told(mail)), _WAIT_S, "the mail", lambda: _why(site, jobs["idle"]), poll_s=1.0)
    say(f"mail to {_told(mail)[0].to[0]}: {_told(mail)[0].message['Subject']}")
    cluster.wait_job(jobs["idle"], "CANCELLED", _WAIT_S)
    wait_until(lambda: _ended(site), 60, "the action's end", lambda: json.dumps(_actions(site)), poll_s=0.5)
    say(f"job {jobs['idle']} is cancelled")
    states = {name: cluster.run(["squeue", "-h", "-t", "all", "-j", str(job), "-o", "%T"]).stdout.strip()
              for name, job in jobs.items()}  # fmt: skip
    cluster.run(["scancel", *map(str, jobs.values())], check=False)
    return Climbed(jobs, states, tuple(_fired(site)), tuple(_actions(site)), tuple(_told(mail)))


def go_up(site: Site, rules: Path, mail: MailServer, say: Callable[[str], None]) -> Ending:
    """Climb, and hold what was fired, mailed and done against the rules and against Slurm."""
    found = climb(site, rules, mail, say)
    steps = {(one["rule"], one["action"], one["done"], one["user"]) for one in found.fired}
    wanted = {("1-observe", "cancel", False, "alice"), ("2-notify", "notify", True, "alice"),
              ("3-act", "cancel", True, "alice")}  # fmt: skip
    done = {(one["kind"], one["status"], str(one["jobid"])) for one in found.actions}
    idle, others = found.states["idle"], (found.states["busy"], found.states["exempt"])
    once = len(found.fired) == len(wanted) and [one.to for one in found.mails] == [("alice@example.org",)]
    job = str(found.jobs["idle"])
    confirmed = done == {("cancel", "confirmed", job), ("notify", "confirmed", job)}
    fired = ", ".join(f"{one['rule']} {one['action']}{'' if one['done'] else ' (not done)'}" for one in found.fired)
    listed = site.gpuwaste("rules", "actions", user="root", check=False).stdout
    return Ending(
        {"root$ gpuwaste rules actions": listed},
        (
            DemoCheck("rules for an idle job, once each", idle, fired, steps == wanted and once),
            DemoCheck(
                "actions on the idle job",
                f"CANCELLED of job {job} by Slurm",
                ", ".join(f"{kind} {status}" for kind, status, _ in sorted(done)),
                idle.startswith("CANCELLED") and confirmed,
            ),
            DemoCheck(
                "a busy job and an exempt job", ", ".join(others), "no rule fired", set(others) == {"RUNNING"}
            ),
        ),
    )  # fmt: skip


def _told(mail: MailServer) -> list[ReceivedMail]:
    return [one for one in mail.received if _SUBJECT in str(one.message["Subject"])]


def _fired(site: Site) -> list[dict[str, Any]]:
    done = site.gpuwaste("events", "list", "--kinds", "rule.fired", user="root", check=False)
    return [json.loads(line)["data"] for line in done.stdout.splitlines()]


def _actions(site: Site) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = site.json("rules", "actions", user="root")["actions"]
    return found


def _ended(site: Site) -> bool:
    return any(one["kind"] == "cancel" and one["status"] == "confirmed" for one in _actions(site))


def _why(site: Site, job: int) -> str:
    """Return what a failed wait shows: each part of the condition with its facts."""
    return site.gpuwaste("rules", "explain", "1-observe", "-j", str(job), user="root", check=False).stdout
