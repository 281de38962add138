"""The thresholds by which the ledger judges; a change applies to history, since the hub keeps sparse percents."""

import json
from dataclasses import dataclass, fields
from typing import Self

from gpuwaste.core.hub_config import HubConfig
from gpuwaste.core.underuse import UNDER_USE, UnderUse


@dataclass(frozen=True, slots=True)
class LedgerSettings:
    """Thresholds in percent, seconds and ratios; [hub] of gpuwaste.toml explains each."""

    low_below_pct: float = 33.0
    high_above_pct: float = 66.0
    underused_below_pct: float = UNDER_USE.below_pct
    underused_min_s: float = UNDER_USE.min_s
    min_coverage: float = UNDER_USE.min_coverage
    finding_min_s: float = 600.0
    interactive_grace_s: float = 1800.0
    memory_resident_ratio: float = 0.5
    pending_s: float = 1080.0  # 900 s between two shipments, and a fifth of it for the way

    @property
    def under_use(self) -> UnderUse:
        """The rule of under-use."""
        return UnderUse(self.underused_below_pct, self.underused_min_s, self.min_coverage)

    @property
    def run_min_s(self) -> float:
        """Seconds that a run must last before its use as a whole is judged."""
        return self.finding_min_s / 10

    @property
    def hang_min_s(self) -> float:
        """Seconds for which a busy-looking GPU must compute nothing; long collectives are legitimate."""
        return self.finding_min_s * 3

    def to_text(self) -> str:
        """Return the thresholds by which a settled run is judged, as text: what has not come yet is not among them."""
        names = sorted(f.name for f in fields(self) if f.name != "pending_s")
        return json.dumps({name: getattr(self, name) for name in names})

    @classmethod
    def from_text(cls, text: str, pending_s: float) -> Self:
        """Read what `to_text` returned; a threshold that is not in it has its default."""
        known = {f.name for f in fields(cls)}
        return cls(**{name: value for name, value in json.loads(text).items() if name in known}, pending_s=pending_s)

    @classmethod
    def from_config(cls, hub: HubConfig, ship_every_s: float = 900.0) -> Self:
        """Take the thresholds of [hub]; `ship_every_s` is the agents' time between two shipments."""
        names = [f.name for f in fields(cls) if f.name != "pending_s"]
        return cls(**{name: getattr(hub, name) for name in names}, pending_s=ship_every_s * 1.2)
