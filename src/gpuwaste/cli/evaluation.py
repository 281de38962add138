"""What `gpuwaste evaluate` does: the jobs that the options name, the evaluation with progress, the answer."""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from gpuwaste.cli.sources import source_of
from gpuwaste.core.config import Config
from gpuwaste.core.errors import GpuwasteError, NoDataError, UsageError

if TYPE_CHECKING:
    from gpuwaste.predict.targets import Target


def evaluate_and_tell(options: argparse.Namespace, config: Config) -> int:
    """Evaluate and print tables, or JSON with the facts on stderr. Raises GpuwasteError; NoDataError for no figure."""
    # Threads of the learning that wait for one another by spinning are ten times slower on a busy host.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    targets = _targets(options.targets or "")
    try:
        from gpuwaste.models.evaluate.evaluation import evaluate
        from gpuwaste.models.evaluate.text import evaluation_json, evaluation_text, notes
        from gpuwaste.models.prepare import prepare
    except ModuleNotFoundError as error:
        raise GpuwasteError(
            f"evaluate: no module {error.name}: install gpuwaste with its extra [train] on the host that evaluates"
        ) from error
    source = source_of(options, config)
    _say(f"{source.text}: features of {len(source.table)} jobs")
    data = prepare(source.table, source.text)
    found = evaluate(
        source.text,
        data.table,
        data.vectors,
        targets=targets,
        seed=options.seed,
        threads=max(1, options.threads),
        trials=options.trials,
        jfp=options.protocol == "jfp",
        progress=_say,
    )
    if not found.results:
        reasons = "; ".join(f"{name}: {why}" for name, why in found.left_out.items())
        raise NoDataError(f"{source.text}: no target can be evaluated: {reasons}")
    if options.json:
        sys.stderr.write(notes(found))
        sys.stdout.write(json.dumps(evaluation_json(found), indent=1, allow_nan=False) + "\n")
    else:
        sys.stdout.write(evaluation_text(found))
    return 0


def _targets(names: str) -> Sequence["Target"]:
    """Return the targets that the option names, all for none. Raises UsageError."""
    from gpuwaste.predict.targets import BY_NAME, TARGETS

    chosen = [name.strip() for name in names.split(",") if name.strip()]
    for name in chosen:
        if name not in BY_NAME:
            raise UsageError(f"--targets {name[:40]!r}: known are {', '.join(BY_NAME)}")
    return [target for target in TARGETS if not chosen or target.name in chosen]


def _say(text: str) -> None:
    """Print progress to a terminal, nothing elsewhere."""
    if sys.stderr.isatty():
        sys.stderr.write(f"{text}\n")
