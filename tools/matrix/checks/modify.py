"""scontrol update of a pending job: the advisor learns which job, and may refuse the change."""

from typing import Final

from tools.matrix.rig import TOKEN, USER, Rig, expect, says

NAME: Final = "scontrol update"
JOB_SUBMIT: Final = "gpuwaste"


def run(rig: Rig) -> None:
    """Change a held job's name: allowed, then refused; then an administrator with a note of his own."""
    with rig.advisor(says("pass")) as advisor:
        job = rig.accepted("--hold", "--job-name=before")
        advisor.requests.clear()
        rig.cluster.run(["scontrol", "update", f"JobId={job}", "Name=after"], USER)
        asked = [request for request in advisor.requests if request["op"] == "modify"]
    expect(rig.job(job)["JobName"] == "after", "the change was lost")
    expect(len(asked) == 1, f"the advisor was asked {len(asked)} times of a modification")
    expect(int(asked[0]["job"].get("job_id", 0)) == job, f"the request names job {asked[0]['job'].get('job_id')!r}")
    expect(rig.token(job) == TOKEN, f"AdminComment is {rig.job(job).get('AdminComment')!r}")
    refuses(rig)
    with rig.advisor(says("pass")):
        rig.cluster.run(["scontrol", "update", f"JobId={job}", "AdminComment=checked"])
    comment = rig.job(job).get("AdminComment", "")
    expect(comment.startswith("checked"), f"an administrator's AdminComment is {comment!r}")


def refuses(rig: Rig) -> None:
    """Show that a rejected modification is refused, and that the job stays as it was."""
    with rig.advisor(says("pass")) as advisor:
        job = rig.accepted("--hold", "--job-name=kept")
        advisor.answer = says("reject", "not this change")
        done = rig.cluster.run(["scontrol", "update", f"JobId={job}", "Name=other"], USER, check=False)
    expect(done.returncode != 0, "a refused modification exits 0")
    expect(rig.job(job)["JobName"] == "kept", "a refused modification was made")
