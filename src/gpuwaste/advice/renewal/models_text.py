"""Texts of `gpuwaste model`: the bundles of a site, one of them in full, and how the champion fares."""

from collections.abc import Sequence
from typing import Final

from msgspec import UNSET, UnsetType

from gpuwaste.advice.renewal.model_types import ModelDocument, ModelsDocument, ModelStatus, TargetStatus
from gpuwaste.show.cells import UNKNOWN, fit, local_time, uncut
from gpuwaste.show.layout import Look, bullet, facts

_SHOWN: Final = 10  # features whose drift is printed
_HASH: Final = 12
_MEANING: Final = {"much": "another population", "some": "moved", "": ""}


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
    window = " to ".join(local_time(t or None, look.zone) for t in document.window)
    lines = look.title(f"Model {uncut(document.name)}")
    lines += facts(
        [
            ("origin", document.origin),
            ("cluster", fit(document.cluster or UNKNOWN, 24)),
            ("made", local_time(document.created_utc or None, look.zone)),
            ("jobs", str(document.rows)),
            ("features", f"{len(document.features)}, version {document.feature_version}"),
            ("hash", document.hash[:_HASH]),
            ("submitted", window),
            ("labels", fit(document.label_rule, 60)),
            ("under-use", document.under_use.text),
            ("ends from", fit(document.end_rule, 30)),
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
        for model in document.targets
    ]
    lines += look.heading("Targets")
    lines += look.table(["TARGET", "JOBS", "RATE", "QUANTILES", "THRESHOLDS"], rows, frozenset({0, 3, 4}))
    lines += [line for name, why in sorted(document.left_out.items()) for line in bullet(f"no {name}: {why}")]
    return _joined([*lines, *(bullet(document.note) if document.note else [])])


def status_text(document: ModelStatus, look: Look) -> str:
    """Return the features that moved most, then each target's calibration or coverage."""
    span = f"{local_time(document.first_utc, look.zone)} to {local_time(document.last_utc, look.zone)}"
    lines = look.title(f"Model {document.name} on {document.jobs} jobs submitted after those it learnt from")
    lines += facts([("origin", document.origin), ("hash", document.hash[:_HASH]), ("submitted", span)])
    lines += _features(document, look)
    lines += look.heading("Targets, as the model came -> as users see it")
    rows = [_row(target) for target in document.targets]
    lines += look.table(["TARGET", "JOBS", "FIGURE", ""], rows, frozenset({0, 2, 3}))
    if document.jobs < document.min_jobs:
        lines += bullet(f"Fewer than {document.min_jobs} jobs: nothing is called drift.")
    return _joined(lines)


def _features(document: ModelStatus, look: Look) -> list[str]:
    found = document.features
    if not found:
        return bullet("The model holds no distribution of its features: drift cannot be told.")
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
