"""For bench/submit.py: exchanges with the advisor timed by the plugins' own client, and what a hung advisor costs."""

import json
import pwd
import signal
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from bench.submit_site import ROOT, SCRIPT, USER, SubmitSite
from gpuwaste.testing.cluster_process import ClusterError, wait_until
from gpuwaste.testing.daemon_config import to_toml
from gpuwaste.testing.running_site import Site

EXCHANGES: Final = 20_000
_EVERY_US: Final = 500
_UNCUT_US: Final = 1_000_000
_BLOCK: Final = 300
_PAIRS: Final = 3


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value below which `share` of them lie."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def bare_us(site: Site, client: Path) -> list[float]:
    """Return the same of an advisor that does nothing but answer: what the host and two processes take."""
    path = site.directory / "bare.sock"
    with subprocess.Popen([sys.executable, "-m", "bench.submit_bare", str(path)], cwd=ROOT) as bare:
        try:
            wait_until(path.with_suffix(".ready").exists, 30, "the bare advisor")
            return exchange_us(site, client, path)
        finally:
            bare.terminate()


def exchange_us(site: Site, client: Path, socket: Path | None = None) -> list[float]:
    """Return the microseconds of many exchanges, a deadline of a second cutting none of them short."""
    out = ROOT / "build" / "native"
    command = ["make", "--no-print-directory", "-C", str(ROOT / "native"), "exchange", f"OUT={out}"]
    subprocess.run([*command, f"CLIENT={client}", f"PYTHON={sys.executable}"], check=True)
    config = site.directory / "exchange.toml"
    sections = tomllib.loads(site.config_path("hub").read_text())
    sections["plugin"]["deadline_us"] = _UNCUT_US
    if socket is not None:
        sections["advisor"]["socket"] = str(socket)
    config.write_text(to_toml(sections))
    uid = str(pwd.getpwnam(USER).pw_uid)
    argv = [str(out / "gpuwaste-exchange"), str(config), "22.05.8", uid, str(EXCHANGES), str(_EVERY_US)]
    done = subprocess.run(argv, input=SCRIPT, capture_output=True, text=True, timeout=300, check=True)
    *times, counted = done.stdout.splitlines()
    answered = int(counted.split()[0])
    if answered != EXCHANGES:
        raise ClusterError(f"{answered} of {EXCHANGES} exchanges were answered: {counted} {done.stderr}")
    return [float(line) for line in times]


def advisor_alone() -> dict[str, float]:
    """Return the figures of bench/advisor.py: an advisor on one core with the history of 100,000 users."""
    done = subprocess.run(
        [sys.executable, "-m", "bench.advisor"], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
    )
    if not done.stdout:
        raise ClusterError(f"bench/advisor.py ended with {done.returncode}: {done.stderr.strip()[-1000:]}")
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures


def hung_loss(submit: SubmitSite, site: Site) -> list[float]:
    """Return the percents of submissions per second that a hung advisor costs, of several pairs of blocks."""
    advisor = site.advisor
    if advisor is None:
        raise ClusterError("no advisor to hang")
    losses = []
    advisor.signal(signal.SIGSTOP)
    try:
        submit.load(20)  # the misses that open the breaker
        for pair in range(_PAIRS):
            rates = {}
            for killed in (True, False) if pair % 2 else (False, True):
                _set_killed(site, killed=killed)
                rates[killed] = submit.load(_BLOCK).per_s
            losses.append(100 * (1 - rates[False] / rates[True]))
    finally:
        _set_killed(site, killed=False)
        advisor.signal(signal.SIGCONT)
    return losses


def _set_killed(site: Site, *, killed: bool) -> None:
    if killed:
        site.kill_switch.touch()
    else:
        site.kill_switch.unlink(missing_ok=True)
