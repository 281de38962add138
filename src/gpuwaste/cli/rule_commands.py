"""What `gpuwaste rules` does: checks files locally, and sends a rule to the hub for everything that needs its store."""

import argparse
import sys
from pathlib import Path
from typing import Any, Final

from gpuwaste.act.rules.rule_text import look_text, replay_text
from gpuwaste.act.rules.rule_types import LookDocument, ReplayDocument
from gpuwaste.cli.given_files import checked_files
from gpuwaste.cli.hub_access import LONG_PATIENCE_S, hub_client
from gpuwaste.cli.options import print_own, typed
from gpuwaste.cli.time_options import window_of
from gpuwaste.core.config import Config
from gpuwaste.core.hub_config import HubConfig
from gpuwaste.core.typed_toml import read_data
from gpuwaste.show.terminal_cells import one_line

EXIT_BAD: Final = 2
_SUFFIX: Final = ".toml"


def check(options: argparse.Namespace, config: Config) -> int:
    """Print what each rule does, or every bad file's error; returns the exit code."""
    from gpuwaste.act.rules.rule_file import load_files
    from gpuwaste.act.rules.rule_rungs import order_notes

    files = checked_files(options.paths, Path(config.hub.rules_dir), HubConfig().rules_dir, "rules")
    found = load_files(files)
    for error in found.errors:
        sys.stderr.write(f"gpuwaste: {one_line(str(error))}\n")
    for rule in found.rules:
        steps = ", ".join(step.words for step in rule.steps)
        head = rule.head
        sys.stdout.write(f"{rule.name}: {head.mode}, about {head.about}, approve {head.approve}: {steps}\n")
        for note in order_notes(rule):
            sys.stdout.write(f"  note: {note}\n")
    if not files:
        sys.stdout.write("no rules: the hub does nothing\n")
    return EXIT_BAD if found.errors else 0


def explain(options: argparse.Namespace, config: Config) -> int:
    """Print the parts of a rule's condition. Raises as the hub's client does, and ConfigError."""
    document = typed(_sent(options, config, "/v1/rules/look"), LookDocument, printed=not options.json)
    print_own(document, look_text, as_json=options.json)
    return 0


def replay(options: argparse.Namespace, config: Config) -> int:
    """Print what a rule would have done in a window. Raises as `explain`, and UsageError."""
    start, end = window_of(options.starttime, options.endtime)
    answer = _sent(options, config, "/v1/rules/replay", start=start, end=end)
    print_own(typed(answer, ReplayDocument, printed=not options.json), replay_text, as_json=options.json)
    return 0


def _sent(options: argparse.Namespace, config: Config, path: str, **more: int) -> dict[str, Any]:
    """Return the hub's answer about a rule, which is checked locally first, so that errors have the file's own name."""
    from gpuwaste.act.rules.rule_file import MAX_FILE_B, load_rule

    given = str(options.rule)
    file = Path(given) if given.endswith(_SUFFIX) else Path(config.hub.rules_dir) / (given + _SUFFIX)
    rule = load_rule(file)
    text = read_data(file, MAX_FILE_B, "a rule").decode("utf-8")
    question = {"name": rule.name, "text": text, "job": getattr(options, "jobs", None) or "", **more}
    return hub_client(config, LONG_PATIENCE_S).post(path, question)
