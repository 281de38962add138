"""What is wrong with a yes, by the truth of a drawn cluster, second by second; written without gpuwaste's code."""

from tests.unit.ledger.idleness.idle_world import END, World, WorldRun, within

from gpuwaste.ledger.idleness.idleness_types import IdlenessDocument


def false_yes(world: World, document: IdlenessDocument) -> str:  # noqa: PLR0911 a reason each
    """Return why a yes is false, "" where it is true: of each second from since to as_of all of it is checked."""
    if document.since is None or document.as_of is None:
        return "a yes without its time"
    if document.as_of - document.since < document.for_s:
        return f"only {document.as_of - document.since} s"
    if document.generated - document.as_of > document.max_age_s:
        return f"{document.generated - document.as_of} s old"
    if document.as_of > document.generated:
        return "about the future"
    first, last = document.since - world.hub_ahead, document.as_of - world.hub_ahead
    named = {(run.job_id, run.start) for run in document.runs}
    answered = [run for run in world.runs if (run.job_id, run.start) in named]
    if document.about == "job" and not answered:
        return "about no run"
    for second in range(int(first), int(last)):
        for run in answered:
            if wrong := _at(world, run, second):
                return f"{wrong} at {second}"
        if wrong := _others(world, document, named, second):
            return f"{wrong} at {second}"
    return ""


def _at(world: World, run: WorldRun, second: int) -> str:  # noqa: PLR0911 a reason each
    """Return what was not idle of a run in one second."""
    if not run.running(second):
        return f"{run.printed_id} was not running"
    if within(run.suspended, second):
        return f"{run.printed_id} was suspended"
    if run.kind != "gpu" or not run.uuids:
        return f"{run.printed_id} is of kind {run.kind}"
    for name, uuids in run.gpus.items():
        node = world.node(name)
        if not within(node.up, second):
            return f"nobody measured {name}"
        for uuid in uuids:
            if uuid == node.omits:
                return f"{uuid} is not measured"
            if within(run.active[uuid], second):
                return f"{uuid} was active"
    return ""


def _others(world: World, document: IdlenessDocument, named: set[tuple[int, int | None]], second: int) -> str:
    """Return which run the answer leaves out: one on the node at any time, of a job one that runs up to the end."""
    if document.about == "node":
        there = (run for run in world.runs if document.name in run.gpus and run.running(second))
        return next((f"{run.printed_id} was there" for run in there if (run.job_id, run.start) not in named), "")
    if document.as_of is None or second < document.as_of - world.hub_ahead - 1:
        return ""
    now = int(document.generated - world.hub_ahead)  # one that has ended by then is not culled with the others
    same = (run for run in world.named(document.name) if run.running(second) and run.running(now))
    return next((f"{run.printed_id} also ran" for run in same if (run.job_id, run.start) not in named), "")


def long_idle(world: World, run: WorldRun, at: int, length_s: int) -> bool:
    """Return whether a run has never been active and has run for so long: a healthy site must say so."""
    ends = END if run.end is None else run.end
    never = all(not any(a < at for a, _ in spans) for spans in run.active.values())
    return run.kind == "gpu" and never and run.start <= at - length_s and at < ends
