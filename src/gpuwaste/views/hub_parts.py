"""What of this room runs in the hub, in the order in which its threads start."""

from typing import Final

from gpuwaste.views.view_reads import ViewReads

PARTS: Final = (ViewReads,)
