"""The parts of this room that run in the hub, in the order in which their threads start."""

from typing import Final

from gpuwaste.plan.expectations import Expectations
from gpuwaste.plan.recorded_plans import RecordedPlans

PARTS: Final = (
    Expectations,
    RecordedPlans,
)
