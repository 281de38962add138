"""pass, annotate, warn and reject at sbatch: what the user sees, what becomes of the job, where the token stands."""

from typing import Final

from gpuwaste.testing.cluster_process import wait_until
from tools.matrix.rig import TOKEN, Rig, expect, says

NAME: Final = "verdicts at sbatch"
JOB_SUBMIT: Final = "gpuwaste"
LINES: Final = ("your last 14 jobs named train used 1 of 4 GPUs", "ask for one: --gres=gpu:1")
_NOT_ALLOWED: Final = 2002  # ESLURM_ACCESS_DENIED in every release


def run(rig: Rig) -> None:
    """One job per action, then a rejection with a code of the advisor's own."""
    silent(rig)
    warned = warn(rig)
    reject(rig)
    with rig.advisor(says("reject", "no", code=_NOT_ALLOWED)):
        done = rig.submit()
    expect(done.returncode != 0 and "denied" in done.stderr, f"ESLURM_ACCESS_DENIED reads: {done.stderr.strip()!r}")
    _in_accounting(rig, warned)


def silent(rig: Rig) -> None:
    """Pass and annotate leave a token and say nothing."""
    for action in ("pass", "annotate"):
        with rig.advisor(says(action, *LINES)):
            job = rig.accepted()
        comment = rig.job(job).get("AdminComment", "")
        expect(comment == f";gw={TOKEN}", f"{action}: AdminComment is {comment!r}")


def warn(rig: Rig) -> int:
    """Warn says its lines at the terminal and accepts the job."""
    with rig.advisor(says("warn", *LINES)):
        done = rig.submit()
    expect(done.returncode == 0, f"warn: sbatch exited {done.returncode}: {done.stderr.strip()}")
    expect(all(line in done.stderr for line in LINES), f"warn: the terminal shows {done.stderr!r}")
    job = int(done.stdout.split(";")[0])
    expect(rig.token(job) == TOKEN, f"warn: AdminComment is {rig.job(job).get('AdminComment')!r}")
    return job


def reject(rig: Rig) -> None:
    """Reject says its lines and leaves no job."""
    with rig.advisor(says("reject", *LINES)):
        done = rig.submit("--job-name=refused")
    expect(done.returncode != 0, "reject: sbatch exited 0")
    expect(all(line in done.stderr for line in LINES), f"reject: the terminal shows {done.stderr!r}")
    queue = rig.cluster.run(["squeue", "-h", "-t", "all", "-o", "%j"]).stdout.split()
    expect("refused" not in queue, "reject: the job is in the queue")


def _in_accounting(rig: Rig, job: int) -> None:
    """Show that the token reaches accounting, where the outcome is joined."""
    rows: list[dict[str, str]] = []

    def there() -> bool:
        rows[:] = rig.cluster.sacct("-j", str(job), fields="JobIDRaw,AdminComment")
        return bool(rows) and rows[0]["AdminComment"] == f";gw={TOKEN}"

    wait_until(there, 30, "the token in sacct's AdminComment", lambda: str(rows), poll_s=0.2)
