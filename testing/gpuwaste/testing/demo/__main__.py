"""`python -m gpuwaste.testing.demo`: runs the demo on a real cluster, or plays the recording where that cannot be."""

import argparse
import logging
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final, Protocol

from gpuwaste.core.errors import GpuwasteError, UsageError
from gpuwaste.testing import chromium, cluster_host
from gpuwaste.testing.cluster import LoopbackCluster, Variant
from gpuwaste.testing.demo.balance import balance_of
from gpuwaste.testing.demo.checks import ReportedSite, check_story
from gpuwaste.testing.demo.lake import check_lake
from gpuwaste.testing.demo.output import Say, clock, finish, reports
from gpuwaste.testing.demo.pages import SignInSite, page_album, stay_up, take_pages
from gpuwaste.testing.demo.recorded import Notes, played_story, save_run
from gpuwaste.testing.demo.saved_page import save_page
from gpuwaste.testing.demo.story import Listener, Story, play
from gpuwaste.testing.demo.walkthrough import page_path, section_lines, sections
from gpuwaste.testing.recording.format import SHIPPED, SHIPPED_ALL
from gpuwaste.testing.recording.player import PlayedSite
from gpuwaste.testing.running_site import Site, SiteOptions
from gpuwaste.testing.simnvml import build_native
from gpuwaste.testing.submit_plugins import build_plugins

EXIT_RECORDING: Final = 5
"""All checks hold, of the recording: this host could not run a cluster."""
_USERS: Final = ("alice", "carol", "root")
"""Who may look at the pages of a demo that stays up: a user, a coordinator and an operator."""
_OWN: Final = Path()
"""The value of --record and --play without a file: the recording of the repository."""
OPTIONS = SiteOptions(
    interval_s=2.0, ship_every_s=6.0, sacct_every_s=3.0, hub={"finding_min_s": 15.0, "interactive_grace_s": 10.0},
    # One earlier job is enough here: a demo has no time for more.
    # The default deadline is for a controller; a demo may share two cores with all that it runs.
    plugin={"deadline_us": 1_000_000},
    policies={"demo.toml": '[policy]\nmode = "warn"\n[targets.gpus]\nwarn = 0.5\nbasis = 1\n'},
)  # fmt: skip


class _AnySite(ReportedSite, SignInSite, Protocol):
    """A real site or a played one."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the demo; 0 when every check holds, 5 when they hold of the recording because no cluster can run here."""
    arguments = _parser().parse_args(argv)
    own = SHIPPED_ALL if arguments.all else SHIPPED
    record, recording = (own if path == _OWN else path for path in (arguments.record, arguments.play))
    say = _progress(time.monotonic() - arguments.elapsed)
    reason = cluster_host.missing()
    try:
        if recording:
            print("demo: playing a recorded run, as asked")
            return _play(recording, arguments, say)
        if reason and not record:
            return _fall_back(arguments.lacking or reason, own, arguments, say)
        if reason:
            raise UsageError(f"--record needs a real cluster: {reason}")
        if not arguments.all and (arguments.store == "lake" or arguments.hubs > 1):
            raise UsageError("STORE=lake and HUBS=2 need make demo-all")
        check_lake(lake=arguments.store == "lake", hubs=arguments.hubs)
        return _run(arguments, record, say)
    except GpuwasteError as error:
        sys.stderr.write(f"demo: {error}\n")
        return error.exit_code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m gpuwaste.testing.demo", description=__doc__)
    parser.add_argument("--all", action="store_true", help="run all jobs, then the simulator, plans, estimates, rules")
    parser.add_argument("--seed", type=int, help="random seed for the order of the GPUs (default: random)")
    parser.add_argument("--result", type=Path, help="write checks and reports to this JSON file")
    parser.add_argument(
        "--record", type=Path, metavar="FILE", nargs="?", const=_OWN,
        help="record the run to this file (.jsonl.xz); without FILE, replace the recording in the repository",
    )  # fmt: skip
    parser.add_argument("--play", type=Path, metavar="FILE", nargs="?", const=_OWN, help="play a recorded run")
    parser.add_argument("--pages", type=Path, metavar="DIR", help="keep pages and screenshots in this folder")
    parser.add_argument("--keep", action="store_true", help="keep the cluster and the hub up until interrupted")
    parser.add_argument("--store", choices=("file", "lake"), default="file", help="lake: needs --all and PostgreSQL")
    parser.add_argument("--hubs", type=int, choices=(1, 2), default=1, help="2: one on standby, and one is killed")
    parser.add_argument("--lacking", default="", metavar="WHY", help="why the packages of a cluster are not installed")
    parser.add_argument("--elapsed", type=float, default=0.0, metavar="SECONDS", help="time since make demo started")
    return parser


def _run(arguments: argparse.Namespace, record: Path | None, say: Say) -> int:
    drawn = random.SystemRandom().randrange(1_000_000) if arguments.seed is None else arguments.seed
    notes = Notes(say)
    with _own_directory() as directory, ExitStack() as stack:
        options = replace(OPTIONS, tapes=directory / "tapes" if record else None, spare=arguments.hubs > 1)
        notes.say(f"starting Slurm: munge, MariaDB, slurmdbd, slurmctld, slurmrestd, 3 nodes (random seed {drawn})")
        native, plugins = _build(directory)
        variant = Variant(seed=drawn, job_submit="gpuwaste", plugin_dir=str(plugins))
        cluster = stack.enter_context(LoopbackCluster(directory / "c", variant, remove=True))
        whole = None
        if arguments.all:
            # Needs packages that the short demo does not install.
            from gpuwaste.testing.demo.whole import whole_demo  # noqa: PLC0415

            whole = stack.enter_context(whole_demo(options, directory, lake=arguments.store == "lake"))
            options = whole.options
        notes.say("starting the hub, an agent on each node, and the advisor next to slurmctld")
        site = stack.enter_context(Site(cluster, native, options))
        site.start_advisor()
        album = stack.enter_context(page_album(site, _pictures(arguments), say))
        listener = Listener(
            notes.say,
            notes.keep,
            lambda: album.take("now", "root", "/now"),
            lambda story: _walk_through(site, story, arguments.pages, say),
        )
        story = play(site, listener, all_jobs=arguments.all)
        shown = reports(site, story, all_users=arguments.all)
        checks = check_story(site, story)
        if record:
            say(f"recorded in {record}: {save_run(record, site, OPTIONS, story, notes)} bytes")
        if whole is None:
            take_pages(album, story, None)
        else:
            for ending in whole.endings(site, story, album, notes.say):
                shown |= ending.shown
                checks += ending.checks
        balanced = balance_of(site, story, notes.say)
        shown |= balanced.shown
        checks += balanced.checks
        code = finish(shown, checks, say, result=arguments.result, facts={"seed": drawn})
        _end(site, arguments, say)
    return code


def _build(directory: Path) -> tuple[Path, Path]:
    """Build the simulated GPUs and the submit plugin at the same time; returns their folders."""
    with ThreadPoolExecutor(1) as pool:
        native = pool.submit(build_native)
        plugins = build_plugins(out=directory / "plugins")
        return native.result(), plugins


@contextmanager
def _own_directory() -> Iterator[Path]:
    directory = Path(tempfile.mkdtemp(prefix="gwdemo", dir="/tmp"))
    directory.chmod(0o755)
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _pictures(arguments: argparse.Namespace) -> Path | None:
    """Return the folder of screenshots; the short demo takes them only where a browser is installed already."""
    pages: Path | None = arguments.pages
    return pages if arguments.all or chromium.missing() is None else None


def _walk_through(site: _AnySite, story: Story, folder: Path | None, say: Say) -> None:
    """Print alice's waste, her page and what sbatch prints for her."""
    page = None
    if folder is not None:
        try:
            page = save_page(site, "alice", "/me", page_path(folder))
        except GpuwasteError as error:
            say(f"no copy of alice's page: {error}")
    for number, section in enumerate(sections(site, story, page), start=1):
        print("\n" + "\n".join(section_lines(number, section)))
    print(flush=True)


def _end(site: SignInSite, arguments: argparse.Namespace, say: Say) -> None:
    """Name what else there is; with --keep, stay up until interrupted."""
    if arguments.keep:
        stay_up(site, _USERS, say)
        return
    if not arguments.all:
        say("make demo-all (10 minutes) shows the rest: another schedule, a plan, estimates, rules, several hubs")
        say("DEMO_KEEP=1 make demo leaves the cluster running, so that you can open the pages and run commands")


def _fall_back(reason: str, own: Path, arguments: argparse.Namespace, say: Say) -> int:
    """Play the recording; the first and the last line say that it is one and why."""
    print(f"demo: NO REAL CLUSTER: {reason}\ndemo: playing a recorded run instead", flush=True)
    code = _play(own, arguments, say)
    print(f"demo: this was a RECORDING, not a run on this host: {reason} (exit code {code or EXIT_RECORDING})")
    return code or EXIT_RECORDING


def _play(recording: Path, arguments: argparse.Namespace, say: Say) -> int:
    logging.basicConfig(level=logging.ERROR, format="%(levelname)s %(message)s")  # warnings are of the recorded run
    with tempfile.TemporaryDirectory(prefix="gwplay") as directory, PlayedSite(Path(directory), recording) as site:
        story = played_story(site, lambda at_s, text: print(f"[recorded {clock(at_s)}] {text}", flush=True))
        say("the recorded run is in the hub")
        _walk_through(site, story, arguments.pages, say)
        shown = reports(site, story, all_users=arguments.all)
        checks = check_story(site, story)
        with page_album(site, _pictures(arguments), say) as album:
            if arguments.all:
                album.take("now", "root", "/now")
            take_pages(album, story, site.ended if arguments.all else None)
        facts = {"recorded": str(recording)}
        code = finish(shown, checks, say, result=arguments.result, facts=facts, label=" [recorded]")
        _end(site, arguments, say)
    return code


def _progress(began: float) -> Say:
    def say(text: str) -> None:
        print(f"[{clock(time.monotonic() - began)}] {text}", flush=True)

    return say


if __name__ == "__main__":
    sys.exit(main())
