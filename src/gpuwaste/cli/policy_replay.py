"""What `gpuwaste policy replay` does: the history that the options name, the model in use, and the figures."""

import argparse
import sys
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from gpuwaste.advice.policy.policies_types import PolicyInForce, PolicyReplayDocument
from gpuwaste.cli.policies import policies_of
from gpuwaste.cli.programs import load_program
from gpuwaste.cli.sources import known_source
from gpuwaste.cli.time_options import parse_time
from gpuwaste.core.config import Config
from gpuwaste.core.errors import GpuwasteError, UsageError
from gpuwaste.core.groups import unix_groups
from gpuwaste.core.owner import become_owner
from gpuwaste.slurm.site.site_defaults import NO_DEFAULTS, SiteDefaults

if TYPE_CHECKING:
    from gpuwaste.advice.predict.bundle import Bundle

_NO_MODEL: Final = "none"
_SLURM_S: Final = 3.0
_NOTES: Final = (
    "RIGHT: the prediction came true: the job failed, reached its limit, left a GPU idle, needed less.",
    "For an array, at least half of the tasks. OPEN: not known.",
    "SAID: shown at the terminal; the rules that held back the others are listed below.",
    "GPU-H: of the jobs in RIGHT: all GPUs of a job that failed or timed out, otherwise its idle GPUs.",
    "A target's row counts the submissions in which it reached a threshold; one submission can be in several rows.",
    "Users do not react to warnings in the replay, and a rejected job still counts in the job history.",
)


def replay_policies(options: argparse.Namespace, config: Config) -> PolicyReplayDocument:
    """Return the document. Raises GpuwasteError."""
    policies = policies_of(options, config)
    now = datetime.now().astimezone().replace(tzinfo=None)
    start, end = parse_time(options.start, now), parse_time(options.end, now)
    if start >= end:
        raise UsageError(f"-S {options.start} is not before -E {options.end}")
    module = load_program("gpuwaste.models.policy_replay", "predict", "this host")
    source = known_source(options, config)
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
    """Return what the partitions give, as far as Slurm can be asked; a log's are not known."""
    if options.swf is not None:
        return NO_DEFAULTS
    from gpuwaste.slurm.clients.choice import slurm_client

    try:
        slurm = slurm_client(config, min(config.common.slurm_timeout_s, _SLURM_S))
        return SiteDefaults.of(slurm.partitions(), slurm.config())
    except GpuwasteError:
        return NO_DEFAULTS


def replay_progress() -> Any:
    """Return what counts on a terminal's stderr, else nothing."""
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
