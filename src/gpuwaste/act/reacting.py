"""The hub's parts that react to what happens: inlets, events, what is said again of running jobs, rules, actions."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from gpuwaste.act.actions.hub.parts import ActionParts
from gpuwaste.act.events.event_service import EventService, SourceViews
from gpuwaste.act.events.inlet_parts import InletParts
from gpuwaste.act.notify.limit_notices import LimitNotices
from gpuwaste.act.rules.moments import ModelMoment
from gpuwaste.act.rules.rule_service import RuleService
from gpuwaste.advice.predict.predictions import Predictions
from gpuwaste.advice.rescoring.rescore_settings import RescoreSettings
from gpuwaste.advice.rescoring.rescore_store import RescoreStore
from gpuwaste.advice.rescoring.rescorer import Rescorer
from gpuwaste.core.clock import Clock
from gpuwaste.core.config import Config
from gpuwaste.net.health import PredictionHealth
from gpuwaste.sim.kept_simulations import DIRECTORY as SIMULATIONS
from gpuwaste.store.hub.hub_store import HubStore


class Reacting(NamedTuple):
    """They share the store and its stream of events."""

    inlets: InletParts
    events: EventService
    rescorer: Rescorer
    actions: ActionParts
    rules: RuleService


def reacting(  # noqa: PLR0917 the hub's parts that they need
    config: Config,
    store: HubStore,
    clock: Clock,
    cluster: Callable[[], str],
    views: SourceViews,
    predictions: Predictions,
    limits: LimitNotices,
) -> Reacting:
    """Wire the parts. Raises ConfigError."""
    hub = config.hub
    inlets = InletParts(store, clock, cluster, Path(hub.inlets_dir))
    events = EventService(
        store,
        clock,
        cluster,
        outlets=Path(hub.outlets_dir),
        site=inlets.kinds,
        views=views,
        simulations=Path(hub.state_dir) / SIMULATIONS,
    )
    rescorer = Rescorer(
        RescoreStore(store, clock),
        predictions,
        cluster,
        clock,
        settings=RescoreSettings.from_config(config),
        notices=limits,
        tells=lambda: bool(events.senders),
    )
    actions = ActionParts(store, clock, config)
    rules = RuleService(
        store,
        clock,
        cluster,
        views.now,
        actions.manager,
        Path(hub.rules_dir),
        hub.rules_every_s,
        xids=[int(number) for number in config.agent.health_xids if number.isdecimal()],
        model=lambda: _in_use(views.prediction()),
    )
    return Reacting(inlets, events, rescorer, actions, rules)


def _in_use(found: PredictionHealth) -> ModelMoment:
    return ModelMoment(found.model, found.model_hash, found.created)
