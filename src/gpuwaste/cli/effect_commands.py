"""What `gpuwaste effect` does: checks files locally, and prints the hub's answers."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from gpuwaste.act.campaigns.effect_text import effects_text, split_text
from gpuwaste.act.campaigns.effect_types import EffectsDocument, SplitDocument
from gpuwaste.cli.given_files import checked_files
from gpuwaste.cli.hub_access import LONG_PATIENCE_S, ask_hub
from gpuwaste.cli.options import emit, typed
from gpuwaste.cli.time_options import parse_time
from gpuwaste.core.config import Config
from gpuwaste.core.errors import UsageError
from gpuwaste.core.site_config import CommonConfig
from gpuwaste.show.terminal_cells import one_line

EXIT_BAD: Final = 2


def show(options: argparse.Namespace, config: Config) -> int:
    """Print the campaigns. Raises as the hub's client does."""
    query: dict[str, str | int] = {"campaign": options.campaign} if options.campaign else {}
    raw = ask_hub(config, "/v1/effects", query, LONG_PATIENCE_S)
    document = typed(raw, EffectsDocument, printed=options.form is None)
    return emit(raw, document, options, effects_text, empty=False, wasted=None)


def split(options: argparse.Namespace, config: Config) -> int:
    """Print the difference before and after an instant. Raises as `show`, and UsageError."""
    if options.form not in {None, "json"}:
        raise UsageError("--split: prints text and --json only")
    query: dict[str, str | int] = {"at": parse_time(options.split), "weeks": options.weeks}
    raw = ask_hub(config, "/v1/effects/split", query, LONG_PATIENCE_S)
    document = typed(raw, SplitDocument, printed=options.form is None)
    return emit(raw, document, options, split_text, empty=False, wasted=None)


def check(paths: Sequence[Path], config: Config) -> int:
    """Print what each campaign holds back, or every bad file's error; returns the exit code."""
    from gpuwaste.act.campaigns.assignment import HOW_TO_MAKE, NO_KEY
    from gpuwaste.act.campaigns.campaign_file import load_campaign_files

    files = checked_files(paths, Path(config.common.campaigns_dir), CommonConfig().campaigns_dir, "campaigns")
    found = load_campaign_files(files)
    for campaign in found.campaigns:
        head = campaign.head
        how = f"{head.held_back:.0%} held back" if head.held_back else f"notified over {head.rollout_weeks} weeks"
        what = ", ".join(head.what)
        sys.stdout.write(f"{campaign.name}: {what}, {head.start} to {head.end}, by {head.unit}: {how}\n")
    errors = [*map(str, found.errors), *_refused_rules(config, [one for c in found.campaigns for one in c.of("rule")])]
    if found.campaigns and not config.common.campaign_key_file:
        errors.append(f"{NO_KEY}: {HOW_TO_MAKE}")
    for error in errors:
        sys.stderr.write(f"gpuwaste: {one_line(error)}\n")
    if not files:
        sys.stdout.write("no campaigns: everybody is notified\n")
    return EXIT_BAD if errors else 0


def _refused_rules(config: Config, names: Sequence[str]) -> Iterator[str]:
    """Yield why rules of this host's directory cannot be held back."""
    from gpuwaste.act.campaigns.campaign_rules import rule_problem
    from gpuwaste.act.rules.rule_file import load_rules

    if not names or not (directory := Path(config.hub.rules_dir)).is_dir():
        return
    rules = {rule.name: rule for rule in load_rules(directory).rules}
    yield from (problem for name in names if (problem := rule_problem(name, rules.get(name))))
