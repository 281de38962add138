"""Jobs of two users at once: while they run the doctor is content, and the ledger has the use that was played."""

from typing import Final

from tools.field.lab import Lab, expect

NAME: Final = "a job confirmed with its use"
_SECONDS: Final = 30


def run(lab: Lab) -> None:
    """Play 80 % on one GPU and 20 % on two."""
    jobs = {"alice": (1, 80), "bob": (2, 20)}
    started = {user: lab.play(user, gpus, [f"{_SECONDS}:{percent}:10000"]) for user, (gpus, percent) in jobs.items()}
    lab.sampled(list(started.values()))
    lab.well("while jobs run")
    for user, job in started.items():
        lab.ended(job, _SECONDS + 30)
        gpus, percent = jobs[user]
        means = lab.confirmed(job, user)
        expect(len(means) == gpus, f"job {job} of {user} has {len(means)} GPUs in the ledger, not {gpus}")
        expect(all(abs(mean - percent) <= 3 for mean in means), f"job {job} of {user} played {percent} %: {means}")  # noqa: PLR2004
    lab.well("after jobs")
