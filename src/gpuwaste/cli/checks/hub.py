"""The hub: connection, protocol version, accounting, model, clock."""

from collections.abc import Iterator
from typing import Final

from msgspec import UNSET

from gpuwaste.cli.check import EVERYWHERE, Check, Role, Status, Surroundings
from gpuwaste.core.errors import GpuwasteError, NoDataError
from gpuwaste.documents.health import AccountingHealth, HealthAnswer, PredictionHealth
from gpuwaste.wire.batch import PROTOCOL_MAX, PROTOCOL_MIN

PLACE: Final = 90
NAME: Final = "hub"
ROLES: Final = EVERYWHERE
MODEL_DAYS: Final = 90
_DAY_S: Final = 86400.0
_SKEW_WARN_S: Final = 5.0
_SKEW_FAIL_S: Final = 120.0  # munge refuses credentials of another five minutes
_LAG_WARN_S: Final = 900.0


def check(around: Surroundings) -> Iterator[Check]:
    """Query the hub's health, and judge each part of its answer."""
    url = around.config.common.hub_url
    before_us = around.clock.utc_us()
    try:
        health = around.hub_health()
    except NoDataError as error:
        yield Check(NAME, Status.FAIL, f"{url}: {error}", "set [common] hub_url to the hub")
        return
    except GpuwasteError as error:
        yield Check(NAME, Status.FAIL, str(error), "start the hub (gpuwaste hub run), or set [common] hub_url")
        return
    yield _protocol(url, health)
    yield from _clock(health, before_us, around.clock.utc_us())
    if around.roles & {Role.HUB, Role.ADVISOR}:
        yield from _accounting(health.accounting)
        yield from _model(health.prediction, around.clock.utc_us() / 1e6)


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


def _model(prediction: PredictionHealth, now_s: float) -> Iterator[Check]:
    if prediction.error:
        yield Check("model", Status.FAIL, prediction.error, "run gpuwaste model list; the hub's log gives the reason")
    elif prediction.state == "not installed":
        yield Check("model", Status.OK, "no predictions: the hub has no extra [predict]")
    elif not prediction.model_hash:
        yield Check("model", Status.OK, "no model loaded; using job history only (gpuwaste train makes a model)")
    else:
        age_s = now_s - (prediction.created or now_s)
        words = f"{prediction.model} {prediction.model_hash[:12]}, {age_s / _DAY_S:.0f} days old"
        figures = {"model_age_s": round(age_s)}
        if prediction.note:
            words = f"{words}: {prediction.note}"
        warn = age_s > MODEL_DAYS * _DAY_S or bool(prediction.note)
        yield Check("model", Status.WARN if warn else Status.OK, words, "gpuwaste train" if warn else "", figures)
