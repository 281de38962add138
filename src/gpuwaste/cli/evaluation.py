"""What `gpuwaste evaluate` does: the jobs that the options name, the evaluation with progress, the answer."""

import argparse
import json
import os
import sys

from gpuwaste.cli.sources import source_of
from gpuwaste.cli.words import listed
from gpuwaste.core.config import Config
from gpuwaste.core.errors import GpuwasteError, NoDataError


def evaluate_and_tell(options: argparse.Namespace, config: Config) -> int:
    """Evaluate and print tables, or JSON with the facts on stderr. Raises GpuwasteError; NoDataError for no figure."""
    # Threads of the learning that wait for one another by spinning are ten times slower on a busy host.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    try:
        from gpuwaste.models.evaluate.evaluation import evaluate
        from gpuwaste.models.evaluate.evaluation_text import evaluation_json, evaluation_text, notes
        from gpuwaste.models.prepare import named_targets, prepare
    except ModuleNotFoundError as error:
        raise GpuwasteError(
            f"evaluate: no module {error.name}: install gpuwaste with its extra [train] on the host that evaluates"
        ) from error
    targets = named_targets(listed(options.targets))
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


def _say(text: str) -> None:
    """Print progress to a terminal, nothing elsewhere."""
    if sys.stderr.isatty():
        sys.stderr.write(f"{text}\n")
