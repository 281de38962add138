"""The parts of this package that run in the hub, in the order in which their threads start."""

from typing import Final

from gpuwaste.act.actions.action_parts import ActionParts
from gpuwaste.act.actions.action_service import ActionService
from gpuwaste.act.appeal_evidence import ActEvidence
from gpuwaste.act.campaigns.assignment import CampaignsInUse
from gpuwaste.act.campaigns.campaign_keeper import CampaignKeeper
from gpuwaste.act.campaigns.effect_reads import EffectReads
from gpuwaste.act.events.event_service import EventReads, EventService
from gpuwaste.act.events.inlet_parts import InletParts
from gpuwaste.act.keeps.keep_service import KeepService
from gpuwaste.act.keeps.kept_runs import Keeps, KeepsOfRuns
from gpuwaste.act.notify.notify_parts import NotifyParts
from gpuwaste.act.rescoring_part import RescoringPart
from gpuwaste.act.rules.rule_reads import RuleReads
from gpuwaste.act.rules.rule_service import RuleService

PARTS: Final = (
    CampaignsInUse,
    CampaignKeeper,
    EventService,
    InletParts,
    Keeps,
    KeepsOfRuns,
    ActionParts,
    RuleService,
    RescoringPart,
    NotifyParts,
    ActionService,
    KeepService,
    ActEvidence,
    EventReads,
    RuleReads,
    EffectReads,
)
