"""EffectReads: what campaigns have shown, for operators; and the difference before and after an instant.

A worker computes the figures when a week is complete, and tells each week's answer as an event.
"""

import threading
from collections.abc import Callable, Sequence
from typing import Final, Self

from msgspec.structs import replace

from gpuwaste.act.campaigns.campaign_definition import Campaign
from gpuwaste.act.campaigns.campaign_keeper import NEWS_S, CampaignKeeper
from gpuwaste.act.campaigns.campaign_store import KeptCampaign, RecordRow
from gpuwaste.act.campaigns.effect_document import counted_until, frame_of, with_reach
from gpuwaste.act.campaigns.effect_types import CampaignEffect, EffectsDocument, SplitDocument, SplitSide
from gpuwaste.act.campaigns.effect_words import SPLIT_WARNING, with_sentence
from gpuwaste.act.campaigns.unit_weeks import UnitWeeks, WeekOutcome, by_unit
from gpuwaste.core import log_event
from gpuwaste.core.clock import Clock
from gpuwaste.core.config import Config
from gpuwaste.core.errors import GpuwasteError
from gpuwaste.core.parts import Part, Parts
from gpuwaste.core.refusal import BAD, FORBIDDEN, LATER, NOT_FOUND, Refusal
from gpuwaste.core.scope import Scope
from gpuwaste.core.site_config import EnergyConfig
from gpuwaste.core.units import HOUR_S, WEEK_S
from gpuwaste.core.worker import Bus, Worker
from gpuwaste.jobs.cluster_facts import ClusterFacts
from gpuwaste.jobs.events.envelope import tell
from gpuwaste.jobs.events.kinds.campaign import CampaignMeasured
from gpuwaste.jobs.host_ports import HostPorts
from gpuwaste.ledger.judging import Judging
from gpuwaste.ledger.ledger import LedgerSettings
from gpuwaste.store.hub.hub_store import HubStore

MEASURED: Final = "measured"
_EVERY_S: Final = 900.0
_MOST_WEEKS: Final = 52
_NO_KEY: Final = "the key of this campaign is not in use: who was notified is unknown"
_NOT_INSTALLED: Final = (
    "no figures: no module {} on the hub's host: install gpuwaste-runtime-onnx, or gpuwaste with its extra [predict]"
)
_NOT_MEASURED: Final = log_event.warning(
    "campaigns-not-measured: cannot compute the effect of campaigns: {error}",
    "The store or its disk has an error. Campaigns go on; the hub tries again in 15 minutes.",
)


class EffectReads(Part):
    """For any thread; raises Refusal and StoreError."""

    def __init__(
        self,
        keeper: CampaignKeeper,
        weeks: UnitWeeks,
        clock: Clock,
        cluster: Callable[[], str],
        prices: EnergyConfig,
    ) -> None:
        self._keeper = keeper
        self._weeks = weeks
        self._clock = clock
        self._cluster = cluster
        self._prices = prices
        self._kept: dict[str, tuple[tuple[object, ...], CampaignEffect]] = {}
        self._lock = threading.Lock()
        self.worker = Worker("effects", self._turn, clock)

    @classmethod
    def part_of(cls, parts: Parts) -> Self:
        """Return the part of a hub."""
        clock, cluster = parts.get(HostPorts).clock, parts.get(ClusterFacts).known
        standing = [parts.get(Judging).standing]
        parts.get(Bus).subscribe(LedgerSettings, lambda settings: standing.__setitem__(0, settings))
        weeks = UnitWeeks(parts.get(HubStore), cluster, clock, lambda: standing[0])
        return cls(parts.get(CampaignKeeper), weeks, clock, cluster, parts.get(Config).energy)

    def effects(self, scope: Scope, name: str | None = None) -> EffectsDocument:
        """Return the campaigns and what they have shown, the newest first; for operators."""
        self._check(scope)
        wanted = [one for one in self._keeper.campaigns() if name in {None, one[0].name}]
        found = [self._effect(campaign, kept) for campaign, kept in wanted]
        if name is not None and not found:
            raise Refusal(NOT_FOUND, f"no campaign {name!r:.80}: gpuwaste effect lists them")
        ordered = sorted(found, key=lambda one: (-one.start, one.name))
        return EffectsDocument(generated=self._clock.utc_s(), campaigns=ordered, errors=self._keeper.in_use.errors)

    def _check(self, scope: Scope) -> None:
        if not scope.everything:
            raise Refusal(FORBIDDEN, "only operators may see campaigns")
        if not self._cluster():
            raise Refusal(LATER, "the cluster's name is not known yet: try again later")

    def sentences(self) -> list[str]:
        """Return the sentence of each campaign that runs, or ended in the last week, for the mail to staff."""
        now = self._clock.utc_s()
        found = [self._effect(*one) for one in self._keeper.campaigns() if self._cluster()]
        return [f"{one.name}: {one.sentence}" for one in found if one.start <= now < one.end + WEEK_S]

    def split(self, scope: Scope, at: int, weeks: int) -> SplitDocument:
        """Return the outcomes of some weeks before and after an instant; for operators."""
        self._check(scope)
        now = self._clock.utc_s()
        if not 1 <= weeks <= _MOST_WEEKS or not 0 < at < now:
            raise Refusal(BAD, f"at: expected an instant of the past, with 1 to {_MOST_WEEKS} weeks")
        length = min(weeks * WEEK_S, now - at)
        before, after = (self._side(start, start + length) for start in (at - length, at))
        return SplitDocument(generated=now, warning=SPLIT_WARNING, before=before, after=after)

    def _side(self, start: int, end: int) -> SplitSide:
        total = WeekOutcome()
        edges = [*range(start, end, WEEK_S), end]
        for week in self._weeks.weeks(edges):
            for outcome in week.values():
                total.add(outcome)
        return SplitSide(
            start=start, end=end, held_gpu_h=total.held_h, idle_gpu_h=total.idle_h, unknown_gpu_h=total.unknown_h,
            jobs=total.jobs, failed=total.failed, timed_out=total.timed_out,
        )  # fmt: skip

    def _effect(self, campaign: Campaign, kept: KeptCampaign) -> CampaignEffect:
        with self._lock:
            record = self._keeper.store.record(campaign.name)
            return self._measured(campaign, kept, record)

    def _measured(self, campaign: Campaign, kept: KeptCampaign, record: Sequence[RecordRow]) -> CampaignEffect:
        now = self._clock.utc_s()
        until = counted_until(campaign, kept, record, now)
        complete = sum(edge <= until for edge in campaign.edges[1:])
        edges = campaign.edges[: complete + 1]
        read = [*self._weeks.weeks(campaign.before), *self._weeks.weeks(edges)]
        key = (campaign.hash, kept.key_print, kept.gone_utc, now // HOUR_S, len(record), *map(id, read))
        before = self._kept.get(campaign.name)
        if before is not None and before[0] == key:
            return before[1]
        weeks = [by_unit(campaign, week) for week in read]
        assignment = self._keeper.in_use.assignment
        base = frame_of(campaign, kept, complete, record, now)
        if assignment is None or assignment.fingerprint != kept.key_print:
            return with_sentence(replace(base, problems=[_NO_KEY]))
        try:
            from gpuwaste.act.campaigns.campaign_figures import with_figures  # noqa: PLC0415 needs the extra `predict`
        except ModuleNotFoundError as error:
            return with_sentence(replace(base, problems=[_NOT_INSTALLED.format(error.name)]))
        figures = with_figures(base, campaign, assignment, weeks, self._prices)
        reach = self._keeper.store.reach(campaign.name, campaign.head.what, campaign.start, min(now, campaign.end))
        found = with_sentence(with_reach(figures, campaign, self._keeper.in_use, reach, record))
        self._kept[campaign.name] = (key, found)
        return found

    def _turn(self) -> float:
        try:
            self.step()
        except GpuwasteError as error:
            _NOT_MEASURED.log(error=error)
        return _EVERY_S

    def step(self) -> None:
        """Measure each campaign, and tell those with another complete week. Raises StoreError."""
        for campaign, kept in self._keeper.campaigns() if self._cluster() else ():
            effect = self._effect(campaign, kept)
            said = _of_week(effect)
            new = self._clock.utc_s() < effect.end + NEWS_S
            if effect.complete and new and not any(line.words.startswith(said) for line in effect.record):
                self._tell(effect, kept)

    def _tell(self, effect: CampaignEffect, kept: KeptCampaign) -> None:
        now, saved = self._clock.utc_s(), effect.saved_gpu_h
        data = CampaignMeasured(
            self._cluster(), effect.name, effect.complete, effect.weeks, saved.value, saved.low, saved.high,
            effect.notified, effect.held_back, effect.sentence, now,
        )  # fmt: skip
        event = tell("campaign.measured", data, now, subject=f"campaign/{effect.name}", unique=str(effect.complete))
        line = RecordRow(effect.name, now, MEASURED, kept.hash, _of_week(effect) + effect.sentence)
        self._keeper.store.save((), [line], [event], now)


def _of_week(effect: CampaignEffect) -> str:
    """Return how the line of the record on the last complete week begins."""
    return f"week {effect.complete} of {effect.weeks}: "
