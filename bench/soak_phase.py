"""One phase of the soak: what it cost the hub, as a line of the table and as JSON."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Phase:
    """What one phase cost."""

    name: str
    wall_s: float = 0.0
    cpu_s: float = 0.0
    rows: int = 0
    seconds: list[float] = field(default_factory=list)
    outcomes: Counter[str] = field(default_factory=Counter)
    commits: float = 0.0
    peak_rss_mb: float = 0.0
    store_mb: float = 0.0

    def quantile_ms(self, share: float) -> float:
        """Return the time of an acknowledged exchange that `share` of them do not exceed."""
        ordered = sorted(self.seconds)
        return 1000 * ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0

    def document(self) -> dict[str, Any]:
        """Return the phase for the line of JSON."""
        return {
            "phase": self.name,
            "wall_s": round(self.wall_s, 1),
            "hub_cpu_s": round(self.cpu_s, 1),
            "rows": self.rows,
            "batches": len(self.seconds),
            "commits": int(self.commits),
            "p50_ms": round(self.quantile_ms(0.5), 1),
            "p99_ms": round(self.quantile_ms(0.99), 1),
            "max_ms": round(self.quantile_ms(1.0), 1),
            "not_taken": {k: v for k, v in sorted(self.outcomes.items()) if k != "acknowledged"},
            "hub_peak_rss_mb": round(self.peak_rss_mb),
            "store_mb": round(self.store_mb, 1),
        }


def print_head() -> None:
    """Print the table's head."""
    print(f"{'phase':<44} {'rows':>9} {'batches':>8} {'commits':>8} {'wall s':>7} {'CPU s':>7} {'rows/s':>7}"
          f" {'p50 ms':>7} {'p99 ms':>7} {'max ms':>7} {'RSS MB':>7} {'store MB':>8}  not taken")  # fmt: skip


def print_phase(p: Phase) -> None:
    """Print one line of the table."""
    d = p.document()
    print(f"{p.name:<44} {p.rows:>9} {d['batches']:>8} {d['commits']:>8} {p.wall_s:>7.1f} {p.cpu_s:>7.1f}"
          f" {p.rows / p.wall_s:>7.0f} {d['p50_ms']:>7.0f} {d['p99_ms']:>7.0f} {d['max_ms']:>7.0f}"
          f" {p.peak_rss_mb:>7.0f} {p.store_mb:>8.0f}  {d['not_taken'] or ''}", flush=True)  # fmt: skip
