"""A bundle's card as a document (card.json): its training data, its figures on jobs it had not seen, its limits.

Counts and figures only: no names of users, accounts or jobs.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import xgboost
from msgspec.structs import replace

from gpuwaste.advice.predict.features import FEATURES
from gpuwaste.advice.predict.manifest import Manifest
from gpuwaste.advice.renewal.card_types import (
    CardFeature,
    CardFigures,
    CardSearch,
    CardSplit,
    CardTarget,
    ModelCard,
    Parity,
    TrainingSettings,
)
from gpuwaste.jobs.history.job_table import JobTable
from gpuwaste.models.parameter_search import Found
from gpuwaste.models.target_fit import Fitted
from gpuwaste.models.training_rows import FINAL_SHARE, SHARES

MOST_USED: Final = 10  # features listed for a target
LABEL_RULE: Final = (
    "failure: FAILED and OUT_OF_MEMORY are 1, COMPLETED is 0; TIMEOUT is a target of its own and a walltime that its "
    "limit cut off; walltime, memory and GPUs are at most what the job requested; jobs ended by the system (NODE_FAIL, "
    "BOOT_FAIL, PREEMPTED, REQUEUED, DEADLINE, REVOKED) or cancelled before their start are left out; "
    "failure_or_cancel adds jobs cancelled after their start"
)
_NOT_FOR: Final = (
    "Jobs of another cluster: rates, limits and habits differ. Train there.",
    "Judging people: a probability is of a job, and the worst tenth of users shows how unevenly it holds.",
    "Rejecting jobs below the point called reject, or at all where a target has no such point.",
    "Reasons as causes: a feature's part in a number says what the model looked at, not why a job fails.",
    "Times long after its window: look at gpuwaste model status, and train again when it reports drift.",
)


def card_document(
    manifest: Manifest,
    table: JobTable,
    *,
    source: str,
    settings: TrainingSettings,
    left: Mapping[str, int],
    warnings: list[str],
    targets: Mapping[str, CardTarget],
    parity: Mapping[str, Parity],
) -> ModelCard:
    """Return the card. `left` counts rows that were not learnt from, `targets` are from `card_target`.

    Thresholds are the manifest's: the export may have moved them slightly.
    """
    return ModelCard(
        name=manifest.name,
        cluster=manifest.cluster,
        created_utc=manifest.created_utc,
        source=source,
        jobs=len(table),
        users=len(np.unique(table.user.codes)),
        window_utc=manifest.window,
        left=left,
        end_rule=manifest.end_rule,
        label_rule=manifest.label_rule,
        feature_version=manifest.feature_version,
        features=len(manifest.features),
        settings=settings,
        split=CardSplit(
            train=SHARES[0], validation=SHARES[1], test=SHARES[2], last_calibration=round(1 - FINAL_SHARE, 6)
        ),
        warnings=warnings,
        targets={
            model.target: replace(targets[model.target], thresholds=model.thresholds) for model in manifest.targets
        },
        left_out=manifest.left_out,
        parity=parity,
        not_for=list(_NOT_FOR),
    )


def card_target(honest: Fitted, shipped: Fitted, figures: CardFigures, found: Found) -> CardTarget:
    """Return the card's entry of one target: the figures are those of `honest`, the rest is of the shipped model."""
    target = shipped.target
    return CardTarget(
        text=target.text,
        unit=target.unit,
        kind=target.kind,
        jobs_learnt_from=shipped.model.rows,
        jobs_learnt_from_for_the_figures=honest.model.rows,
        base_rate=shipped.model.base_rate,
        test=figures,
        calibration=shipped.model.calibration,
        shifts=shipped.model.shifts,
        importance=importance(shipped.boosters),
        search=_search(found),
    )


def importance(boosters: Sequence[xgboost.Booster]) -> list[CardFeature]:
    """Return the features with the largest share of the total gain, averaged over the boosters."""
    shares = np.zeros(len(FEATURES))
    for booster in boosters:
        gains = booster.get_score(importance_type="total_gain")
        column = np.zeros(len(FEATURES))
        for name, gain in gains.items():
            column[int(name.removeprefix("f"))] = float(np.mean(gain))
        shares += column / max(column.sum(), 1e-12) / len(boosters)
    order = np.argsort(-shares, kind="stable")[:MOST_USED]
    return [
        CardFeature(feature=FEATURES[i].name, text=_words(FEATURES[i].text), share_of_gain=float(shares[i]))
        for i in order.tolist()
        if shares[i] > 0
    ]


def _words(text: str) -> str:
    """Return a reason's text without its value."""
    return " ".join(text.replace("{value}", "…").split())


def _search(found: Found) -> CardSearch:
    if not found.trials:
        return CardSearch(trials=0, note=found.note)
    return CardSearch(
        trials=len(found.trials),
        folds=len(found.trials[0].scores),
        score_of_defaults=found.trials[0].mean,
        best_score=max(trial.mean for trial in found.trials),
        changed=found.changed,
        params={**found.recipe.params, "rounds": found.recipe.rounds},
    )
