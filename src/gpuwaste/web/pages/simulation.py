"""/simulations/ID: the difference from the base with its interval first, then plots, figures and notes."""

from collections.abc import Sequence

from gpuwaste.analytics.kept_simulations import KeptEntry, KeptSimulation
from gpuwaste.web.environment import Frame, page
from gpuwaste.web.pages.view import view_body


def simulation_page(kept: KeptSimulation, number: int, frame: Frame) -> str:
    """Return the page of a simulation with the given page of its table."""
    body = view_body(kept.view, number, lambda other: f"/simulations/{kept.id}?page={other}#table", frame.links)
    return page("simulation", frame, view=body)


def simulations_page(entries: Sequence[KeptEntry], frame: Frame) -> str:
    """Return the list of the simulations that are kept."""
    return page("simulations", frame, entries=entries)
