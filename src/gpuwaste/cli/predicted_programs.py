"""Predictions of jobs that are tied to a program: the estimate of the program beside that of the job history."""

from collections.abc import Sequence

from msgspec import structs

from gpuwaste.advice.predict.prediction_types import PredictDocument
from gpuwaste.cli.asking import PredictQuery
from gpuwaste.cli.own_program import own_program, refusals
from gpuwaste.core.config import Config
from gpuwaste.plan.program_part import WALLTIME, history_of, with_run_time


def with_programs(
    config: Config, asked: PredictQuery, predictions: Sequence[PredictDocument]
) -> tuple[list[PredictDocument], list[str]]:
    """Return the predictions with what is expected of their program, and notes. Only the first request is looked at.

    The components of a het job are different programs, and one comment cannot say of which it speaks.
    """
    found = list(predictions)
    if len(asked.requests) != 1 or len(found) != 1:
        return found, []
    (request,) = asked.requests
    own, notes = own_program(config, request.script or "", request.comment, asked.folder)
    if own is None:
        return found, notes
    history = next((one for one in found[0].targets if one.target == WALLTIME), None)
    estimate = own.estimate(request, history_of(history))
    targets = list(with_run_time(tuple(found[0].targets), estimate))
    return [structs.replace(found[0], targets=targets, program=estimate)], [*notes, *refusals([estimate])]
