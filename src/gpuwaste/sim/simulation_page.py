"""/simulations/ID: the difference from the base with its interval first, then plots, figures and notes."""

from collections.abc import Sequence

from gpuwaste.show.environment import Frame, page
from gpuwaste.show.view_page import view_body
from gpuwaste.sim.kept_simulations import KeptEntry, KeptSimulation


def simulation_page(kept: KeptSimulation, number: int, frame: Frame) -> str:
    """Return the page of a simulation with the given page of its table."""
    body = view_body(kept.view, number, lambda other: f"/simulations/{kept.id}?page={other}#table", frame.links)
    return page("simulation", frame, view=body)


def simulations_page(entries: Sequence[KeptEntry], frame: Frame) -> str:
    """Return the list of the simulations that are kept."""
    return page("simulations", frame, entries=entries)
