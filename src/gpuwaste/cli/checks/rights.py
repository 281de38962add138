"""Permissions in Slurm: the daemons must see all users' jobs; PrivateData hides them without an error."""

from collections.abc import Iterator
from typing import Final

from gpuwaste.cli.check import Check, Role, Status, Surroundings

PLACE: Final = 40
NAME: Final = "rights"
ROLES: Final = frozenset({Role.AGENT, Role.HUB})


def check(around: Surroundings) -> Iterator[Check]:
    """Check with another user's job that Slurm shows all jobs."""
    me = around.user
    private = around.slurm.config().private_data & {"jobs", "all"}
    others = sorted({job.user for job in around.slurm.jobs()} - {me})
    mend = f"sacctmgr modify user {me} set adminlevel=Operator"
    if others:
        yield Check(NAME, Status.OK, f"{me} sees jobs of {len(others)} other user(s), such as {others[0]}")
        return
    level = around.slurm.admin_levels().get(me, "None")
    if level != "None" or me in {"root", "slurm"}:
        yield Check(NAME, Status.OK, f"admin level {level}; cannot be checked: no other user has a job")
    elif private:
        yield Check(NAME, Status.FAIL, f"PrivateData=jobs hides other users' jobs from {me}, without an error", mend)
    else:
        yield Check(NAME, Status.WARN, "cannot be checked: no other user has a job; PrivateData is not set")
