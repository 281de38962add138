"""The change that a simulation proposes: the one that shortens the mean wait most, for sure."""

from msgspec.structs import replace

from gpuwaste.sim.document import Delta, Difference, Proposal, SimulationDocument

_FIGURE = "mean_wait_s"


def with_proposal(document: SimulationDocument) -> SimulationDocument:
    """Return the document with its proposal: none where no change's 95 % interval lies below 0.

    Other schedulers are no change of a site's settings, so only what-ifs of the first scheduler count.
    """
    first = next(iter(document.schedulers))
    changes = [one for one in document.differences if one.base == one.scheduler == first]
    sure = [(one, one.figures[_FIGURE]) for one in changes if _is_sure(one.figures.get(_FIGURE))]
    if not sure:
        return document
    best, delta = min(sure, key=lambda pair: pair[1].difference)
    return replace(document, proposal=_proposal(best, delta, len(changes)))


def _is_sure(delta: Delta | None) -> bool:
    return delta is not None and delta.low is not None and delta.high is not None and delta.high < 0


def _proposal(best: Difference, delta: Delta, among: int) -> Proposal:
    return Proposal(
        change=best.change,
        scheduler=best.scheduler,
        jobs=best.jobs,
        mean_wait_s=delta.difference,
        low_s=delta.low or 0.0,
        high_s=delta.high or 0.0,
        later=best.later,
        among=among,
    )
