"""Telling people on a real Slurm cluster: idle GPUs become a digest with the user's numbers, and END mails a report."""

import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import ClusterFactory
from tests.system.conftest import SiteFactory

from gpuwaste.core.units import GpuTimeUnit
from gpuwaste.testing.cluster import Variant
from gpuwaste.testing.cluster_process import wait_until
from gpuwaste.testing.mail_server import MailServer, running_mail_server
from gpuwaste.testing.running_site import Site, SiteOptions

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]  # a cluster, and GPUs that are idle until a digest

WRAPPER = Path(__file__).parents[2] / "plugins" / "mailprog" / "gpuwaste-mail"
RECORDER = r"""#!/bin/sh
new=$(mktemp {place}/new.XXXXXX)
{{ printf '%s\n' "$#" "$@"; printf 'kind=%s job=%s\n' "$SLURM_JOB_MAIL_TYPE" "$SLURM_JOB_ID"; cat; }} >"$new"
mv "$new" "{place}/mail.${{new##*.}}"
"""


def clock(at_s: float) -> str:
    """Return a UTC time of the day as [notify] at takes it."""
    return time.strftime("%H:%M:%S", time.gmtime(at_s))


def keys(mail: MailServer, place: Path, ends_at: float) -> dict[str, Any]:
    """Return [notify]: a daily period that ends at a second, thresholds of seconds."""
    return {
        "smtp_host": "127.0.0.1", "smtp_port": mail.port, "sender": "hpc@example.org", "address": "{user}@example.org",
        "min_wasted_gpu_h": 0.001, "settle_s": 0.0, "dry_run": False, "every": "day", "zone": "UTC",
        "at": clock(ends_at), "mail_program": str(place / "recorder"), "mail_report_s": 40,
    }  # fmt: skip


@pytest.fixture
def place() -> Iterator[Path]:
    """Return a folder that SlurmUser may write to."""
    folder = Path(tempfile.mkdtemp(prefix="gwmail", dir="/tmp"))
    folder.chmod(0o1777)
    (folder / "recorder").write_text(RECORDER.format(place=folder))
    (folder / "recorder").chmod(0o755)
    shutil.copy(WRAPPER, folder / "gpuwaste-mail")
    yield folder
    shutil.rmtree(folder)


def install(site: Site, place: Path) -> None:
    """Write what MailProg names: the wrapper with this site's command and configuration."""
    command = " ".join(f"{name}='{value}'" for name, value in site.runtime.env.items())
    (place / "gpuwaste").write_text(f'#!/bin/sh\n{command} exec {" ".join(site.runtime.command())} "$@"\n')
    start = f"GPUWASTE_CONFIG={site.config_path('hub')} GPUWASTE={place}/gpuwaste exec {place}/gpuwaste-mail"
    (place / "mailprog").write_text(f'#!/bin/sh\n{start} "$@"\n')
    for name in ("gpuwaste", "mailprog"):
        (place / name).chmod(0o755)


def mails(place: Path) -> list[str]:
    """Return what the mail program got."""
    return [file.read_text() for file in place.glob("mail.*")]


def test_idle_gpus_are_told(make_cluster: ClusterFactory, make_site: SiteFactory, place: Path) -> None:
    """Alice's idle GPUs reach her by mail with her report's numbers, bob's work none; Slurm's END mail has the report.

    The hub decides by itself on its own schedule, once, also over a restart; who says no is left alone.
    """
    cluster = make_cluster(Variant(slurm_conf=f"MailProg={place}/mailprog"))
    with running_mail_server() as mail:
        options = SiteOptions(
            interval_s=1.0, ship_every_s=2.0, sacct_every_s=1.0, notify=keys(mail, place, time.time() - 3600),
            hub={"staff_groups": ["slurm"], "finding_min_s": 10.0},
        )  # fmt: skip
        site = make_site(cluster, options)
        install(site, place)
        hub = site.start_hub()
        node = next(name for name in cluster.nodes if name.startswith("gpu"))
        site.start_agent(node)
        where = {"nodelist": node, "output": "/dev/null"}
        idle = cluster.sbatch("sleep 15", "alice", gres="gpu:2", mail_type="END", job_name="idle", **where)
        busy = site.submit("bob", "--phase 15:90", gres="gpu:1", nodelist=node)
        pair = {"mail_type": "FAIL", "job_name": "pair", "partition": "cpu", "output": "/dev/null"}
        array = cluster.sbatch("exit 3", "bob", array="0-1", **pair)
        site.wait_reported(busy, 1)
        site.wait_reported(idle, 2)

        wait_until(lambda: len(mails(place)) > 1, 60, "Slurm's mails", lambda: repr(mails(place)))
        failed, ended = sorted(mails(place), key=lambda text: "kind=Ended" in text)
        assert f"Slurm Array Summary Job_id={array}_* ({array}) Name=pair Failed" in failed
        assert "kind=Failed" in failed
        assert f"{array}_1" in failed.partition("kind=Failed")[2]
        assert ended.splitlines()[:2] == ["3", "-s"]
        assert ended.splitlines()[2].startswith(f"Slurm Job_id={idle} Name=idle Ended")
        assert ended.splitlines()[3] == "alice"
        assert f"kind=Ended job={idle}" in ended
        assert "drop the request" in ended

        assert mail.received == []
        hub.stop()
        options.notify = keys(mail, place, time.time())
        site.refresh_config()
        hub = site.start_hub()
        wait_until(lambda: bool(mail.received), 60, "alice's digest", hub.tail)
        report = site.json("report", user="alice")
        wasted_s = report["totals"]["wasted_s"]
        wanted = GpuTimeUnit.of([wasted_s]).words(wasted_s)
        (digest,) = mail.received
        assert digest.to == ("alice@example.org",)
        assert str(digest.message["Subject"]).startswith(f"{wanted} of your jobs were idle")
        assert str(idle) in digest.text
        assert "#SBATCH" in digest.text

        rows = {row["user"]: row for row in site.json("digest", "list", user="root")["notices"]}
        assert (rows["alice"]["status"], rows["bob"]["why"]) == ("sent", "little_waste")
        again = site.gpuwaste("digest", "run", user="root").stdout
        assert "was processed before" in again
        assert site.gpuwaste("digest", "run", user="alice", check=False).returncode == 1
        replayed = site.json("digest", "replay", "-S", "now-1hours", user="root")
        assert [(row["user"], row["wasted_s"]) for row in replayed["users"]] == [("alice", rows["alice"]["wasted_s"])]

        assert "no longer sent" in site.gpuwaste("notify", "off", user="alice").stdout
        assert site.gpuwaste("digest", "replay", "-S", "now-1hours", user="root", check=False).returncode == 3
        assert len(mail.received) == 1
