"""`gpuwaste simulate run --save` and `--html`, `simulate compare`: saved results, and pages."""

import hashlib
import shlex
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gpuwaste.cli.words import path_word
from gpuwaste.core.config import Config
from gpuwaste.core.errors import NoDataError, StoreError, UsageError
from gpuwaste.core.owner import as_owner

if TYPE_CHECKING:
    from gpuwaste.jobs.history.job_table import JobTable
    from gpuwaste.show.view_document import ViewDocument
    from gpuwaste.sim.counterfactual import Counterfactual
    from gpuwaste.sim.document import Difference
    from gpuwaste.sim.saved_runs import SavedRuns

_ID_LENGTH: Final = 12


def view_of(found: "Counterfactual", cluster: str) -> "ViewDocument":
    """Return the simulation as a view, with the command that made it."""
    from gpuwaste.sim.simulation_view import simulation_view

    command = shlex.join(["gpuwaste", *sys.argv[1:]])
    return simulation_view(found.document, cluster=cluster, command=command, at=int(time.time()))


def keep(found: "Counterfactual", table: "JobTable", view: "ViewDocument", config: Config) -> str:
    """Write a simulation for the hub's pages and for `simulate compare`; returns its id, the same for equal results.

    Raises StoreError, ConfigError.
    """
    import msgspec

    from gpuwaste.core.files import write_whole
    from gpuwaste.sim import kept_simulations
    from gpuwaste.sim.saved_runs import packed

    document = msgspec.to_builtins(found.document)
    identity = hashlib.sha256(msgspec.json.encode(document)).hexdigest()[:_ID_LENGTH]
    state = path_word(config.hub.state_dir)
    if not state.is_dir():
        raise StoreError(f"{state}: no such directory: --save writes there, on the hub's host: see hub.state_dir")
    directory = state / kept_simulations.DIRECTORY
    kept = kept_simulations.KeptSimulation(id=identity, at=view.generated, title=view.title, view=view)
    with as_owner(state):
        path = kept_simulations.write(directory, kept, document)
        try:
            write_whole(path.with_suffix(".npz"), packed(table.job_id, table, found.runs), mode=0o640)
        except OSError as error:
            raise StoreError(f"{path.with_suffix('.npz')}: cannot be written: {error.strerror or error}") from error
    return identity


def write_pages(folder: Path, view: "ViewDocument") -> Path:
    """Write the view as pages that open from disk; returns the first one. Raises UsageError."""
    from gpuwaste.cli.analysis import write_pages as write_views

    return write_views(folder, [(view.view, view)])


def comparison(before: str, after: str, config: Config) -> tuple["Difference", str]:
    """Return the difference of two kept runs, ID or ID:RUN each, and the resource of their sizes.

    Raises UsageError, NoDataError, StoreError, ParseError.
    """
    from gpuwaste.sim.difference import NamedDifference, difference
    from gpuwaste.sim.saved_runs import same_jobs

    names = before, after
    (left, first, resource), (right, second, other) = (_kept_run(name, config) for name in names)
    if resource != other:
        raise UsageError(f"{names[0][:40]} counts {resource}, {names[1][:40]} counts {other}: expected the same")
    base, changed = same_jobs(left, right, left.runs[first], right.runs[second])
    if not set(base.trace.row.tolist()) & set(changed.trace.row.tolist()):
        raise NoDataError("the two simulations have no job in common (by id and submission)")
    named = NamedDifference(names[0], names[1], names[1], f"{second} instead of {first}", {})
    found = difference(left.labels, base, changed, named)
    return _over_seeds(found, (names[0], first), (names[1], second), config), resource


def _over_seeds(found: "Difference", before: tuple[str, str], after: tuple[str, str], config: Config) -> "Difference":
    """Return the difference with its figures over seeds, where both simulations have the same ones."""
    from msgspec import Struct
    from msgspec.structs import replace

    from gpuwaste.sim import kept_simulations
    from gpuwaste.sim.document import Seeds
    from gpuwaste.sim.intervals import paired

    class _SavedDocument(Struct):
        seeds: Seeds | None = None

    class _SavedFile(Struct):
        document: _SavedDocument

    state = path_word(config.hub.state_dir)
    with as_owner(state):
        directory = state / kept_simulations.DIRECTORY
        kept = [
            kept_simulations.read_as(directory, word.partition(":")[0], _SavedFile).document.seeds
            for word, _ in (before, after)
        ]
    if kept[0] is None or kept[1] is None:
        return found
    return replace(found, over_seeds=paired(kept[0], kept[1], before[1], after[1]))


def _kept_run(word: str, config: Config) -> tuple["SavedRuns", str, str]:
    """Return the runs of a kept simulation, the name of the wanted one, and the resource of the sizes."""
    from gpuwaste.core.files import open_plain
    from gpuwaste.sim import kept_simulations
    from gpuwaste.sim.saved_runs import MAX_B, unpacked

    identity, _, wanted = word.partition(":")
    state = path_word(config.hub.state_dir)
    directory = state / kept_simulations.DIRECTORY
    with as_owner(state):
        view = kept_simulations.read(directory, identity).view
        path = directory / f"{identity}.npz"
        try:
            with open_plain(path) as stream:
                data = stream.read(MAX_B)
        except OSError as error:
            raise StoreError(
                f"{path}: cannot be read: {error.strerror or error}: simulate with --save again"
            ) from error
    runs = unpacked(data, str(path))
    name = wanted or next(iter(runs.runs))
    if name not in runs.runs:
        raise UsageError(f"{word[:60]!r}: runs of {identity} are {'; '.join(runs.runs)[:400]}")
    return runs, name, str(view.parameters.get("resource", ""))


def kept_words(identity: str, view: "ViewDocument") -> str:
    """Return the line that names a kept simulation."""
    at = datetime.fromtimestamp(view.generated, UTC)
    return f"saved as {identity} ({at:%Y-%m-%d %H:%M} UTC): page /simulations/{identity} of the hub\n"
