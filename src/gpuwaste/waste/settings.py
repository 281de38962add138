"""The thresholds by which the ledger judges; a change applies to history, since the hub keeps sparse percents."""

from dataclasses import dataclass
from typing import Self

from gpuwaste.core.config import HubConfig


@dataclass(frozen=True, slots=True)
class LedgerSettings:
    """Thresholds in percent, seconds and ratios; [hub] of gpuwaste.toml explains each."""

    low_below_pct: float = 33.0
    high_above_pct: float = 66.0
    underused_below_pct: float = 5.0
    underused_min_s: float = 30.0
    min_coverage: float = 0.8
    interactive_grace_s: float = 1800.0
    memory_resident_ratio: float = 0.5
    pending_s: float = 1080.0  # 900 s between two shipments, and a fifth of it for the way

    @classmethod
    def from_config(cls, hub: HubConfig, ship_every_s: float = 900.0) -> Self:
        """Take the thresholds of [hub]; `ship_every_s` is the agents' time between two shipments."""
        return cls(
            low_below_pct=hub.low_below_pct,
            high_above_pct=hub.high_above_pct,
            underused_below_pct=hub.underused_below_pct,
            underused_min_s=hub.underused_min_s,
            min_coverage=hub.min_coverage,
            interactive_grace_s=hub.interactive_grace_s,
            memory_resident_ratio=hub.memory_resident_ratio,
            pending_s=ship_every_s * 1.2,
        )
