"""gpuwaste-mail, the MailProg wrapper: what it adds and to which mails, and that the mail goes out whatever fails."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from gpuwaste.testing.patience import patient

WRAPPER = Path(__file__).parents[2] / "plugins" / "mailprog" / "gpuwaste-mail"
LAST = "--ended-since=now-120seconds --as=alice --wait 2s"
SUBJECT = "Slurm Job_id=7 Name=train Ended, Run time 00:10:00, COMPLETED, ExitCode 0"


@dataclass
class Mailing:
    """A recording mail program and a scripted gpuwaste beside the wrapper."""

    directory: Path

    def __post_init__(self) -> None:
        self._script(
            "mail", 'printf "%s\\n" "$@" >{d}/arguments; cat >{d}/body; echo sent >>{d}/count; exit "$(cat {d}/code)"'
        )
        (self.directory / "code").write_text("0")
        self.gpuwaste('echo "report of $2"; echo "$@" >{d}/asked')
        self.keys('mail_program = "{d}/mail"', "mail_report_s = 2")

    def gpuwaste(self, body: str) -> None:
        """Set what gpuwaste does."""
        self._script("gpuwaste", body)

    def keys(self, *lines: str) -> None:
        """Write the configuration."""
        text = "\n".join(["[hub]", 'mail_program = "/bin/false"', "[notify]", *lines, "[plugin]", "mail_report_s = 50"])
        (self.directory / "gpuwaste.toml").write_text(text.replace("{d}", str(self.directory)) + "\n")

    def send(
        self, *arguments: str, body: bytes = b"", code: int = 0, env: dict[str, str] | None = None, **more: str
    ) -> None:
        """Call the wrapper as slurmctld does: a bare environment."""
        own = {"GPUWASTE_CONFIG": str(self.directory / "gpuwaste.toml"), "GPUWASTE": str(self.directory / "gpuwaste")}
        own["SLURM_JOB_USER"] = "alice"
        done = subprocess.run(
            [str(WRAPPER), *arguments],
            input=body,
            env={**own, **(env or {}), **more},
            capture_output=True,
            timeout=patient(60),
            check=False,
        )
        assert done.returncode == code, done.stderr

    def ended(
        self, subject: str = SUBJECT, body: bytes = b"", kind: str = "Ended", env: dict[str, str] | None = None
    ) -> str:
        """Send an END mail; returns the body that came."""
        self.send("-s", subject, "alice", body=body, env=env, SLURM_JOB_MAIL_TYPE=kind)
        return self.body

    @property
    def body(self) -> str:
        """What the mail program got."""
        return (self.directory / "body").read_text()

    @property
    def arguments(self) -> list[str]:
        """How it was called."""
        return (self.directory / "arguments").read_text().splitlines()

    @property
    def count(self) -> int:
        """How many mails went."""
        return (self.directory / "count").read_text().count("sent")

    @property
    def asked(self) -> str:
        """What gpuwaste was asked."""
        file = self.directory / "asked"
        return file.read_text().split(" --config")[0].strip() if file.exists() else ""

    def _script(self, name: str, body: str) -> None:
        path = self.directory / name
        path.write_text("#!/bin/sh\n" + body.replace("{d}", str(self.directory)) + "\n")
        path.chmod(0o755)


@pytest.fixture
def mailing(tmp_path: Path) -> Mailing:
    return Mailing(tmp_path)


def test_the_report_follows_slurm_s_own_text(mailing: Mailing) -> None:
    """Subject and address go through as they are, the body is Slurm's and then the report."""
    assert mailing.ended(body=b"from slurm\n") == "from slurm\n\nreport of 7\n"
    assert mailing.arguments == ["-s", SUBJECT, "alice"]
    assert mailing.asked == f"job 7 {LAST}"


def test_keys_of_drop_ins_count(mailing: Mailing) -> None:
    """The mail program of the last drop-in by name is run; of other sections and hidden files nothing is taken."""
    mailing.keys('mail_program = "/bin/false"')
    folder = mailing.directory / "gpuwaste.toml.d"
    folder.mkdir()
    (folder / "b.toml").write_text(f'[notify]\nmail_program = "{mailing.directory}/mail" # ours\n[hub]\n')
    (folder / "a.toml").write_text('[notify]\nmail_program = "/bin/false"\n')
    (folder / "c.toml").write_text('mail_program = "/bin/false"\n[hub]\nmail_program = "/bin/false"\n')
    (folder / ".d.toml").write_text('[notify]\nmail_program = "/bin/false"\n')
    assert mailing.ended(body=b"from slurm\n") == "from slurm\n\nreport of 7\n"


@pytest.mark.parametrize(
    ("subject", "asked"),
    [
        ("Slurm Array Task Job_id=3_1 (9) Name=x Failed, Run time 1", f"job 3_1 {LAST}"),
        ("Slurm Array Summary Job_id=3_* (3) Name=x Ended, COMPLETED", f"job 3 {LAST}"),
        ("Slurm Job_id=7 Name=Job_id=8 Ended", f"job 7 {LAST}"),
        ("Slurm Job_id=7;reboot Name=x Ended", f"job 7 {LAST}"),
        ("Slurm Job_id=-h Name=x Ended", ""),
        ("Somebody else's words about Job_id=7 Ended", ""),
    ],
)
def test_which_job_it_is(mailing: Mailing, subject: str, asked: str) -> None:
    """Arrays, tasks and names that look like ids: Slurm's own id counts, and nothing else."""
    mailing.ended(subject)
    assert mailing.asked == asked
    assert mailing.count == 1


def test_the_run_that_ended_is_asked_for(mailing: Mailing) -> None:
    """By its start and cluster where Slurm says them; an array's tasks started at different times."""
    known = {"SLURM_JOB_START_TIME": "1800000000", "SLURM_CLUSTER_NAME": "gw"}
    mailing.ended(env=known)
    assert mailing.asked == "job 7 --starttime=@1800000000 --clusters=gw --as=alice --wait 2s"
    mailing.ended("Slurm Array Summary Job_id=3_* (3) Name=x Ended, COMPLETED", env=known)
    assert mailing.asked == "job 3 --ended-since=now-120seconds --clusters=gw --as=alice --wait 2s"
    mailing.ended(env={"SLURM_JOB_START_TIME": "soon; reboot"})
    assert mailing.asked == f"job 7 {LAST}"


def test_without_an_owner_nothing_is_asked(mailing: Mailing) -> None:
    """SlurmUser's own view, which has what no user was told, never reaches a mail."""
    assert mailing.ended(body=b"from slurm", env={"SLURM_JOB_USER": ""}) == "from slurm"
    assert (mailing.asked, mailing.count) == ("", 1)


@pytest.mark.parametrize("kind", ["Began", "Requeued", "Reached 90% of time limit", "Invalid dependency"])
def test_other_mails_are_left_alone(mailing: Mailing, kind: str) -> None:
    """A mail that is not of a job's end goes out at once, as it is."""
    assert mailing.ended(f"Slurm Job_id=7 Name=x {kind}", b"as it was", kind) == "as it was"
    assert mailing.asked == ""


def test_an_older_slurm_without_the_variable(mailing: Mailing) -> None:
    """Where Slurm does not say the kind of the mail in the environment, the subject does."""
    mailing.send("-s", SUBJECT, "alice")
    assert mailing.body == "\nreport of 7\n"


@pytest.mark.parametrize(
    "fault",
    [
        "exit 3",
        "echo half; exit 1",
        "sleep 300; echo late",
        "kill -9 $$",
        "exit 0",
        "exec /nonexistent",
        ": >/dev/full; exit 5",
    ],
)
def test_the_mail_goes_out_whatever_fails(mailing: Mailing, fault: str) -> None:
    """A report that fails, hangs, dies or is empty: the mail is Slurm's, once, with its body."""
    mailing.gpuwaste(fault)
    mailing.keys('mail_program = "{d}/mail"', "mail_report_s = 1 # seconds")
    assert mailing.ended(body=b"from slurm\n") == "from slurm\n"
    assert mailing.count == 1


def test_nothing_of_ours_is_installed(mailing: Mailing) -> None:
    """Without the command, the configuration or a place for its files it still is the mail program."""
    (mailing.directory / "gpuwaste").unlink()
    assert mailing.ended(body=b"text") == "text"
    mailing.gpuwaste("echo report")
    mailing.send("-s", SUBJECT, "alice", body=b"no place", SLURM_JOB_MAIL_TYPE="Ended", TMPDIR="/nonexistent")
    assert mailing.body == "no place"
    mailing.keys('mail_program = "{d}/mail"', "mail_report_s = 0")
    assert mailing.ended(body=b"switched off") == "switched off"


def test_the_mail_program_s_own_error_is_told(mailing: Mailing) -> None:
    """Its exit code reaches slurmctld, which writes it to its log."""
    (mailing.directory / "code").write_text("69")
    mailing.send("-s", SUBJECT, "alice", code=69)
    mailing.send("-s", SUBJECT, "alice", code=69, SLURM_JOB_MAIL_TYPE="Began")


def test_odd_arguments_go_through(mailing: Mailing) -> None:
    """Names with quotes, dollars, line breaks and dashes are words to the mail program, never commands."""
    odd = "Slurm Job_id=7 Name=$(touch {d}/pwned)`id`'\"; Ended".replace("{d}", str(mailing.directory))
    mailing.ended(odd)
    assert mailing.arguments == ["-s", odd, "alice"]
    assert not (mailing.directory / "pwned").exists()
    mailing.send()
    mailing.send("-s")
    assert mailing.count == 3


def test_it_does_not_call_itself(mailing: Mailing) -> None:
    """A configuration that names the wrapper as the mail program ends at once, with words."""
    mailing.keys(f'mail_program = "{WRAPPER}"')
    mailing.send("-s", SUBJECT, "alice", code=1, SLURM_JOB_MAIL_TYPE="Ended")


def test_it_leaves_nothing_behind(mailing: Mailing) -> None:
    """Its files are gone afterwards, also those of a report that hung."""
    place = mailing.directory / "tmp"
    place.mkdir()
    mailing.gpuwaste("sleep 300")
    mailing.keys('mail_program = "{d}/mail"', "mail_report_s = 1")
    mailing.send("-s", SUBJECT, "alice", SLURM_JOB_MAIL_TYPE="Ended", TMPDIR=str(place))
    assert list(place.iterdir()) == []
