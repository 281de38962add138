"""Texts of `gpuwaste model`: a site's bundles, one of them in full, the champion's status, the trial's decision."""

from collections.abc import Sequence
from typing import Final

from msgspec import UNSET, UnsetType

from gpuwaste.advice.renewal.model_types import ModelDocument, ModelsDocument, ModelStatus, TargetStatus
from gpuwaste.advice.renewal.trial_types import TrialDocument, TrialModel
from gpuwaste.core.units import say_percent
from gpuwaste.jobs.events.kinds.model import TargetEvidence
from gpuwaste.show.layout import Look, bullet, facts
from gpuwaste.show.terminal_cells import UNKNOWN, fit, local_time, uncut

_SHOWN: Final = 10  # number of features whose drift is printed
_HASH: Final = 12
_MEANING: Final = {"much": "another population", "some": "moved", "": ""}
_HEAD: Final = ["TARGET", "JOBS", "USERS", "AP IN USE", "AP OTHER", "GAIN (95 %)", "BETTER", "BRIER"]


def list_text(document: ModelsDocument, look: Look) -> str:
    """Return a line for each bundle; * marks the champion, ? the one on trial."""
    rows = [
        [
            "*" if entry.champion else "?" if entry.challenger else "",
            uncut(entry.name),
            entry.origin or "?",
            local_time(entry.created_utc or None, look.zone),
            str(entry.rows if entry.rows is not None else UNKNOWN),
            entry.hash[:_HASH] or UNKNOWN,
        ]
        for entry in document.models
    ]
    lines = look.table(["", "NAME", "ORIGIN", "MADE", "JOBS", "HASH"], rows, frozenset({0, 1, 2, 3, 5}))
    for entry in document.models:
        lines += bullet(entry.problem) if entry.problem else []
    return _joined(lines)


def show_text(document: ModelDocument, look: Look) -> str:
    """Return one bundle's manifest, a line for each target."""
    manifest = document.manifest
    window = " to ".join(local_time(t or None, look.zone) for t in manifest.window)
    lines = look.title(f"Model {uncut(manifest.name)}")
    lines += facts(
        [
            ("origin", manifest.origin),
            ("cluster", fit(manifest.cluster or UNKNOWN, 24)),
            ("made", local_time(manifest.created_utc or None, look.zone)),
            ("jobs", str(manifest.rows)),
            ("features", f"{len(manifest.features)}, version {manifest.feature_version}"),
            ("hash", document.hash[:_HASH]),
            ("submitted", window),
            ("labels", fit(manifest.label_rule, 60)),
            ("under-use", manifest.under_use.text),
            ("ends from", fit(manifest.end_rule, 30)),
        ]
    )
    rows = [
        [
            model.target,
            str(model.rows),
            UNKNOWN if model.base_rate is None else f"{model.base_rate:.3f}",
            " ".join(f"{q:g}" for q in model.quantiles) or UNKNOWN,
            " ".join(f"{name} {p:.3f}" for name, p in sorted(model.thresholds.items())) or UNKNOWN,
        ]
        for model in manifest.targets
    ]
    lines += look.heading("Targets")
    lines += look.table(["TARGET", "JOBS", "RATE", "QUANTILES", "THRESHOLDS"], rows, frozenset({0, 3, 4}))
    lines += [line for name, why in sorted(manifest.left_out.items()) for line in bullet(f"no {name}: {why}")]
    return _joined([*lines, *(bullet(document.note) if document.note else [])])


def status_text(document: ModelStatus, look: Look) -> str:
    """Return the features that drifted most, then each target's calibration or coverage."""
    span = f"{local_time(document.first_utc, look.zone)} to {local_time(document.last_utc, look.zone)}"
    lines = look.title(f"Model {document.name} on {document.jobs} jobs submitted after those it learnt from")
    lines += facts([("origin", document.origin), ("hash", document.hash[:_HASH]), ("submitted", span)])
    lines += _features(document, look)
    lines += look.heading("Targets, as the model came -> as users see it")
    rows = [_row(target) for target in document.targets]
    lines += look.table(["TARGET", "JOBS", "FIGURE", ""], rows, frozenset({0, 2, 3}))
    if document.jobs < document.min_jobs:
        lines += bullet(f"Fewer than {document.min_jobs} jobs: drift is not judged.")
    return _joined(lines)


def _features(document: ModelStatus, look: Look) -> list[str]:
    found = document.features
    if not found:
        return bullet("The model has no distribution of its features: drift is unknown.")
    moved = [f for f in found if f.level]
    lines = look.heading(f"Features: {len(moved)} of {len(found)} moved (stability index from {document.psi_some})")
    rows = [[f.feature, f"{f.psi:.3f}", f"{f.chance:.3f}", _MEANING[f.level]] for f in (moved or found)[:_SHOWN]]
    return lines + look.table(["FEATURE", "INDEX", "BY CHANCE", ""], rows, frozenset({0, 3}))


def _row(target: TargetStatus) -> list[str]:
    if target.kind == "probability":
        figure = f"calibration error {_number(target.ece_as_is)} -> {_number(target.ece_rolled)}"
    else:
        pairs = (f"{c.quantile:g}: {_number(c.as_is)} -> {_number(c.rolled)}" for c in target.coverage or ())
        figure = "share below " + ", ".join(pairs)
    return [target.target, str(target.jobs), figure, "bad: train again" if target.bad else ""]


def _number(value: float | UnsetType | None) -> str:
    return UNKNOWN if value is None or value is UNSET else f"{value:.3f}"


def _joined(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


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
    return [*look.heading(title), *look.table(_HEAD, [_evidence_row(one) for one in found], frozenset({0}))]


def _evidence_row(one: TargetEvidence) -> list[str]:
    gain = UNKNOWN
    if one.gain is not None and one.low is not None and one.high is not None:
        gain = f"{one.gain:+.3f} ({one.low:+.3f} to {one.high:+.3f})"
    cells = [one.target, str(one.jobs), str(one.users), _signed(one.model_ap), _signed(one.other_ap), gain]
    return [*cells, f"{say_percent(one.better)}", f"{_signed(one.model_brier)} > {_signed(one.other_brier)}"]


def _signed(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:.3f}"
