"""Renewal: the thread that compares models periodically, and its last result, for readers and metrics."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from msgspec.structs import replace
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from gpuwaste.advice.renewal.trial_types import TrialDocument, checked_models, every_s
from gpuwaste.core import log_event
from gpuwaste.core.advice_config import ModelsConfig
from gpuwaste.core.clock import Clock
from gpuwaste.core.config import Config
from gpuwaste.core.errors import GpuwasteError
from gpuwaste.core.log_event import BUG
from gpuwaste.core.parts import Part, Parts, Reloads
from gpuwaste.core.refusal import FORBIDDEN, LATER, NOT_INSTALLED, Refusal
from gpuwaste.core.repeat_suppressor import RepeatSuppressor
from gpuwaste.core.scope import Scope
from gpuwaste.core.worker import Worker
from gpuwaste.jobs.cluster_facts import ClusterFacts
from gpuwaste.jobs.host_ports import HostPorts
from gpuwaste.store.hub.hub_store import HubStore

if TYPE_CHECKING:
    from gpuwaste.advice.renewal.renewer import Renewer

FIRST_S: Final = 60.0  # after the start of the hub
RETRY_S: Final = 300.0
_MISSING: Final = "models are not compared: the hub's host lacks the extra [predict]"
_NOT_COMPARED: Final = log_event.warning(
    "models-not-compared: cannot compare models: {error}",
    "Check `[common] models_dir`, which the hub must be able to write to where `[models] renew` is on, and the store.",
)

_RENEWAL: Final = tuple(f"models.{field.name}" for field in fields(ModelsConfig) if field.name != "min_trial_days")


class Renewal(Part):
    """`worker` runs it; any thread may call `trial` and `metrics`. `settings` may be replaced while it runs."""

    late = True

    def __init__(
        self, store: HubStore, clock: Clock, cluster: Callable[[], str], models_dir: Path, settings: ModelsConfig
    ) -> None:
        self.settings = settings
        self.latest: TrialDocument | None = None
        self._parts = (store, clock, cluster, models_dir)
        self._cluster = cluster
        self._renewer: Renewer | None = None
        self._missing = ""
        self._trouble = RepeatSuppressor()
        self._changes: Counter[str] = Counter()
        self.worker = Worker("renewal", self._turn, clock)

    @classmethod
    def part_of(cls, parts: Parts) -> Self:
        """Return the part of a hub."""
        config, clock = parts.get(Config), parts.get(HostPorts).clock
        models_dir, settings = Path(config.common.models_dir), checked_models(config.models)
        return cls(parts.get(HubStore), clock, parts.get(ClusterFacts).known, models_dir, settings)

    @property
    def reloads(self) -> Reloads:
        """The settings that a reload replaces: when one model replaces another."""
        return {_RENEWAL: lambda c: setattr(self, "settings", checked_models(c.models))}

    def step(self) -> TrialDocument | None:
        """Compare once; None before the cluster is known. Raises GpuwasteError, ModuleNotFoundError."""
        if not self._cluster():
            return None
        if self._renewer is None:
            from gpuwaste.advice.renewal.renewer import Renewer  # noqa: PLC0415 needs the extra `predict`

            self._renewer = Renewer(*self._parts)
        found = self._renewer.step(self.settings)
        if found.changed:
            self._changes[found.changed] += 1
        self.latest = found
        return found

    def trial(self, scope: Scope) -> TrialDocument:
        """Return the last comparison, for operators. Raises Refusal."""
        if not scope.everything:
            raise Refusal(FORBIDDEN, "only operators may see models on trial")
        if self._missing:
            raise Refusal(NOT_INSTALLED, self._missing)
        if self.latest is None:
            words = self._trouble.words or "the hub has just been started"
            raise Refusal(LATER, f"no comparison of models yet: {words}: try again in a minute", retry_after=30)
        return replace(self.latest, error=self._trouble.words)

    def metrics(self) -> Iterator[Metric]:
        """Yield the metrics of the trial."""
        jobs = GaugeMetricFamily(
            "gpuwaste_hub_trial_jobs",
            "Jobs with an outcome that model in use and model on trial scored.",
            labels=["target"],
        )
        gain = GaugeMetricFamily(
            "gpuwaste_hub_trial_gain", "Average precision of the model on trial minus that of the one in use.",
            labels=["target"],
        )  # fmt: skip
        for one in self.latest.comparison if self.latest else ():
            jobs.add_metric([one.target], one.jobs)
            if one.gain is not None:
                gain.add_metric([one.target], one.gain)
        changes = CounterMetricFamily("gpuwaste_hub_model_changes", "Changes of the model by rule.", labels=["change"])
        for change in ("promoted", "rolled back"):
            changes.add_metric([change], self._changes[change])
        yield from (jobs, gain, changes)

    def _turn(self) -> float | None:
        try:
            found = self.step()
        except ModuleNotFoundError:
            self._missing = _MISSING
            return None
        except GpuwasteError as error:
            return self._failed(str(error))
        except Exception as error:  # noqa: BLE001 a defect here must not end the thread
            BUG.log(error, what="comparison of models")
            return self._failed(f"bug in gpuwaste: {type(error).__name__}: {error}")
        self._trouble.over()
        return every_s(self.settings) if found is not None else FIRST_S

    def _failed(self, words: str) -> float:
        if self._trouble.news(words):
            _NOT_COMPARED.log(error=words)
        return min(RETRY_S, every_s(self.settings))
