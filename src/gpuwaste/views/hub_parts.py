"""The parts of this room that run in the hub, in the order in which their threads start."""

from typing import Final

from gpuwaste.views.view_reads import ViewReads

PARTS: Final = (ViewReads,)
