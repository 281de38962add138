"""Renewer: compares the model in use with the challenger and with the baseline, and changes it by the rule.

It moves the registry's link first and reports the event after that. If it is killed between the two, the change
remains, and the source of events that watches the model in use reports it without the evidence.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np

from gpuwaste.advice.predict.bundle import BASELINE, Registry
from gpuwaste.advice.predict.drift import ECE_LIMIT, MIN_JOBS, RECENT, ece
from gpuwaste.advice.predict.manifest import BundleFiles, read_bundle
from gpuwaste.advice.predict.model_comparison import PairedComparison
from gpuwaste.advice.renewal.promotion_rule import RenewalDecision, card_of, comparisons, evidence, promotion, rollback
from gpuwaste.advice.renewal.trial_types import MARGIN, TrialDocument, TrialModel
from gpuwaste.advice.verdicts.verdict_store import VerdictStore
from gpuwaste.core import log_event
from gpuwaste.core.advice_config import ModelsConfig
from gpuwaste.core.clock import Clock
from gpuwaste.core.errors import ModelError
from gpuwaste.core.typed import decode
from gpuwaste.core.units import DAY_S
from gpuwaste.jobs.events.envelope import tell
from gpuwaste.jobs.events.event_store import EventStore
from gpuwaste.jobs.events.kinds.model import ModelDrift, ModelInUse, ModelTrained
from gpuwaste.store.hub.hub_store import HubStore

TRAINED, PROMOTED, ROLLED_BACK, DRIFT = "model.trained", "model.promoted", "model.rolled_back", "model.drift"
_NEW_S: Final = 30 * DAY_S  # a bundle that is older when first found is not reported as trained
_MOST: Final = 10_000
_SINCE: Final = "model_since:"  # a mark: since when the rule has a bundle in use, UTC seconds
_CHANGED: Final = log_event.warning(
    "model-changed: {change} by rule: {name} is in use now: {reason}",
    "`gpuwaste model trial` shows the figures, `gpuwaste model rollback` undoes it; `[models] renew = false` ends it.",
)
_NO_PREVIOUS: Final = log_event.warning(
    "model-worse: the model in use is worse than the baseline and no model was in use before it: {reason}",
    "Train again (`gpuwaste model train`), or use the baseline: `gpuwaste model add`, `gpuwaste model promote`.",
)


@dataclass(frozen=True, slots=True)
class _Bundle:
    """A bundle of the registry as it is on disk."""

    name: str
    hash: str
    files: BundleFiles

    @classmethod
    def read(cls, directory: Path | None) -> "_Bundle | None":
        """Return the bundle of a link, None for no link. Raises ModelError."""
        if directory is None:
            return None
        files = read_bundle(directory)
        return cls(directory.name, files[2], files)


class Renewer:
    """Compares and changes models; call it from one thread."""

    def __init__(self, store: HubStore, clock: Clock, cluster: Callable[[], str], models_dir: Path) -> None:
        self._store = store
        self._events = EventStore(store, clock)
        self._verdicts = VerdictStore(store, clock)
        self._registry = Registry(models_dir)
        self._clock = clock
        self._cluster = cluster
        self._baseline = read_bundle(BASELINE)[2]
        self._told: set[str] | None = None
        self._drifted: set[tuple[str, str]] | None = None
        self._worse = ""

    def step(self, rule: ModelsConfig) -> TrialDocument:
        """Compare the models, report events, change the model if the rule allows it. Raises GpuwasteError."""
        now = self._clock.utc_s()
        champion, challenger = (_Bundle.read(one) for one in (self._registry.champion(), self._registry.challenger()))
        self._tell_trained(now)
        document = TrialDocument(generated=now, renew=rule.renew, cluster=self._cluster())
        if champion is None:
            return msgspec.structs.replace(document, decision="no model in use")
        self._tell_drift(champion, now)
        beside = self._compared(champion, self._baseline, self._store.mark(_SINCE + champion.hash) or 0)
        back = rollback(beside, rule)
        document = msgspec.structs.replace(
            document,
            champion=_told_of(champion),
            against_baseline=list(evidence(beside, 0.0)),
            rollback=back.reason,
        )
        if challenger is not None:
            found = self._compared(champion, challenger.hash, 0)
            decision = promotion(found, rule)
            document = msgspec.structs.replace(
                document,
                challenger=_told_of(challenger),
                since=self._registry.challenger_since(),
                comparison=list(evidence(found, MARGIN)),
                decision=decision.reason,
            )
            if rule.renew and decision.change:
                return self._promoted(document, champion, challenger, decision, now)
        if rule.renew and back.change:
            return self._rolled_back(document, champion, back, now)
        return document

    def _compared(self, champion: _Bundle, other: str, since: int) -> dict[str, PairedComparison]:
        return {} if other == champion.hash else comparisons(self._verdicts.pairs(champion.hash, other, since))

    def _promoted(
        self, document: TrialDocument, champion: _Bundle, challenger: _Bundle, decision: RenewalDecision, now: int
    ) -> TrialDocument:
        self._change(PROMOTED, challenger, champion, decision, document.comparison, now)
        return msgspec.structs.replace(document, changed="promoted", champion=_told_of(challenger), challenger=None)

    def _rolled_back(
        self, document: TrialDocument, champion: _Bundle, back: RenewalDecision, now: int
    ) -> TrialDocument:
        name = self._registry.previous()
        if name is None:
            if self._worse != champion.hash:
                _NO_PREVIOUS.log(reason=back.reason)
            self._worse = champion.hash
            return document
        before = _Bundle.read(self._registry.models_dir / name)
        assert before is not None  # noqa: S101 narrows the type: there is a directory
        self._change(ROLLED_BACK, before, champion, back, document.against_baseline, now)
        return msgspec.structs.replace(document, changed="rolled back", champion=_told_of(before))

    def _change(  # noqa: PLR0917 what an event of a change tells
        self, kind: str, after: _Bundle, before: _Bundle, decision: RenewalDecision, shown: Sequence[Any], now: int
    ) -> None:
        """Move the link, then report the change."""
        self._store.set_mark(_SINCE + after.hash, now)
        if kind == PROMOTED:
            self._registry.promote(after.name)
        else:
            self._registry.rollback()
        data = ModelInUse(
            cluster=self._cluster(),
            name=after.name,
            model_hash=after.hash,
            created_utc=after.files[0].created_utc,
            before=before.hash,
            by="rule",
            reason=decision.reason,
            evidence=tuple(shown),
            card=card_of(after.files),
        )
        self._events.tell([tell(kind, data, now, subject=f"model/{after.name}", unique=f"{after.hash} {now}")])
        _CHANGED.log(change=kind.removeprefix("model.").replace("_", " "), name=after.name, reason=decision.reason)

    def _tell_trained(self, now: int) -> None:
        """Report new bundles."""
        if self._told is None:
            rows = self._events.told_since((TRAINED,), now - 2 * _NEW_S, _MOST)
            self._told = {str(decode(row["data"])["model_hash"]) for row in rows}
        for entry in self._registry.list():
            manifest = entry.manifest
            if manifest is None or manifest.origin != "site" or entry.hash in self._told:
                continue
            if manifest.created_utc >= now - _NEW_S:
                data = ModelTrained(
                    cluster=self._cluster(),
                    name=entry.name,
                    model_hash=entry.hash,
                    created_utc=manifest.created_utc,
                    rows=manifest.rows,
                    role="champion" if entry.champion else "challenger" if entry.challenger else "none",
                    card=self._card(entry.name),
                )
                self._events.tell([tell(TRAINED, data, now, subject=f"model/{entry.name}", unique=entry.hash)])
            self._told.add(entry.hash)

    def _card(self, name: str) -> dict[str, Any]:
        try:
            return card_of(read_bundle(self._registry.models_dir / name))
        except ModelError:
            return {}

    def _tell_drift(self, champion: _Bundle, now: int) -> None:
        """Report once for each bundle and target that its probabilities are off."""
        if self._drifted is None:
            rows = [decode(row["data"]) for row in self._events.told_since((DRIFT,), 0, _MOST)]
            self._drifted = {(row["model_hash"], row["target"]) for row in rows}
        for target, error, jobs in self._errors(champion):
            if error > ECE_LIMIT and (champion.hash, target) not in self._drifted:
                named = (self._cluster(), champion.name, champion.hash)
                data = ModelDrift(*named, target=target, jobs=jobs, ece=round(error, 4), limit=ECE_LIMIT)
                unique = f"{champion.hash} {target}"
                self._events.tell([tell(DRIFT, data, now, subject=f"model/{champion.name}", unique=unique)])
                self._drifted.add((champion.hash, target))

    def _errors(self, champion: _Bundle) -> list[tuple[str, float, int]]:
        """Return target, calibration error and jobs over the newest outcomes, for targets with enough of them."""
        by_target: dict[str, list[Mapping[str, Any]]] = {}
        for row in self._verdicts.pairs(champion.hash, "", 0):
            by_target.setdefault(row["target"], []).append(row)
        found = []
        for target, rows in by_target.items():
            newest = rows[-RECENT:]
            if len(newest) >= MIN_JOBS:
                p, y = (np.array([float(row[name]) for row in newest]) for name in ("p", "came"))
                found.append((target, ece(p, y), len(newest)))
        return found


def _told_of(bundle: _Bundle) -> TrialModel:
    manifest = bundle.files[0]
    return TrialModel(name=bundle.name, hash=bundle.hash, created_utc=manifest.created_utc, rows=manifest.rows)
