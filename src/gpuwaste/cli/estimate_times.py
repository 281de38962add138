"""Models of step times in use on this host: the time of a program's step on each GPU type, and a bundle's card."""

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from gpuwaste.core.errors import GpuwasteError, ModelError
from gpuwaste.estimate.estimate_types import StepTime
from gpuwaste.estimate.program import Program, op_sums

if TYPE_CHECKING:
    from gpuwaste.estimate.time_bundle import TimeBundle


def step_times(program: Program, gpus: Iterable[str], models_dir: Path, family: str) -> Mapping[str, StepTime]:
    """Return the time, or why there is none, by GPU type.

    A bundle that cannot be read, or numpy that is not installed, is such a reason: memory is estimated without them.
    """
    from gpuwaste.cli.programs import load_program

    wanted = list(gpus)
    try:
        answers = load_program("gpuwaste.estimate.step_time", "predict", "this host")
        bundles = load_program("gpuwaste.estimate.time_bundle", "predict", "this host")
        models, sums = bundles.times_in_use(models_dir), op_sums(program)
        return {
            gpu: answers.step_time(models, sums, gpu, family=family, unknown_trips=program.unknown_trips)
            for gpu in wanted
        }
    except GpuwasteError as error:
        return {gpu: StepTime(gpu=gpu, refused=str(error)) for gpu in wanted}


def show_times(bundle: "TimeBundle", *, as_json: bool) -> int:
    """Print the card of a bundle as text or JSON. Raises ModelError where it has none."""
    import json

    from gpuwaste.core.codec import convert
    from gpuwaste.core.errors import ParseError
    from gpuwaste.estimate.time_card import TimeCard
    from gpuwaste.estimate.time_card_text import card_text
    from gpuwaste.show.machine_formats import to_json

    where = bundle.directory / "card.json"
    try:
        card = convert(json.loads(bundle.card), TimeCard, f"{where}: not a card")
    except (ValueError, RecursionError, ParseError) as error:
        raise ModelError(f"{where}: no card in this bundle: train it again with gpuwaste estimate train") from error
    sys.stdout.write(to_json(card.to_json()) if as_json else card_text(card))
    return 0
