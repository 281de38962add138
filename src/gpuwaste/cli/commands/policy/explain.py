"""Explain step by step what would be decided on a job now: the hub predicts, this host's policies decide."""

import argparse

from gpuwaste.cli.options import add, add_config, config_of, print_own

HELP = "the decision on a job, step by step"
EXAMPLES = (
    ("gpuwaste policy explain 4711", "A job in the queue, or one that runs."),
    ("gpuwaste policy explain -u alice train.sh", "A batch script of alice (operators)."),
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "words", nargs="*", type=str, metavar="JOB|FILE", help="7, 3_1, 4+1, or a batch script as for predict"
    )
    add(parser, "user", "who submits the script, operators only", shown="yours")
    add(parser, "json")
    add(parser, "policies", shown="advisor.policies_dir")
    add_config(parser)


def run(options: argparse.Namespace) -> int:
    """Decide, and print each step."""
    from gpuwaste.advice.policy.policy_text import explain_text
    from gpuwaste.cli.policy_commands import explain

    print_own(explain(options, config_of(options)), explain_text, as_json=options.json)
    return 0
