"""slurmrestd.md, from the list of differences that the contract test allows, and the versions the client knows."""

from gpuwaste.slurm.clients.rest_client import VERSIONS
from gpuwaste.testing.rest_differences import DIFFERENCES
from tools.reference.markdown import document, table


def page() -> str:
    """Return the page."""
    rows = [(f"`{item.name}`", item.versions, item.instead, item.reason) for item in DIFFERENCES]
    return document(
        "slurmrestd and sacct",
        f"API versions, tried in this order: {', '.join(VERSIONS)}.",
        "## What differs",
        "Some two hundred real jobs are run and read both ways by the tests (Slurm 22.05.8); recordings of 24.11.5 and"
        " 26.05.5, with a job of each kind, are read both ways too. Each field is equal but for these:",
        table(("field", "versions", "slurmrestd gives", "because"), rows),
    )
