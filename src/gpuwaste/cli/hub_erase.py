"""`gpuwaste hub erase`: removes a user's name and texts from the stopped hub's store, and lists where else they are."""

import dataclasses
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from gpuwaste.cli.programs import load_program
from gpuwaste.core.clock import SystemClock
from gpuwaste.core.config import Config
from gpuwaste.core.errors import StoreError
from gpuwaste.core.files import UMASK
from gpuwaste.core.owner import become_owner
from gpuwaste.core.text import harmless

_AGAIN: Final = (
    "{runs} of {user}'s runs have not ended, or ended after the last read of accounting less sacct_overlap_s: the hub"
    " stores their name again at its next read. Erase again when the last one has ended and was read."
)


def erase(config: Config, user: str, *, dry_run: bool) -> dict[str, Any]:
    """Erase a user from the configured store, or count what that would change; returns it. Raises GpuwasteError."""
    module = load_program("gpuwaste.hub.store_eraser")
    state_dir = Path(config.hub.state_dir)
    if not state_dir.is_dir():
        raise StoreError(f"{state_dir}: is not a directory: set [hub] state_dir")
    become_owner(state_dir)
    mask = os.umask(UMASK)
    try:
        result = module.StoreEraser(config.hub, SystemClock()).erase(user, only_count=dry_run)
    finally:
        os.umask(mask)
    return {
        "user": user, "dry_run": dry_run, "store": config.hub.store, **dataclasses.asdict(result),
        "elsewhere": list(_elsewhere(config)),
    }  # fmt: skip


def erase_text(done: dict[str, Any]) -> str:
    """Return the text about an erasure."""
    user = harmless(done["user"])
    return "".join(f"{line}\n" for line in _lines(done, user))


def _lines(done: dict[str, Any], user: str) -> Iterator[str]:
    dry = done["dry_run"]
    if done["tables"] or done["pages"]:
        yield f"{'would erase' if dry else 'erased'} user {user}: rows by table"
    else:
        yield f"no row of the store names user {user}"
    for table in done["tables"]:
        kinds = (("own", f"rows of {user}"), ("mentions", f"other texts that name {user}"))
        parts = [
            f"{table[kind]} {words} {'deleted' if table[f'{kind}_deleted'] else 'rewritten'}"
            for kind, words in kinds
            if table[kind]
        ]
        yield f"  {table['table']}: {', '.join(parts)}"
    if done["pages"]:
        yield f"  hub.pages: {done['pages']} raw pages of imported history deleted"
    if dry:
        yield "nothing was changed (--dry-run)"
    else:
        yield (
            "the lake's snapshots and the files of old rows are deleted; PostgreSQL's own dead rows go with VACUUM"
            if done["store"] == "lake"
            else "the store's file was rewritten without the old rows"
        )
    for name in done["left"]:
        place = f"{name['rows']} rows of {name['table']}.{name['column']}"
        yield f"not changed: {place}: a name of the site that contains {user}"
    if done["again"]:
        yield _AGAIN.format(runs=done["again"], user=user)
    if done["copies"]:
        yield "may still name the user, delete what is not needed: " + ", ".join(map(harmless, done["copies"]))
    yield "not in the hub's store, so not erased by this command:"
    yield from (f"  {line}" for line in done["elsewhere"])


def _elsewhere(config: Config) -> Iterator[str]:
    """Yield where else the user is known, and until when."""
    agent, advisor, actor = config.agent, config.advisor, config.actor
    yield f"GPU nodes, {agent.state_dir}: samples by job ID, no names; {agent.retention_days} days (retention_days)"
    yield (
        f"advisor hosts, {advisor.state_dir}: hashes of names; stop the advisor, remove {advisor.state_dir}/history,"
        " start it; verdicts have names until the hub has acknowledged them, those that it refused for 400 days"
    )
    yield f"the actor's host, {actor.state_dir}: sent actions by job ID, no names; 400 days"
    yield "backups of the store: a restored backup has the name again; erase again after a restore"
    yield "mail that was sent, the journal, receivers of events (outlets): their own retention"
    yield "Slurm's accounting: `gpuwaste history import` brings the name back while slurmdbd has it"
