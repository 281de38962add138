"""What `gpuwaste policy check` and `explain` do: read policies, ask the hub for a prediction, decide here."""

import argparse
import re
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gpuwaste.advice.adviser import AdviceRequest, Adviser, Outlook, SubmitAdvice
from gpuwaste.advice.policy.policies_types import ExplainDocument, PolicyDecision
from gpuwaste.advice.policy.policy_loading import load_files, load_policies
from gpuwaste.advice.policy.policy_text import one_line, remarks
from gpuwaste.advice.predict.prediction_types import PredictDocument, PredictFacts
from gpuwaste.cli.asking import PredictQuery, of_job, of_words, predictions_of
from gpuwaste.cli.given_files import checked_files
from gpuwaste.core.advice_config import AdvisorConfig
from gpuwaste.core.codec import convert
from gpuwaste.core.config import Config
from gpuwaste.core.errors import ConfigError, UsageError
from gpuwaste.core.groups import unix_groups
from gpuwaste.show.terminal_cells import one_line as in_one_line

if TYPE_CHECKING:
    from gpuwaste.advice.policy.policy_set import PolicySet

EXIT_BAD: Final = 2
_ID: Final = re.compile(r"\d{1,10}(?:[_+]\d{1,10})?")


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
        convert({"request": request, "file": advice.policy.file, **asdict(advice.decision)}, PolicyDecision, "decision")
        for request, advice in found
    ]


def _advice(adviser: Adviser, prediction: PredictDocument) -> SubmitAdvice:
    """Return the advice on a request as the hub completed it, with what the hub expects of it."""
    request, known = prediction.request, prediction.facts or PredictFacts()
    groups = unix_groups(request.user) if adviser.policies.uses_groups else frozenset[str]()
    outlook = Outlook(tuple(prediction.targets), tuple(prediction.changes), known.own, known.script)
    return adviser.decide(AdviceRequest(request, groups=groups), outlook)


def _error_of(file: Path) -> str:
    try:
        load_files([file])
    except ConfigError as error:
        return str(error)
    return ""
