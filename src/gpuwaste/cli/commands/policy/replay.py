"""Report what these policies would have done, with what was known when each job was submitted."""

import argparse

from gpuwaste.cli.job_sources import add_sources
from gpuwaste.cli.options import add, add_config, add_formats, config_of, emit_own

HELP = "what these policies would have done on the job history"
EXAMPLES = (
    ("gpuwaste policy replay -S now-30days", "The policies of this host on the last month."),
    ("gpuwaste policy replay --policies ./policies.d --from log.swf.gz", "Other policies on a public log."),
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add(parser, "starttime", "jobs submitted since then", default="now-30days", dest="start")
    add(parser, "endtime", default="now", dest="end")
    parser.add_argument(
        "--scripts",
        choices=("same", "unknown"),
        default="same",
        help="the job history has no scripts: treat each as unchanged (same) or as unknown (default: same)",
    )
    parser.add_argument("--model", metavar="NAME", help="model of models_dir, or none (default: the one in use)")
    add_sources(parser)
    add(parser, "policies", shown="advisor.policies_dir")
    add_config(parser)
    add_formats(parser, "share of judged rejects that were wrong")


def run(options: argparse.Namespace) -> int:
    """Replay and print."""
    from gpuwaste.advice.policy.policy_text import replay_text
    from gpuwaste.cli.policy_commands import replay_policies

    document = replay_policies(options, config_of(options))
    wasted = document.false_reject_ratio
    return emit_own(document, options, replay_text, empty=not document.submissions, wasted=wasted)
