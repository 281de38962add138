"""Text of `gpuwaste model trial`: the model in use, the one on trial, the baseline, and the decision."""

from typing import Final

from gpuwaste.advice.renewal.trial_types import TrialDocument, TrialModel
from gpuwaste.jobs.events.kinds.model import TargetEvidence
from gpuwaste.show.cells import UNKNOWN, local_time, uncut
from gpuwaste.show.layout import Look, bullet, facts

_HEAD: Final = ["TARGET", "JOBS", "USERS", "AP IN USE", "AP OTHER", "GAIN (95 %)", "BETTER", "BRIER"]


def trial_text(document: TrialDocument, look: Look) -> str:
    """Return the comparison with the challenger, then that with the baseline."""
    lines = look.title("Model on trial")
    lines += facts(
        [
            ("in use", _named(document.champion, look)),
            ("on trial", _named(document.challenger, look)),
            ("trial since", local_time(None if document.since is None else int(document.since), look.zone)),
            ("changes by rule", "on" if document.renew else "off ([models] renew)"),
        ]
    )
    lines += _compared("In use against on trial", document.comparison, look)
    lines += bullet(f"promotion: {uncut(document.decision)}")
    lines += _compared("In use against the baseline", document.against_baseline, look)
    lines += bullet(f"rollback: {uncut(document.rollback)}") if document.rollback else []
    lines += bullet(f"this comparison: {document.changed}") if document.changed else []
    lines += (
        bullet(f"not newer than {local_time(document.generated, look.zone)}: {uncut(document.error)}")
        if (document.error)
        else []
    )
    return "\n".join(lines) + "\n"


def _named(model: TrialModel | None, look: Look) -> str:
    return f"{uncut(model.name)} ({local_time(model.created_utc, look.zone)})" if model else "none"


def _compared(title: str, found: list[TargetEvidence], look: Look) -> list[str]:
    if not found:
        return []
    return [*look.heading(title), *look.table(_HEAD, [_row(one) for one in found], frozenset({0}))]


def _row(one: TargetEvidence) -> list[str]:
    gain = UNKNOWN
    if one.gain is not None and one.low is not None and one.high is not None:
        gain = f"{one.gain:+.3f} ({one.low:+.3f} to {one.high:+.3f})"
    cells = [one.target, str(one.jobs), str(one.users), _number(one.model_ap), _number(one.other_ap), gain]
    return [*cells, f"{one.better:.0%}", f"{_number(one.model_brier)} > {_number(one.other_brier)}"]


def _number(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:.3f}"
