"""Submit policies: check their files, explain one decision, replay them on the job history."""

import argparse

from gpuwaste.cli.options import add, add_config, add_formats, config_of, emit_own, print_own
from gpuwaste.cli.words import path_word

HELP = "submit policies: check, explain, replay"
EXAMPLES = (
    ("gpuwaste policy check", "Before policies are loaded."),
    ("gpuwaste policy replay -S now-30days", "What they would have done."),
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the actions."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    check = actions.add_parser("check", help="print what each policy does; exit code 2 if a file is wrong")
    check.add_argument(
        "paths", nargs="*", type=path_word, metavar="DIR|FILE", help="policies (default: advisor.policies_dir)"
    )
    add_config(check)
    text = "Explain step by step what would be decided on a job now: the hub predicts, this host's policies decide."
    explain = actions.add_parser("explain", help="explain the decision on a job step by step", description=text)
    explain.add_argument(
        "words", nargs="*", type=str, metavar="JOB|FILE", help="7, 3_1, 4+1, or a batch script as for predict"
    )
    add(explain, "user", "who submits the script, operators only", shown="yours")
    add(explain, "json")
    _add_policies(explain)
    text = "Report what these policies would have done, with what was known when each job was submitted."
    replay = actions.add_parser(
        "replay", help="what these policies would have done on the job history", description=text
    )
    add(replay, "starttime", "jobs submitted since then", default="now-30days", dest="start")
    add(replay, "endtime", default="now", dest="end")
    replay.add_argument(
        "--scripts", choices=("same", "unknown"), default="same",
        help="scripts are not in the job history: take each as unchanged, or as unknown (default: same)",
    )  # fmt: skip
    replay.add_argument("--model", metavar="NAME", help="model of models_dir, or none (default: the one in use)")
    source = replay.add_mutually_exclusive_group()
    add(source, "store", shown="the hub's store, or the hub")
    add(source, "swf")
    add(replay, "clusters", default="", shown="common.cluster")
    _add_policies(replay)
    add_formats(replay, "share of judged rejects that were wrong")


def run(options: argparse.Namespace) -> int:
    """Do it and print the result."""
    from gpuwaste.cli import policy_commands

    config = config_of(options)
    if options.action == "check":
        return policy_commands.check(options.paths, config)
    if options.action == "explain":
        from gpuwaste.advice.policy.policy_text import explain_text

        print_own(policy_commands.explain(options, config), explain_text, as_json=options.json)
        return 0
    from gpuwaste.advice.policy.policy_text import replay_text
    from gpuwaste.cli.policy_commands import replay_policies

    document = replay_policies(options, config)
    wasted = document.false_reject_ratio
    return emit_own(document, options, replay_text, empty=not document.submissions, wasted=wasted)


def _add_policies(parser: argparse.ArgumentParser) -> None:
    add(parser, "policies", shown="advisor.policies_dir")
    add_config(parser)
