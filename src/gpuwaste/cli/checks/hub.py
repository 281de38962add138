"""The hub: connection at each of its URLs, protocol version, accounting, model, clock."""

import threading
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, replace
from typing import Final

from msgspec import UNSET

from gpuwaste.cli.check import EVERYWHERE, Check, Role, Status, Surroundings
from gpuwaste.core.errors import GpuwasteError, NoDataError
from gpuwaste.core.units import DAY_S
from gpuwaste.net.batch import PROTOCOL_MAX, PROTOCOL_MIN
from gpuwaste.net.health_types import (
    FAR_PCT,
    AccountingHealth,
    HealthAnswer,
    InboxHealth,
    PredictionHealth,
    SourcesHealth,
)

PLACE: Final = 90
NAME: Final = "hub"
ROLES: Final = EVERYWHERE
MODEL_DAYS: Final = 90
_SKEW_WARN_S: Final = 5.0
_SKEW_FAIL_S: Final = 120.0  # munge refuses credentials of another five minutes
_LAG_WARN_S: Final = 900.0
_FAR_SHARE: Final = 0.1
_WAIT_S: Final = 15.0  # less than the deadline of all checks: a host that does not answer must not hide the others


def check(around: Surroundings) -> Iterator[Check]:
    """Query the hub's health at each of its URLs, and check each part of the first answer."""
    from gpuwaste.net.hub_client import StandsByError

    asked = _ask_all(around)
    serving = [one for one in asked if one.health is not None]
    for one in asked:
        if one.health is not None:
            yield _protocol(one.url, one.health)
        elif serving and isinstance(one.error, StandsByError):
            yield Check(NAME, Status.OK, f"{one.url} is a standby")
        elif serving:
            yield Check(NAME, Status.WARN, one.trouble, "start the hub there, or take the URL out of hub_url")
        elif isinstance(one.error, NoDataError):
            yield Check(NAME, Status.FAIL, one.trouble, "set [common] hub_url to the hub")
        else:
            mend = "on the hub's host, as root: systemctl start gpuwaste-hub; or set [common] hub_url"
            yield Check(NAME, Status.FAIL, one.trouble, mend)
    for one in serving[:1]:
        yield from _judge(around, one)


@dataclass(slots=True)
class _AskedUrl:
    """One URL of the hub, and the result of the query."""

    url: str
    health: HealthAnswer | None = None
    error: Exception | None = None
    before_us: int = 0
    after_us: int = 0

    @property
    def trouble(self) -> str:
        """Why there is no answer, with the URL."""
        words = f"no answer within {_WAIT_S:g} s" if self.error is None else str(self.error)
        return words if self.url in words else f"{self.url}: {words}"

    def ask(self, around: Surroundings) -> None:
        """Query this URL only."""
        self.before_us = around.clock.utc_us()
        common = replace(around.config.common, hub_url=self.url)
        try:
            health = replace(around, config=replace(around.config, common=common)).hub_health()
        except Exception as error:  # noqa: BLE001 raised again by the caller, if it is a defect
            self.error = error
            return
        self.after_us = around.clock.utc_us()
        self.health = health


def _ask_all(around: Surroundings) -> list[_AskedUrl]:
    """Query all URLs at once, so that a host that does not answer costs the others no time."""
    from gpuwaste.net.addresses import split_urls

    urls = split_urls(around.config.common.hub_url)
    asked = [_AskedUrl(url) for url in urls] or [_AskedUrl(around.config.common.hub_url)]
    threads = [threading.Thread(target=one.ask, args=(around,), name=f"ask {one.url}", daemon=True) for one in asked]
    for thread in threads:
        thread.start()
    until_us = around.clock.mono_us() + int(_WAIT_S * 1e6)
    for thread in threads:
        thread.join(max(0.0, (until_us - around.clock.mono_us()) / 1e6))
    found = [copy(one) for one in asked]  # later answers are ignored
    for one in found:
        if one.error is not None and not isinstance(one.error, GpuwasteError):
            raise one.error
    return found


def _judge(around: Surroundings, one: _AskedUrl) -> Iterator[Check]:
    """Check the answer of the hub that serves."""
    if one.health is None:
        return
    yield from _clock(one.health, one.before_us, one.after_us)
    yield from _inbox(one.health.inbox)
    if around.roles & {Role.HUB, Role.ADVISOR}:
        yield from _accounting(one.health.accounting)
        yield from _sources(one.health.sources)
        yield from _model(one.health.prediction, around.clock.utc_us() / 1e6)


def _protocol(url: str, health: HealthAnswer) -> Check:
    lowest, highest = health.protocol
    found = f"{url} answers, version {health.version}"
    if lowest > PROTOCOL_MAX:
        return Check(NAME, Status.FAIL, f"{found}: it uses protocol {lowest} and later", "update gpuwaste here")
    if highest < PROTOCOL_MIN:
        return Check(NAME, Status.FAIL, f"{found}: it uses protocol {highest} and earlier", "update the hub")
    return Check(NAME, Status.OK, found)


def _clock(health: HealthAnswer, before_us: int, after_us: int) -> Iterator[Check]:
    """Compare the hub's clock with ours around the question."""
    now = health.now
    if now is UNSET:
        return
    ahead_s = max(now - after_us / 1e6, 0.0) - max(before_us / 1e6 - now, 0.0)
    words = f"the hub's clock is {abs(ahead_s):.1f} s {'ahead of' if ahead_s > 0 else 'behind'} this host's"
    figures = {"clock_skew_s": round(ahead_s, 3)}
    if abs(ahead_s) > _SKEW_FAIL_S:
        yield Check(
            "clock", Status.FAIL, f"{words}: munge credentials are rejected", "check chrony on both hosts", figures
        )
    elif abs(ahead_s) > _SKEW_WARN_S:
        yield Check("clock", Status.WARN, words, "check chrony on both hosts", figures)
    else:
        yield Check("clock", Status.OK, "the hub's clock and this host's agree", figures=figures)


def _inbox(inbox: InboxHealth) -> Iterator[Check]:
    """Check whether the hub that serves merges what other hubs have taken; without other hubs there is no line."""
    if not inbox.batches:
        return
    figures = {"inbox_age_s": round(inbox.age_s or 0)}
    words = f"{inbox.batches} batches of standby hubs wait to be merged, the oldest for {inbox.age_s or 0:.0f} s"
    mend = "read the log of the active hub (inbox-not-merged)" if inbox.late else ""
    yield Check("inbox", Status.FAIL if inbox.late else Status.OK, words, mend, figures)


def _accounting(accounting: AccountingHealth) -> Iterator[Check]:
    lag_s = accounting.lag_s
    figures = {} if lag_s is None else {"accounting_lag_s": round(lag_s)}
    if accounting.error:
        mend = "check slurmdbd; the hub retries by itself"
        yield Check("account", Status.FAIL, f"the hub cannot read accounting: {accounting.error}", mend, figures)
    elif lag_s is not None:
        # No failure without an error: a new hub first reads a month, and is behind until it has.
        status = Status.WARN if lag_s > _LAG_WARN_S else Status.OK
        mend = "" if status is Status.OK else "normal after the first start; otherwise read the hub's log"
        yield Check("account", status, f"the hub's accounting is {lag_s:.0f} s behind", mend, figures)


def _sources(found: SourcesHealth) -> Iterator[Check]:
    """Check agents against jobstats; without runs of both there is no line."""
    if not found.runs:
        return
    typical, far = found.typical_pct or 0.0, found.far_runs / found.runs
    words = (
        f"mean use by agents and by jobstats differs by {typical:.1f} percentage points (median of {found.runs} runs); "
        f"by more than {FAR_PCT:g} in {found.far_runs}"
    )
    off = typical > FAR_PCT / 2 or far > _FAR_SHARE
    mend = "look at some of these jobs with gpuwaste job ID: short runs differ most, jobstats reads every 30 s"
    yield Check(
        "sources",
        Status.WARN if off else Status.OK,
        words,
        mend if off else "",
        {"sources_differ_pct": round(typical, 2)},
    )


def _model(prediction: PredictionHealth, now_s: float) -> Iterator[Check]:
    if prediction.error:
        yield Check("model", Status.FAIL, prediction.error, "run gpuwaste model list; the hub's log gives the reason")
    elif prediction.state == "not installed":
        yield Check("model", Status.OK, "no predictions: the hub has no extra [predict]")
    elif not prediction.model_hash:
        yield Check("model", Status.OK, "no model loaded; using job history only (gpuwaste model train makes a model)")
    else:
        age_s = now_s - (prediction.created or now_s)
        words = f"{prediction.model} {prediction.model_hash[:12]}, {age_s / DAY_S:.0f} days old"
        figures = {"model_age_s": round(age_s)}
        if prediction.note:
            words = f"{words}: {prediction.note}"
        warn = age_s > MODEL_DAYS * DAY_S or bool(prediction.note)
        yield Check("model", Status.WARN if warn else Status.OK, words, "gpuwaste model train" if warn else "", figures)
