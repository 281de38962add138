"""A fleet over several processes: each runs a part of the nodes, all do the same at the same time."""

import logging
import multiprocessing
from dataclasses import replace
from itertools import pairwise
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Self

from gpuwaste.testing.cluster_process import ClusterError
from gpuwaste.testing.fleet import Fleet, FleetPlan, FleetTally


class FleetProcesses:
    """The nodes of `plan` spread over `processes` processes."""

    def __init__(self, plan: FleetPlan, processes: int) -> None:
        bounds = [plan.first + plan.nodes * part // processes for part in range(processes + 1)]
        self._plans = [replace(plan, first=low, nodes=high - low) for low, high in pairwise(bounds) if high > low]
        self._ends: list[Connection] = []
        self._processes: list[multiprocessing.process.BaseProcess] = []

    @property
    def records(self) -> list[Path]:
        """The files that hold what was put."""
        return [plan.record for plan in self._plans]

    def __enter__(self) -> Self:
        """Start the processes and wait until every agent is there."""
        context = multiprocessing.get_context("spawn")
        for plan in self._plans:
            here, there = context.Pipe()
            process = context.Process(target=_serve, args=(plan, there), daemon=True)
            process.start()
            there.close()
            self._ends.append(here)
            self._processes.append(process)
        self._gather()
        return self

    def __exit__(self, *_: object) -> None:
        """End all agents."""
        for end in self._ends:
            end.close()
        for process in self._processes:
            process.join(120)
            process.kill()

    def call(self, method: str, *arguments: Any, **keywords: Any) -> list[Any]:
        """Call a method of every part's Fleet and return what each says. Raises ClusterError."""
        for end in self._ends:
            end.send((method, arguments, keywords))
        return self._gather()

    def tally(self) -> FleetTally:
        """Return the exchanges of all since the last call."""
        total = FleetTally()
        for part in self.call("tally"):
            total.seconds += part.seconds
            total.outcomes += part.outcomes
            total.errors += part.errors
            total.rows += part.rows
        return total

    def _gather(self) -> list[Any]:
        answers: list[tuple[bool, Any]] = [end.recv() for end in self._ends]
        for good, answer in answers:
            if not good:
                raise ClusterError(f"a part of the fleet failed: {answer}")
        return [answer for _, answer in answers]


def _serve(plan: FleetPlan, end: Connection) -> None:
    """Do what comes through the pipe until it is closed."""
    logging.disable(logging.CRITICAL)  # what goes wrong is in the tally
    try:
        fleet = Fleet(plan)
    except Exception as error:  # noqa: BLE001 told to the other side
        end.send((False, repr(error)))
        return
    end.send((True, None))
    try:
        while True:
            method, arguments, keywords = end.recv()
            try:
                end.send((True, getattr(fleet, method)(*arguments, **keywords)))
            except Exception as error:  # noqa: BLE001 told to the other side
                end.send((False, repr(error)))
    except EOFError:
        fleet.stop()
