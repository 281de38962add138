"""What `gpuwaste model train` and `model evaluate` do: the jobs that the options name, progress, the answer."""

import argparse
import json
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from gpuwaste.cli.job_sources import source_of
from gpuwaste.cli.time_options import parse_time
from gpuwaste.cli.words import listed
from gpuwaste.core.clock import SystemClock
from gpuwaste.core.config import Config
from gpuwaste.core.errors import GpuwasteError, NoDataError, UsageError
from gpuwaste.core.owner import as_owner, become_owner
from gpuwaste.core.units import DAY_S

if TYPE_CHECKING:
    from gpuwaste.advice.predict.bundle import Registry
    from gpuwaste.models.bundle_training import Trained

_MIN_TRIAL_DAYS = 6.0  # just under the week of its timer, which may start earlier by its random delay
_LOGS = ".jobs"  # below the registry: bundles begin with a letter or digit


def train_and_tell(options: argparse.Namespace, config: Config) -> int:
    """Train and print the card's short form, or its JSON. Raises GpuwasteError."""
    load_training("gpuwaste.models.bundle_training")
    from gpuwaste.advice.predict.bundle import Registry
    from gpuwaste.advice.renewal.card_types import TrainingSettings
    from gpuwaste.models.bundle_training import train
    from gpuwaste.models.training_progress import TrainingProgress

    progress = TrainingProgress(sys.stderr)
    registry = Registry(options.models_dir or Path(config.common.models_dir))
    if options.challenge and (words := _on_trial(registry)):
        sys.stdout.write(words)
        return 0
    settings = TrainingSettings(
        trials=options.trials,
        seed=options.seed,
        time_budget_s=options.time_budget,
        targets=listed(options.targets),
        since=None if options.starttime is None else parse_time(options.starttime),
        threads=max(1, options.threads),
    )
    with progress.stage("history"):
        source = source_of(options, config)
    become_owner(registry.models_dir)
    trained = train(
        source,
        registry,
        settings,
        created_utc=SystemClock().utc_s(),
        promote=options.promote,
        challenge=options.challenge,
        progress=progress,
    )
    sys.stdout.write(json.dumps(trained.card.to_json(), indent=1) + "\n" if options.json else _text(trained))
    return 0


def train_as_job(options: argparse.Namespace, config: Config) -> int:
    """Submit the training as a job of Slurm, its log below the registry. Raises UsageError, SlurmError."""
    from gpuwaste.cli.as_job import submit_and_tell

    models_dir: Path = (options.models_dir or Path(config.common.models_dir)).resolve()
    become_owner(models_dir)  # the job runs as the user who submits it: never as root
    return submit_and_tell(options, config, "train", models_dir / _LOGS)


def _on_trial(registry: "Registry") -> str:
    """Return why nothing is trained, "" where no model has been on trial for less than _MIN_TRIAL_DAYS."""
    with as_owner(registry.models_dir):
        since, name = registry.challenger_since(), registry.challenger()
    age_s = 0.0 if since is None else SystemClock().utc_us() / 1e6 - since
    if name is None or not 0 <= age_s < _MIN_TRIAL_DAYS * DAY_S:
        return ""
    return (
        f"{name.name} has been on trial for {age_s / DAY_S:.1f} of at least {_MIN_TRIAL_DAYS:g} days: nothing trained\n"
    )


def load_training(module: str, extra: str = "train") -> None:
    """Load a module of training. Raises GpuwasteError where a dependency is not installed."""
    # Read when XGBoost is loaded: threads that spin while they wait make it ten times slower on a busy host.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    try:
        import_module(module)
    except ModuleNotFoundError as error:
        raise GpuwasteError(
            f"train: no module {error.name}: install gpuwaste with its extra [{extra}] on the host that trains"
        ) from error


def _text(trained: "Trained") -> str:
    from tabulate import tabulate

    from gpuwaste.models.card_text import headline

    card = trained.card
    rows = [(name, f"{target.jobs_learnt_from} jobs", *headline(target)) for name, target in card.targets.items()]
    lines = [
        tabulate(rows, headers=("TARGET", "TRAINED ON", "METRIC ON UNSEEN JOBS", "VALUE (95 %)"), tablefmt="plain"),
        *(f"{name}: left out: {why}" for name, why in card.left_out.items()),
        *card.warnings,
        f"card: {trained.directory / 'card.md'}",
    ]
    if trained.promoted:
        lines.append(f"{trained.name} is the model in use now")
    elif trained.on_trial:
        lines.append(f"{trained.name} is on trial: gpuwaste model trial shows its figures so far")
    else:
        lines.append(f"{trained.name} is not in use: read the card, then gpuwaste model promote {trained.name}")
    return "\n".join(lines) + "\n"


def train_waits_and_tell(options: argparse.Namespace, config: Config) -> int:
    """Train and print the figures, or the card's JSON. Raises GpuwasteError."""
    if options.targets or options.time_budget is not None:
        raise UsageError("--waits has neither targets nor a search: leave out --targets and --time-budget")
    load_training("gpuwaste.models.wait_training", "train,sim")
    from gpuwaste.models.training_progress import TrainingProgress
    from gpuwaste.models.wait_training import figures_table, train_waits, waits_registry

    progress = TrainingProgress(sys.stderr)
    with progress.stage("history"):
        source = source_of(options, config)
    models_dir = options.models_dir or Path(config.common.models_dir)
    become_owner(waits_registry(models_dir).models_dir)
    trained = train_waits(
        source,
        models_dir,
        created_utc=SystemClock().utc_s(),
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


def evaluate_and_tell(options: argparse.Namespace, config: Config) -> int:
    """Evaluate and print tables, or JSON with the facts on stderr. Raises GpuwasteError; NoDataError for no figure."""
    # Threads of the learning that wait for one another by spinning are ten times slower on a busy host.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    try:
        from gpuwaste.models.evaluate.evaluation_text import evaluation_json, evaluation_text, notes
        from gpuwaste.models.evaluate.log_evaluation import evaluate
        from gpuwaste.models.training_rows import named_targets, prepare
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
