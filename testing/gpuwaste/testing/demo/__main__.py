"""`python -m gpuwaste.testing.demo`: runs the demo on a real cluster, or plays the recording where that cannot be."""

import argparse
import json
import logging
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from tabulate import tabulate

from gpuwaste.core.errors import GpuwasteError, UsageError
from gpuwaste.testing import cluster_host
from gpuwaste.testing.cluster import LoopbackCluster, Variant
from gpuwaste.testing.demo.checks import DemoCheck, ReportedSite, check_story
from gpuwaste.testing.demo.ending import plan_and_submit, replay
from gpuwaste.testing.demo.lake import check_lake, with_lake
from gpuwaste.testing.demo.pages import page_album, stay_up, take_pages
from gpuwaste.testing.demo.program import estimate_and_plan
from gpuwaste.testing.demo.recorded import Notes, played_story, save_run
from gpuwaste.testing.demo.story import Story, play, questions
from gpuwaste.testing.recording.format import SHIPPED
from gpuwaste.testing.recording.player import PlayedSite
from gpuwaste.testing.running_site import Site, SiteOptions
from gpuwaste.testing.simnvml import build_native
from gpuwaste.testing.submit_plugins import build_plugins

EXIT_RECORDING: Final = 5
"""All checks hold, of the recording: this host could not run a cluster."""
_USERS: Final = ("alice", "carol", "root")
"""Who may look at the pages of a demo that stays up: a user, a coordinator and an operator."""
OPTIONS = SiteOptions(
    interval_s=2.0, ship_every_s=6.0, sacct_every_s=3.0, hub={"finding_min_s": 15.0, "interactive_grace_s": 10.0},
    # One earlier job is enough here: a demo has no time for more.
    # The default deadline is for a controller; a demo may share two cores with all that it runs.
    plugin={"deadline_us": 1_000_000},
    policies={"demo.toml": '[policy]\nmode = "warn"\n[targets.gpus]\nwarn = 0.5\nbasis = 1\n'},
)  # fmt: skip


def main(argv: Sequence[str] | None = None) -> int:
    """Run the demo; 0 when every check holds, 5 when they hold of the recording because no cluster can run here."""
    parser = argparse.ArgumentParser(prog="python -m gpuwaste.testing.demo", description=__doc__)
    parser.add_argument("--seed", type=int, help="draw the order of the GPUs from this seed")
    parser.add_argument("--result", type=Path, help="write checks and reports to this JSON file")
    parser.add_argument("--record", type=Path, metavar="FILE", help="record the run into this file (.jsonl.xz)")
    parser.add_argument("--play", type=Path, metavar="FILE", nargs="?", const=SHIPPED, help="play a recorded run")
    parser.add_argument("--pages", type=Path, metavar="DIR", help="keep screenshots of the hub's pages in this folder")
    parser.add_argument("--keep", action="store_true", help="keep the cluster and the hub up until interrupted")
    parser.add_argument("--store", choices=("file", "lake"), default="file", help="lake: needs PostgreSQL")
    parser.add_argument("--hubs", type=int, choices=(1, 2), default=1, help="2: one stands by, and one is killed")
    parser.add_argument("--lacking", default="", metavar="WHY", help="why the packages of a cluster are not installed")
    arguments = parser.parse_args(argv)
    reason = cluster_host.missing()
    try:
        if arguments.play:
            print("demo: playing a recorded run, as asked")
            return _play(arguments.play, arguments)
        if reason and not arguments.record:
            return _fall_back(arguments.lacking or reason, arguments)
        if reason:
            raise UsageError(f"--record needs a real cluster: {reason}")
        check_lake(lake=arguments.store == "lake", hubs=arguments.hubs)
        return _run(arguments)
    except GpuwasteError as error:
        sys.stderr.write(f"demo: {error}\n")
        return error.exit_code


def _run(arguments: argparse.Namespace) -> int:
    # The recording is played with what the product needs alone, and a mail server is no part of that.
    from gpuwaste.testing.demo.ladder import go_up, own_directory, with_ladder  # noqa: PLC0415
    from gpuwaste.testing.mail_server import running_mail_server  # noqa: PLC0415

    record: Path | None = arguments.record
    drawn = random.SystemRandom().randrange(1_000_000) if arguments.seed is None else arguments.seed
    say = _progress(time.monotonic())
    native = build_native()
    directory = Path(tempfile.mkdtemp(prefix="gwdemo", dir="/tmp"))
    directory.chmod(0o755)
    options = replace(OPTIONS, tapes=directory / "tapes" if record else None, spare=arguments.hubs > 1)
    notes = Notes(say)
    try:
        notes.say(f"starting Slurm (munge, MariaDB, slurmdbd, slurmctld, slurmrestd, 3 nodes), seed {drawn}")
        plugins = build_plugins(out=directory / "plugins")
        variant = Variant(seed=drawn, job_submit="gpuwaste", plugin_dir=str(plugins))
        with (
            LoopbackCluster(directory / "c", variant, remove=True) as cluster,
            running_mail_server() as mail,
            with_lake(options, directory, lake=arguments.store == "lake") as stored,
        ):
            rules = directory / "rules.d"
            options = with_ladder(stored, rules, mail, own_directory(directory / "actor"))
            notes.say("starting the hub, three agents and the advisor beside slurmctld")
            with Site(cluster, native, options) as site:
                site.start_advisor()
                with page_album(site, arguments.pages, say) as album:
                    story = play(site, notes.say, lambda: album.take("now", "root", "/now"))
                    reports = _reports(site, story)
                    checks = check_story(site, story)
                    take_pages(album, story, int(time.time()))
                    for ending in (
                        replay(site, story),
                        plan_and_submit(site, notes.say),
                        estimate_and_plan(site, notes.say),
                        go_up(site, rules, mail, notes.say),
                    ):
                        reports |= ending.shown
                        checks += ending.checks
                if record:
                    say(f"recorded into {record}: {save_run(record, site, story, notes)} bytes")
                code = _finish(reports, checks, say, result=arguments.result, facts={"seed": drawn})
                if arguments.keep:
                    stay_up(site, _USERS, say)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    return code


def _fall_back(reason: str, arguments: argparse.Namespace) -> int:
    """Play the recording, and say first and last that it is one and why."""
    print(f"demo: NO REAL CLUSTER: {reason}\ndemo: playing a recorded run instead", flush=True)
    code = _play(SHIPPED, arguments)
    print(f"demo: this was a RECORDING, not a run on this host: {reason} (exit code {code or EXIT_RECORDING})")
    return code or EXIT_RECORDING


def _play(recording: Path, arguments: argparse.Namespace) -> int:
    logging.basicConfig(level=logging.ERROR, format="%(levelname)s %(message)s")  # warnings tell of the recorded run
    say = _progress(time.monotonic())
    with tempfile.TemporaryDirectory(prefix="gwplay") as directory, PlayedSite(Path(directory), recording) as site:
        story = played_story(site, lambda at_s, text: print(f"[recorded, {at_s:5.0f} s] {text}", flush=True))
        say("the recorded run is in the hub")
        reports = _reports(site, story, site.window)
        checks = check_story(site, story)
        with page_album(site, arguments.pages, say) as album:
            album.take("now", "root", "/now")
            take_pages(album, story, site.ended)
        facts = {"recorded": str(recording)}
        code = _finish(reports, checks, say, result=arguments.result, facts=facts, label=" [recorded]")
        if arguments.keep:
            stay_up(site, _USERS, say)
    return code


def _finish(
    reports: dict[str, str],
    checks: Sequence[DemoCheck],
    say: Callable[[str], None],
    *,
    result: Path | None,
    facts: dict[str, Any],
    label: str = "",
) -> int:
    _print(reports, checks, label)
    say(f"done: {sum(c.ok for c in checks)} of {len(checks)} checks hold{label}")
    if result:
        document = {**facts, "reports": reports, "checks": [[c.what, c.truth, c.said, c.ok] for c in checks]}
        result.write_text(json.dumps(document, indent=1))
    return 0 if all(check.ok for check in checks) else 1


def _progress(began: float) -> Callable[[str], None]:
    def say(text: str) -> None:
        print(f"[{time.monotonic() - began:5.0f} s] {text}", flush=True)

    return say


def _reports(site: ReportedSite, story: Story, window: Sequence[str] = ()) -> dict[str, str]:
    """Return what each person sees, by the command that he runs."""
    shown = {"gpuwaste now --hours 1   (while the first jobs ran)": story.top}
    for user, command in questions(story):
        words = [*command, *(window if command[0] == "report" else ())]
        done = site.gpuwaste(*words, user=user, check=False)
        shown[f"{user}$ gpuwaste {' '.join(words)}"] = done.stdout + done.stderr
    web = site.gpuwaste("web", user="alice", check=False)
    shown["alice$ gpuwaste web"] = web.stderr + web.stdout
    if story.advice:
        for user, said in ((story.advice.owner, story.advice.told), (story.advice.other, story.advice.control)):
            shown[f"{user}$ {story.advice.command}"] = f"{said or '(sbatch says nothing of it)'}\n"
    return shown


def _print(reports: dict[str, str], checks: Sequence[DemoCheck], label: str) -> None:
    for command, text in reports.items():
        print(f"\n{command}\n{text}")
    rows = [("ok" if c.ok else "FAILED", c.what, c.truth, c.said) for c in checks]
    print(tabulate(rows, headers=["", f"held against the load programs and sacct{label}", "truth", "gpuwaste says"]))


if __name__ == "__main__":
    sys.exit(main())
