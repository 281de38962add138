"""Texts of `gpuwaste model`: a site's bundles, one of them in full, the champion's status, the trial's decision."""

from collections.abc import Sequence
from typing import Final

from msgspec import UNSET, UnsetType

from gpuwaste.advice.renewal.model_types import ModelDocument, ModelsDocument, ModelStatus, TargetStatus
from gpuwaste.advice.renewal.trial_types import TrialDocument, TrialModel
from gpuwaste.jobs.events.kinds.model import TargetEvidence
from gpuwaste.show.layout import Column, Look
from gpuwaste.show.terminal_cells import UNKNOWN, fit, local_time, percent, uncut

_SHOWN: Final = 10  # number of features whose drift is printed
_HASH: Final = 12
_LEGEND: Final = (
    "AP: average precision, higher is better. GAIN: AP of the other model less AP in use, with its interval.",
    "BETTER: share of the draws in which GAIN exceeds the margin.",
    "BRIER: mean squared error, lower is better.",
)
_MEANING: Final = {"much": "another population", "some": "moved", "": ""}


def list_text(document: ModelsDocument, look: Look) -> str:
    """Return a line for each bundle; * marks the one in use, ? the one on trial."""
    rows = document.models
    lines = look.fitted(
        [
            Column("", ["*" if row.champion else "?" if row.challenger else "" for row in rows], left=True),
            Column("NAME", [uncut(row.name) for row in rows], left=True),
            Column("ORIGIN", [row.origin or UNKNOWN for row in rows], left=True, rank=2),
            Column("MADE", [local_time(row.created_utc or None, look.zone) for row in rows], left=True),
            Column("JOBS", [f"{row.rows:,}" if row.rows is not None else UNKNOWN for row in rows], rank=1),
            Column("HASH", [row.hash[:_HASH] or UNKNOWN for row in rows], left=True, rank=3, whole=True),
        ]
    )
    marks = {"*: in use": any(row.champion for row in rows), "?: on trial": any(row.challenger for row in rows)}
    if look.header and any(marks.values()):
        lines.append(f"  {'; '.join(mark for mark, shown in marks.items() if shown)}")
    for entry in document.models:
        lines += look.bullet(entry.problem) if entry.problem else []
    return _joined(lines)


def show_text(document: ModelDocument, look: Look) -> str:
    """Return one bundle's manifest, a line for each target."""
    manifest = document.manifest
    window = " to ".join(local_time(t or None, look.zone) for t in manifest.window)
    lines = look.title(f"Model {uncut(manifest.name)}")
    lines += look.facts(
        [
            ("Origin", manifest.origin),
            ("Cluster", fit(manifest.cluster or UNKNOWN, 24)),
            ("Made", local_time(manifest.created_utc or None, look.zone)),
            ("Jobs", f"{manifest.rows:,}"),
            ("Features", f"{len(manifest.features)}, version {manifest.feature_version}"),
            ("Hash", document.hash[:_HASH]),
            ("Submitted", window),
            ("Labels", fit(manifest.label_rule, 60)),
            ("Under-use", manifest.under_use.text),
            ("Ends from", fit(manifest.end_rule, 30)),
        ]
    )
    rows = manifest.targets
    points = [" ".join(f"{name} {p:.3f}" for name, p in sorted(model.thresholds.items())) for model in rows]
    lines += look.heading("Targets")
    lines += (
        look.fitted(
            [
                Column("TARGET", [model.target for model in rows], left=True),
                Column("JOBS", [f"{model.rows:,}" for model in rows], rank=2),
                Column("RATE", [percent(model.base_rate) for model in rows], rank=1),
                Column(
                    "QUANTILES", [" ".join(f"{q:g}" for q in model.quantiles) or UNKNOWN for model in rows], left=True
                ),
                Column("THRESHOLDS", [text or UNKNOWN for text in points], left=True, whole=True),
            ]
        )
        if rows
        else ["  none"]
    )
    if look.header and rows:
        lines += look.bullet("RATE: share of these jobs for which the target is true.")
    lines += [line for name, why in sorted(manifest.left_out.items()) for line in look.bullet(f"no {name}: {why}")]
    return _joined([*lines, *(look.bullet(document.note) if document.note else [])])


def status_text(document: ModelStatus, look: Look) -> str:
    """Return the features that drifted most, then each target's calibration or coverage."""
    span = f"{local_time(document.first_utc, look.zone)} to {local_time(document.last_utc, look.zone)}"
    lines = look.title(f"Model {document.name} on {document.jobs:,} jobs submitted after its training data")
    lines += look.facts([("Origin", document.origin), ("Hash", document.hash[:_HASH]), ("Submitted", span)])
    lines += _features(document, look)
    rows = document.targets
    lines += look.heading("Targets: as trained -> as used, recalibrated on newer jobs")
    lines += look.fitted(
        [
            Column("TARGET", [row.target for row in rows], left=True),
            Column("JOBS", [f"{row.jobs:,}" for row in rows], rank=1),
            Column("", ["bad: train again" if row.bad else "" for row in rows], left=True),
            Column("FIGURE", [_figure(row) for row in rows], left=True, whole=True),
        ]
    )
    if document.jobs < document.min_jobs:
        lines += look.bullet(f"Fewer than {document.min_jobs} jobs: drift is not judged.")
    return _joined(lines)


def _features(document: ModelStatus, look: Look) -> list[str]:
    found = document.features
    if not found:
        return look.bullet("The model has no distribution of its features: drift is unknown.")
    moved = [f for f in found if f.level]
    lines = look.heading(f"Features: {len(moved)} of {len(found)} moved (stability index from {document.psi_some})")
    rows = [[f.feature, f"{f.psi:.3f}", f"{f.chance:.3f}", _MEANING[f.level]] for f in (moved or found)[:_SHOWN]]
    return lines + look.table(["FEATURE", "INDEX", "BY CHANCE", ""], rows, frozenset({0, 3}))


def _figure(target: TargetStatus) -> str:
    if target.kind == "probability":
        return f"calibration error {_percent(target.ece_as_is)} -> {_percent(target.ece_rolled)}"
    pairs = (f"{c.quantile:g}: {_percent(c.as_is)} -> {_percent(c.rolled)}" for c in target.coverage or ())
    return "share below " + ", ".join(pairs)


def _percent(value: float | UnsetType | None) -> str:
    return UNKNOWN if value is None or value is UNSET else f"{100 * value:.1f} %"


def _joined(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def trial_text(document: TrialDocument, look: Look) -> str:
    """Return the comparison with the challenger, then that with the baseline."""
    lines = look.title("Model on trial")
    lines += look.facts(
        [
            ("In use", _named(document.champion, look)),
            ("On trial", _named(document.challenger, look)),
            ("Trial since", local_time(None if document.since is None else int(document.since), look.zone)),
            ("Changes by rule", "on" if document.renew else "off ([models] renew)"),
        ]
    )
    lines += _compared("Model in use against the model on trial", document.comparison, look)
    lines += look.bullet(f"promotion: {uncut(document.decision)}")
    lines += _compared("Model in use against the baseline", document.against_baseline, look)
    lines += look.bullet(f"rollback: {uncut(document.rollback)}") if document.rollback else []
    lines += look.bullet(f"this comparison: {document.changed}") if document.changed else []
    if document.error:
        at = local_time(document.generated, look.zone)
        lines += look.bullet(f"these figures are of {at}: the last comparison failed: {uncut(document.error)}")
    if look.header and (document.comparison or document.against_baseline):
        legend = [words for words in _LEGEND if any(words.partition(":")[0] in line for line in lines)]
        lines += [line for words in legend for line in look.bullet(words)]
    return "\n".join(lines) + "\n"


def _named(model: TrialModel | None, look: Look) -> str:
    return f"{uncut(model.name)} ({local_time(model.created_utc, look.zone)})" if model else "none"


def _compared(title: str, found: list[TargetEvidence], look: Look) -> list[str]:
    if not found:
        return []
    return [
        *look.heading(title),
        *look.fitted(
            [
                Column("TARGET", [one.target for one in found], left=True),
                Column("JOBS", [f"{one.jobs:,}" for one in found], rank=5),
                Column("USERS", [f"{one.users:,}" for one in found], rank=6),
                Column("AP IN USE", [_score(one.model_ap) for one in found], rank=2),
                Column("AP OTHER", [_score(one.other_ap) for one in found], rank=3),
                Column("GAIN", [UNKNOWN if one.gain is None else f"{one.gain:+.3f}" for one in found]),
                Column("95 % INTERVAL", [_interval(one) for one in found], rank=1),
                Column("BETTER", [percent(one.better) for one in found]),
                Column("BRIER IN USE", [_score(one.model_brier) for one in found], rank=7),
                Column("BRIER OTHER", [_score(one.other_brier) for one in found], rank=8, whole=True),
            ]
        ),
    ]


def _interval(one: TargetEvidence) -> str:
    return UNKNOWN if one.low is None or one.high is None else f"{one.low:+.3f} to {one.high:+.3f}"


def _score(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:.3f}"
