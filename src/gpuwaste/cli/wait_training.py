"""What `gpuwaste train --waits` does: the jobs that the options name, the training of waits, the answer."""

import argparse
import json
import sys
from pathlib import Path

from gpuwaste.cli.sources import source_of
from gpuwaste.cli.time_options import parse_time
from gpuwaste.cli.training import load_training
from gpuwaste.core.clock import SystemClock
from gpuwaste.core.config import Config
from gpuwaste.core.errors import UsageError
from gpuwaste.core.owner import become_owner


def train_waits_and_tell(options: argparse.Namespace, config: Config) -> int:
    """Train and print the figures, or the card's JSON. Raises GpuwasteError."""
    if options.targets or options.time_budget is not None:
        raise UsageError("--waits has neither targets nor a search: leave out --targets and --time-budget")
    load_training("gpuwaste.models.waits.training", "train,sim")
    from gpuwaste.models.progress import TrainingProgress
    from gpuwaste.models.waits.card_text import figures_table
    from gpuwaste.models.waits.training import train_waits, waits_registry

    progress = TrainingProgress(sys.stderr)
    with progress.stage("history"):
        source = source_of(options, config)
    models_dir = options.models_dir or Path(config.common.models_dir)
    become_owner(waits_registry(models_dir).models_dir)
    trained = train_waits(
        source,
        models_dir,
        created_utc=SystemClock().utc_us() // 1_000_000,
        since=None if options.starttime is None else parse_time(options.starttime),
        seed=options.seed,
        threads=max(1, options.threads),
        promote=options.promote,
        progress=progress,
    )
    card = trained.card
    if options.json:
        sys.stdout.write(json.dumps(card.to_json(), indent=1) + "\n")
        return 0
    used = f"{card.name} is the model of waits in use now"
    if not card.promoted:
        used = f"{card.name} is not in use: read the card, then gpuwaste model promote --waits {card.name}"
    sys.stdout.write(f"{figures_table(card)}\ncard: {trained.directory / 'card.md'}\n{used}\n")
    return 0
