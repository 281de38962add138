"""GET and POST /v1/predict: who may ask for what, and the thread that keeps the history and the model up to date.

Until the history is read (on a thread of its own, so that nothing else waits) the answer is 503 with Retry-After; on a
host without the extra `predict` it is 501, and everything else of the hub runs.
"""

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final, Self

from msgspec import structs
from prometheus_client import Counter
from prometheus_client.core import GaugeMetricFamily, Metric

from gpuwaste.advice.adviser import AdviceRequest, Adviser
from gpuwaste.advice.hold_out import HoldOut
from gpuwaste.advice.policy.policy_case import policy_preview
from gpuwaste.advice.policy.policy_loading import watched_policies
from gpuwaste.advice.predict.prediction_types import PredictAnswer, PredictDocument, PredictFacts
from gpuwaste.advice.predict.request_json import parse_requests
from gpuwaste.advice.predict.text_facts import script_facts
from gpuwaste.core import log_event
from gpuwaste.core.clock import Clock, CpuBudget, NotReadError, ReadingBudget
from gpuwaste.core.config import Config
from gpuwaste.core.errors import GpuwasteError
from gpuwaste.core.groups import unix_groups
from gpuwaste.core.log_event import BUG
from gpuwaste.core.parts import Part, Parts
from gpuwaste.core.refusal import LATER, NOT_INSTALLED, Refusal, not_found
from gpuwaste.core.repeat_suppressor import RepeatSuppressor
from gpuwaste.core.scope import Scope
from gpuwaste.core.underuse import UnderUse
from gpuwaste.core.worker import Worker
from gpuwaste.jobs.cluster_facts import ClusterFacts
from gpuwaste.jobs.host_ports import HostPorts
from gpuwaste.jobs.importers.accounting_importer import Importer
from gpuwaste.jobs.run_store import runs_named, whole_node_partitions
from gpuwaste.ledger.reports.document_queries import PRINTED_ID
from gpuwaste.net.health_types import PredictionHealth
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.slurm.site.site_defaults import NO_DEFAULTS, SiteDefaults
from gpuwaste.slurm.submit.job_request import JobRequest, request_of, script_hash
from gpuwaste.store.hub.hub_store import HubStore

if TYPE_CHECKING:
    from gpuwaste.advice.live import Live
    from gpuwaste.advice.predict.prediction_types import Scored

EVERY_S: Final = 5.0
RETRY_S: Final = 60.0  # after a failure
READING_S: Final = 0.25  # CPU time for reading the scripts of one request
_AS_OF_NOW: Final = "predicted as if the job were submitted now, from today's job history"
_NOT_READ: Final = "the script was not read, and no policy judges it: reading it takes too much CPU"
_STALE: Final = log_event.warning(
    "predictions-stale: predictions are not up to date: {error}",
    "The hub cannot follow the job history; answers use the last known state. Check the store and its disk.",
)
_NOT_INSTALLED: Final = log_event.info("predictions-not-installed: {missing}")


class Predictions(Part):
    """Answers for requests and for jobs of the store; `worker` keeps them up to date."""

    def __init__(
        self,
        store: HubStore,
        cluster: Callable[[], str],
        *,
        clock: Clock,
        models_dir: Path,
        state_dir: Path,
        policies_dir: Path | None = None,
        every_s: float = EVERY_S,
        reading_s: float = READING_S,
        defaults: Callable[[], SiteDefaults | None] = lambda: None,
        groups_of: Callable[[str], frozenset[str]] = unix_groups,
        hold_out: HoldOut | None = None,
    ) -> None:
        self._store = store
        self._cluster = cluster
        self._clock = clock
        self._given = prediction_counter()
        self._models_dir, self._state_dir = models_dir, state_dir
        self._every_s = every_s
        self._reading_s = reading_s
        self._policies = watched_policies(policies_dir)
        self._defaults, self._groups_of = defaults, groups_of
        self._hold_out = hold_out or HoldOut()
        self._site = NO_DEFAULTS
        self._live: Live | None = None
        self._trouble = RepeatSuppressor()
        self._missing = ""
        self.worker = Worker("predictions", self.step, clock, last=self._save)

    @classmethod
    def part_of(cls, parts: Parts) -> Self:
        """Return the part of a hub."""
        config, importer = parts.get(Config), parts.get(Importer)
        return cls(
            parts.get(HubStore),
            parts.get(ClusterFacts).cluster,
            clock=parts.get(HostPorts).clock,
            models_dir=Path(config.common.models_dir),
            state_dir=Path(config.hub.state_dir),
            policies_dir=Path(config.advisor.policies_dir),
            defaults=lambda: importer.defaults,
            hold_out=parts.get(HoldOut),
        )

    def _save(self) -> None:
        if self._live is not None:
            self._live.save()

    @property
    def under_use(self) -> UnderUse:
        """The under-use rule of the history that `snapshot` returns; before there is one, the store's rule."""
        return self._store.under_use if self._live is None else self._live.under_use

    def health(self) -> PredictionHealth:
        """Return the predictions part of GET /v1/health."""
        live, error = self._live, self._trouble.words
        if self._missing or live is None:
            return PredictionHealth(state="not installed" if self._missing else "starting", error=error)
        champion = live.champion
        manifest = None if champion.bundle is None else champion.bundle.manifest
        return PredictionHealth(
            state="ready",
            model="" if manifest is None else manifest.name,
            model_hash="" if manifest is None else champion.hash,
            note=champion.note,
            created=None if manifest is None else manifest.created_utc,
            event=live.seq,
            error=error or champion.error or self._policies.error,
        )

    def counted(self) -> Iterable[Metric]:
        """Return how many predictions were given."""
        return self._given.collect()

    def metrics(self) -> Iterable[Metric]:
        """Return the metrics of the model in use."""
        return model_families(self.health(), self._clock.utc_us() / 1e6)

    def for_requests(self, scope: Scope, body: bytes) -> PredictAnswer:
        """Return the predictions of the caller's own requests; for operators, of any user's. Raises Refusal."""
        now = self._clock.utc_s()
        requests = parse_requests(body, scope.user, now)
        if not all(r.user and (scope.everything or r.user == scope.user) for r in requests):
            raise not_found()
        return self._answer(scope, [replace(request, submit=max(request.submit, now)) for request in requests])

    def for_job(self, scope: Scope, printed_id: str) -> PredictAnswer:
        """Return the prediction of a job in the store, from what was known at its submission. Raises Refusal."""
        if not PRINTED_ID.fullmatch(printed_id):
            raise not_found()
        accounts = None if scope.everything else ()
        jobs = runs_named(self._store, printed_id, accounts=accounts, reader=scope.user or None)
        if not jobs:
            raise not_found()
        now = self._clock.utc_s()
        asked = [replace(request_of(job), submit=now) for job in _of_one_submission(jobs)]
        return self._answer(scope, asked, _AS_OF_NOW)

    @property
    def ready(self) -> bool:
        """Whether the history is read."""
        return self._live is not None

    def scored(self, requests: Sequence[JobRequest]) -> "tuple[list[Scored], str] | None":
        """Return the predictions for many requests without reasons, and the model's hash; None until it is ready.

        Raises ModelError.
        """
        live = self._live
        if live is None:
            return None
        adviser = Adviser(self._policies.content, site=self._site)
        return live.scored(adviser, [AdviceRequest(request) for request in requests])

    def snapshot(self) -> BinaryIO:
        """Return a file with the state of the history as a tar, positioned at its start. Raises Refusal, StoreError."""
        live = self._ready()
        file = tempfile.TemporaryFile(dir=self._state_dir)  # noqa: SIM115 whoever sends it closes it
        try:
            live.snapshot(file)
        except BaseException:
            file.close()
            raise
        file.seek(0)
        return file

    def _ready(self) -> "Live":
        if self._missing:
            raise Refusal(NOT_INSTALLED, self._missing)
        live = self._live
        if live is None:
            words = self._trouble.words or "the hub is still reading the history of jobs"
            raise Refusal(LATER, f"no prediction yet: {words}: try again in a minute", retry_after=10)
        return live

    def _answer(self, scope: Scope, requests: list[JobRequest], note: str = "") -> PredictAnswer:
        live, budget = self._ready(), CpuBudget(self._reading_s)
        documents = [self._document(live, scope, request, budget, note) for request in requests]
        self._given.inc(len(documents))
        return PredictAnswer(predictions=documents)

    def _document(
        self, live: "Live", scope: Scope, request: JobRequest, budget: ReadingBudget, note: str
    ) -> PredictDocument:
        readable, policies = _readable(request, budget), self._policies.content
        read = request if readable else replace(request, script=None)
        groups = self._groups_of(request.user) if policies.uses_groups else frozenset[str]()
        script = "" if read.script is None else script_hash(read.script)
        asked = AdviceRequest(read, groups=groups, script=script, unread=not readable)
        advice = live.advise(Adviser(policies, site=self._site, hold_out=self._hold_out), asked)
        prediction, outlook = advice.prediction, advice.outlook
        assert prediction is not None  # noqa: S101 narrows the type: everything was asked for
        notes = [said for said in (note, "" if readable else _NOT_READ) if said]
        facts = PredictFacts(
            own={target: list(said) for target, said in outlook.own.items()},
            script=outlook.script,
            whole_node=bool(advice.request.whole_node),
            last_job=outlook.last_job,
        )
        policy = policy_preview(scope, advice.decision)
        return structs.replace(prediction, notes=[*prediction.notes, *notes], facts=facts, policy=policy)

    def step(self) -> float | None:
        """Do what is due; return the seconds to wait, None if prediction is not installed.

        Raises no error of the store or a model.
        """
        try:
            self._policies.refresh()
            self._site = self._defaults() or SiteDefaults(whole=whole_node_partitions(self._store, self._cluster()))
            if self._live is None:
                self._live = self._begin()
            else:
                self._live.step()
        except ModuleNotFoundError as error:
            self._missing = (
                f"prediction is not installed: no module {error.name}:"
                " install gpuwaste with its extra [predict] on the hub's host"
            )
            _NOT_INSTALLED.log(missing=self._missing)
            return None
        except GpuwasteError as error:
            return self._failed(str(error))
        except Exception as error:  # noqa: BLE001 a defect here must not end predictions for good
            BUG.log(error, what="step of predictions")
            return self._failed(f"bug in gpuwaste: {type(error).__name__}: {error}")
        self._trouble.over()
        return self._every_s

    def _begin(self) -> "Live":
        from gpuwaste.advice.live import Live  # noqa: PLC0415 needs the extra `predict`

        return Live(self._store, self._cluster(), self._models_dir, self._state_dir, self._clock)

    def _failed(self, words: str) -> float:
        if self._trouble.news(words):
            _STALE.log(error=words)
        return RETRY_S


def prediction_counter() -> Counter:
    """Return the counter of predictions that were given."""
    return Counter("gpuwaste_hub_predictions", "Requests that got a prediction.", registry=None)


def model_families(health: PredictionHealth, now: float) -> Iterator[Metric]:
    """Yield the model in use at `now` (UTC seconds), its age, and whether it works; unknown values have no series."""
    info = GaugeMetricFamily("gpuwaste_hub_model_info", "The model in use; always 1.", labels=["name", "hash"])
    if health.model_hash:
        info.add_metric([health.model, health.model_hash], 1)
    yield info
    age = GaugeMetricFamily("gpuwaste_hub_model_age_seconds", "Time since the model in use was made.")
    if health.created is not None:
        age.add_metric([], now - health.created)
    yield age
    good = GaugeMetricFamily(
        "gpuwaste_hub_prediction_success", "Whether the champion and the full job history are in use."
    )
    if health.state != "not installed":
        good.add_metric([], not health.error)
    yield good


def _of_one_submission(jobs: Sequence[JobRecord]) -> list[JobRecord]:
    """Return the newest of the runs: a het job's components, or one task of an array, since all request the same."""
    newest = max(jobs, key=lambda job: (job.submit, -(job.array_task_id or 0)))
    if newest.het_job_id is None:
        return [newest]
    parts: Mapping[int | None, JobRecord] = {j.het_offset: j for j in jobs if j.submit == newest.submit}
    return [parts[offset] for offset in sorted(parts, key=lambda o: o or 0)]


def _readable(request: JobRequest, budget: ReadingBudget) -> bool:
    """Return whether a request's script can be read within the budget; the result is cached for the prediction."""
    try:
        script_facts(request.script, budget)
    except NotReadError:
        return False
    return True
