"""What `gpuwaste policy` does: checks files, explains one decision, and replays policies on the job history."""

import argparse
import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from gpuwaste.advice.adviser import AdviceRequest, Adviser, Outlook, SubmitAdvice
from gpuwaste.advice.policy.policies_types import ExplainDocument, PolicyDecision, PolicyInForce, PolicyReplayDocument
from gpuwaste.advice.policy.policy_loading import load_files, load_policies
from gpuwaste.advice.policy.policy_text import one_line, remarks
from gpuwaste.advice.predict.prediction_types import PredictDocument, PredictFacts
from gpuwaste.cli.asking import PredictQuery, of_job, of_words, predictions_of
from gpuwaste.cli.given_files import checked_files
from gpuwaste.cli.job_sources import source_of
from gpuwaste.cli.programs import load_program
from gpuwaste.cli.time_options import parse_time
from gpuwaste.core.advice_config import AdvisorConfig
from gpuwaste.core.config import Config
from gpuwaste.core.errors import ConfigError, GpuwasteError, UsageError
from gpuwaste.core.groups import unix_groups
from gpuwaste.core.owner import become_owner
from gpuwaste.show.terminal_cells import one_line as in_one_line
from gpuwaste.slurm.site.site_defaults import NO_DEFAULTS, SiteDefaults

if TYPE_CHECKING:
    from gpuwaste.advice.policy.policy_set import PolicySet
    from gpuwaste.advice.predict.bundle import Bundle

EXIT_BAD: Final = 2
_ID: Final = re.compile(r"\d{1,10}(?:[_+]\d{1,10})?")
_NO_MODEL: Final = "none"
_SLURM_S: Final = 3.0
_NOTES: Final = (
    "RIGHT: the prediction came true: the job failed, reached its limit, left a GPU idle or needed less.",
    "An array counts as RIGHT if the prediction came true for at least half of its tasks. OPEN: not known.",
    "JOBS is RIGHT, WRONG and OPEN together. PRECISION: share of RIGHT in RIGHT and WRONG.",
    "SHOWN: printed at the terminal; the rules that held back the others are listed below.",
    "GPU time is that of the jobs in RIGHT: all GPUs of a job that failed or timed out, otherwise its idle GPUs.",
    "A target's row counts the submissions in which it reached a threshold; one submission can be in several rows.",
    "Users do not react to warnings in the replay, and a rejected job still counts in the job history.",
)


def policies_of(options: argparse.Namespace, config: Config) -> "PolicySet":
    """Return the policies of --policies, or of [advisor] policies_dir. Raises ConfigError, UsageError."""
    directory = options.policies or Path(config.advisor.policies_dir)
    if options.policies is not None and not directory.is_dir():
        raise UsageError(f"--policies {directory}: no such directory")
    return load_policies(directory)


def check(paths: Sequence[Path], config: Config) -> int:
    """Print what each policy does, or every bad file's error; returns the exit code."""
    files = checked_files(paths, Path(config.advisor.policies_dir), AdvisorConfig().policies_dir, "policies")
    errors = [error for file in files if (error := _error_of(file))]
    for error in errors:
        sys.stderr.write(f"gpuwaste: {in_one_line(error)}\n")
    if errors:
        return EXIT_BAD
    policies = load_files(files)
    for policy in policies.policies:
        sys.stdout.write(f"{Path(policy.file).name if policy.file else '(built in)'}: {one_line(policy)}\n")
    for remark in remarks(policies):
        sys.stdout.write(f"note: {remark}\n")
    return 0


def explain(options: argparse.Namespace, config: Config) -> ExplainDocument:
    """Return the decisions on each request, step by step, as a document."""
    policies = policies_of(options, config)
    asked = _asked(options, config)
    decisions = decided(policies, predictions_of(config, asked))
    notes = [*asked.notes, "assumed: no rejects or overrides of today, no random sample"]
    where = options.policies or config.advisor.policies_dir
    if len(policies.policies) == 1:
        notes.append(f"{where}: no policies on this host: the built-in policy is used")
    return ExplainDocument(decisions=decisions, notes=notes)


def _asked(options: argparse.Namespace, config: Config) -> PredictQuery:
    words = options.words
    if not words:
        raise UsageError("policy explain: no argument: give a job id or a batch script")
    if len(words) == 1 and _ID.fullmatch(words[0]) and not Path(words[0]).exists():
        return of_job(config, words[0], here=False)
    asked = of_words(config, words, as_json=False)
    if options.user:
        asked = replace(asked, requests=tuple(replace(request, user=options.user) for request in asked.requests))
    return asked


def decided(policies: "PolicySet", predictions: Sequence[PredictDocument]) -> list[PolicyDecision]:
    """Return what policies decide on the hub's predictions."""
    found = [(prediction.request, _advice(Adviser(policies), prediction)) for prediction in predictions]
    return [
        PolicyDecision(request=request, file=advice.policy.file, outcome=advice.decision) for request, advice in found
    ]


def _advice(adviser: Adviser, prediction: PredictDocument) -> SubmitAdvice:
    """Return the advice on a request as the hub completed it, with the hub's predictions."""
    request, known = prediction.request, prediction.facts or PredictFacts()
    groups = unix_groups(request.user) if adviser.policies.uses_groups else frozenset[str]()
    outlook = Outlook(tuple(prediction.targets), tuple(prediction.changes), known.own, known.script, known.last_job)
    return adviser.decide(AdviceRequest(request, groups=groups), outlook)


def _error_of(file: Path) -> str:
    try:
        load_files([file])
    except ConfigError as error:
        return str(error)
    return ""


def replay_policies(options: argparse.Namespace, config: Config) -> PolicyReplayDocument:
    """Return the document. Raises GpuwasteError."""
    policies = policies_of(options, config)
    now = datetime.now().astimezone().replace(tzinfo=None)
    start, end = parse_time(options.start, now), parse_time(options.end, now)
    if start >= end:
        raise UsageError(f"-S {options.start} is not before -E {options.end}")
    module = load_program("gpuwaste.models.policy_backtest", "predict", "this host")
    source = source_of(options, config)
    question = module.ReplayPeriod(start, end, options.scripts, site_of(options, config), cache(unix_groups))
    bundle = bundle_of(options, config)
    found = module.replay_policies(source.table, policies, question, bundle, replay_progress())
    notes = [*_NOTES, _about_scripts(options.scripts)]
    if not found["submissions"]:
        first, last = (datetime.fromtimestamp(int(source.table.submit[place])).astimezone() for place in (0, -1))
        notes.insert(0, f"The history has submissions from {first:%Y-%m-%d} to {last:%Y-%m-%d} only: see -S and -E.")
    return PolicyReplayDocument(
        source=source.text,
        cluster=source.cluster,
        start=start,
        end=end,
        policies=[PolicyInForce(name=p.name, mode=p.mode, file=p.file) for p in policies.policies],
        policies_hash=policies.hash,
        model="" if bundle is None else bundle.manifest.name,
        **found,
        false_reject_ratio=module.false_reject_ratio(found["rows"]),
        notes=notes,
    )


def bundle_of(options: argparse.Namespace, config: Config) -> "Bundle | None":
    """Return the bundle that --model names, or the one in use; none where there is none."""
    if options.model == _NO_MODEL:
        return None
    models_dir = Path(config.common.models_dir)
    become_owner(models_dir)
    registry = load_program("gpuwaste.advice.predict.bundle", "predict", "this host").Registry(models_dir)
    found: Bundle | None = registry.load(options.model) if options.model else registry.load_champion()
    return found


def site_of(options: argparse.Namespace, config: Config) -> SiteDefaults:
    """Return the facts about the partitions, as far as Slurm answers; those of a log are unknown."""
    if options.swf is not None:
        return NO_DEFAULTS
    from gpuwaste.slurm.clients.client_choice import slurm_client

    try:
        slurm = slurm_client(config, min(config.common.slurm_timeout_s, _SLURM_S))
        return SiteDefaults.of(slurm.partitions(), slurm.config())
    except GpuwasteError:
        return NO_DEFAULTS


def replay_progress() -> Any:
    """Return a function that counts on a terminal's stderr, and prints nothing elsewhere."""
    done = 0

    def tell(count: int) -> None:
        nonlocal done
        done += count
        if sys.stderr.isatty():
            sys.stderr.write(f"\r{done} submissions")

    return tell


def _about_scripts(scripts: str) -> str:
    if scripts == "same":
        return "The job history has no scripts: each counts as unchanged (--scripts=unknown for the opposite)."
    return "The job history has no scripts: they count as unknown, with warnings for failures but no rejects."
