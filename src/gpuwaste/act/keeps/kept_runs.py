"""Keeps: which runs are kept at an instant, for rules and for the gate of actions; read from the store each time."""

from collections.abc import Callable, Collection, Sequence
from datetime import UTC, datetime
from typing import Final, Self

from gpuwaste.act.actions.action_types import ActionEntry
from gpuwaste.act.keeps.keep_mail import answer_lines
from gpuwaste.act.keeps.keep_store import KeepStore
from gpuwaste.act.keeps.keep_types import KeepRow
from gpuwaste.core.config import Config
from gpuwaste.core.parts import Part, Parts
from gpuwaste.jobs.host_ports import HostPorts
from gpuwaste.jobs.run_store import runs_of_id
from gpuwaste.ledger.reports.job_types import KeptRun
from gpuwaste.ledger.run_keeps import RunKeeps
from gpuwaste.slurm.run_key import RunKey
from gpuwaste.store.hub.hub_store import HubStore

KEPT: Final = "kept"  # in the reasons why a rule skipped jobs


class Keeps(Part):
    """For any thread. Raises StoreError."""

    def __init__(self, store: KeepStore, printed: Callable[[RunKey], str] = lambda run: str(run.job_id)) -> None:
        """Take the store; `printed` returns a run's id as Slurm prints it."""
        self.store = store
        self._printed = printed
        self._spared: frozenset[str] = frozenset()

    @classmethod
    def part_of(cls, parts: Parts) -> Self:
        """Return the part of a hub."""
        store = parts.get(HubStore)

        def printed(run: RunKey) -> str:
            found = (one for one in runs_of_id(store, run.cluster, run.job_id) if one.run_key == run)
            return next((one.printed_id for one in found), str(run.job_id))

        return cls(KeepStore(store, parts.get(HostPorts).clock), printed)

    def active(self, runs: Collection[RunKey], now: int) -> dict[RunKey, KeepRow]:
        """Return of each of these runs that is kept at `now`, UTC seconds, the keep that ends last."""
        wanted = set(runs)
        return {row.run: row for row in self.store.since(now) if row.run in wanted and row.at <= now}

    def since(self, instant: int) -> dict[str, KeepRow]:
        """Return the keeps that are active, or ended after an instant, by the key of the run as rules name it."""
        return {str(row.run): row for row in self.store.since(instant)}

    def spare(self, rules: Collection[str]) -> None:
        """From now on a keep does not stop these rules: they protect the job (`keep = false` in the file)."""
        self._spared = frozenset(rules)

    def answers(self, config: Config) -> Callable[[ActionEntry], Sequence[str]]:
        """Return a function of what ends a rule's mail to the owner of a run."""
        permits = config.hub.keep_hours_per_week > 0 and config.hub.keeps_per_week > 0
        hours = min(config.hub.keep_max_hours, config.hub.keep_hours_per_week) if permits else 0.0
        url = config.web.url if config.web.enabled else ""

        def lines(action: ActionEntry) -> Sequence[str]:
            if action.run is None:
                return ()
            return answer_lines(self._printed(action.run), 0.0 if action.rule in self._spared else hours, url)

        return lines

    def hindrance(self, action: ActionEntry) -> str:
        """Return why an action must not be sent since its run is kept, "" if it may."""
        if action.run is None or (action.rule and action.rule in self._spared):
            return ""
        keep = self.store.of_run(action.run, self.store.now())
        return "" if keep is None else kept_words(keep)


class KeepsOfRuns(RunKeeps):
    """Shows keeps in documents of the ledger."""

    def __init__(self, keeps: Keeps) -> None:
        self._keeps = keeps

    @classmethod
    def part_of(cls, parts: Parts) -> Self:
        """Return the part of a hub."""
        return cls(parts.get(Keeps))

    def kept(self, runs: Collection[RunKey], now: int) -> list[KeptRun]:
        """Return which of these runs are kept. Raises StoreError."""
        found = self._keeps.active(runs, now).values()
        return [
            KeptRun(printed_id=one.printed_id, asked_by=one.asked_by, until=one.until, reason=one.reason)
            for one in found
        ]

    def kept_until(self, run: RunKey, now: int) -> int | None:
        """Return until when a run is kept. Raises StoreError."""
        keep = self._keeps.store.of_run(run, now)
        return None if keep is None else keep.until


def kept_words(keep: KeepRow) -> str:
    """Return a keep in one clause."""
    return f"kept until {instant(keep.until)} by {keep.asked_by}: {keep.reason}"


def instant(utc_s: int) -> str:
    """Return an instant for a sentence."""
    return datetime.fromtimestamp(utc_s, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
