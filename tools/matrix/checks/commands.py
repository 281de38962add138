"""srun, salloc, arrays, het jobs and sbatch --test-only."""

from typing import Final

from tools.matrix.checks.verdict import LINES
from tools.matrix.rig import TOKEN, Request, Rig, expect, says

NAME: Final = "srun, salloc, array, het, --test-only"
JOB_SUBMIT: Final = "gpuwaste"


def run(rig: Rig) -> None:
    """Each way to submit, warned and refused."""
    for command in ("srun", "salloc"):
        _interactive(rig, command)
    _array(rig)
    _het(rig)
    _test_only(rig)


def _interactive(rig: Rig, command: str) -> None:
    with rig.advisor(says("warn", *LINES)) as advisor:
        done = rig.submit("--job-name=now", "true", command=command)
        asked = _of(advisor.requests, "now")
    expect(done.returncode == 0, f"{command}, warned: exited {done.returncode}: {done.stderr.strip()}")
    expect(all(line in done.stderr for line in LINES), f"{command}, warned: the terminal shows {done.stderr!r}")
    expect(len(asked) == 1, f"{command}: the advisor was asked {len(asked)} times")
    with rig.advisor(says("reject", *LINES)):
        done = rig.submit("true", command=command)
    expect(done.returncode != 0, f"{command}, refused: exited 0")
    expect(all(line in done.stderr for line in LINES), f"{command}, refused: the terminal shows {done.stderr!r}")


def _array(rig: Rig) -> None:
    """Show that an array is one question, and that each of its tasks carries the token."""
    with rig.advisor(says("pass")) as advisor:
        job = rig.accepted("--array=0-3", "--job-name=many")
        asked = _of(advisor.requests, "many")
    expect(len(asked) == 1, f"array: the advisor was asked {len(asked)} times")
    expect(asked[0]["job"].get("array_inx") == "0-3", f"array: array_inx is {asked[0]['job'].get('array_inx')!r}")
    tokens = {shown.get("AdminComment", "") for shown in rig.cluster.show_job(job)}
    expect(tokens == {f";gw={TOKEN}"}, f"array: AdminComment of its tasks is {tokens}")


def _het(rig: Rig) -> None:
    """Show that each component of a het job is a question of its own."""
    with rig.advisor(says("pass")) as advisor:
        rig.accepted("--job-name=het", "--gres=gpu:1", ":", "--job-name=het", "--ntasks=2")
        asked = _of(advisor.requests, "het")
    offsets = sorted(request["job"].get("het_job_offset", -1) for request in asked)
    expect(offsets == [0, 1], f"het: the advisor was asked for the components {offsets}")


def _test_only(rig: Rig) -> None:
    """--test-only makes no job, whatever is said."""
    with rig.advisor(says("warn", *LINES)) as advisor:
        done = rig.submit("--test-only", "--job-name=never")
        asked = _of(advisor.requests, "never")
    expect(done.returncode == 0, f"--test-only: exited {done.returncode}: {done.stderr.strip()}")
    expect(len(asked) == 1, f"--test-only: the advisor was asked {len(asked)} times")
    expect("never" not in rig.cluster.run(["squeue", "-h", "-t", "all", "-o", "%j"]).stdout.split(), "it made a job")


def _of(requests: list[Request], name: str) -> list[Request]:
    return [request for request in requests if request["job"].get("name") == name]
