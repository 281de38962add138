"""The site's policies for advice at sbatch: check files, explain one decision, replay them on the job history."""

import argparse
from pathlib import Path

from gpuwaste.cli.options import add_config, add_formats, as_text, config_of, emit

HELP = "policies of advice at sbatch: check, explain, replay"
EXAMPLES = (
    ("gpuwaste policy check", "Before a policy is put in force."),
    ("gpuwaste policy replay -S now-30days", "What it would have done."),
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the actions."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    check = actions.add_parser("check", help="what each policy does; exit code 2 where one is bad")
    check.add_argument("paths", nargs="*", type=Path, metavar="DIR|FILE", help="instead of advisor.policies_dir")
    add_config(check)
    text = "step by step what would be decided on a job now; the hub predicts, this host's policies decide"
    explain = actions.add_parser("explain", help="step by step what would be decided on a job now", description=text)
    explain.add_argument(
        "words", nargs="*", type=str, metavar="JOB|FILE", help="7, 3_1, 4+1, or a batch script as predict reads"
    )
    explain.add_argument("--user", metavar="NAME", help="as if this user submitted the script (operators)")
    explain.add_argument("--json", action="store_true", help="the whole document as JSON")
    _add_policies(explain)
    text = "what these policies would have done, each job judged by what was known when it was submitted"
    replay = actions.add_parser("replay", help="what these policies would have done on history", description=text)
    replay.add_argument("-S", "--start", metavar="TIME", default="now-30days", help="first submission (30 days ago)")
    replay.add_argument("-E", "--end", metavar="TIME", default="now", help="submissions before this time (now)")
    replay.add_argument(
        "--scripts", choices=("same", "unknown"), default="same",
        help="the history has none: take each as the same as before (default), or as unknown: failures only warn then",
    )  # fmt: skip
    replay.add_argument("--model", metavar="NAME", help="a bundle of models_dir, or none (default: the one in use)")
    whence = replay.add_mutually_exclusive_group()
    whence.add_argument(
        "--store", type=Path, metavar="FILE", help="a store of jobs (default: the hub's own, or the hub itself)"
    )
    whence.add_argument("--swf", type=Path, metavar="FILE", help="a log in Standard Workload Format")
    replay.add_argument("--cluster", default="", metavar="NAME", help="of the jobs (default: the configuration's)")
    _add_policies(replay)
    add_formats(replay, "more than PCT %% of the judged rejects were wrong")


def run(options: argparse.Namespace) -> int:
    """Do it and print what came out."""
    from gpuwaste.cli import policies

    config = config_of(options)
    if options.action == "check":
        return policies.check(options.paths, config)
    if options.action == "explain":
        import sys

        from gpuwaste.report.machine import to_json
        from gpuwaste.report.policy_text import explain_text

        document = policies.explain(options, config)
        sys.stdout.write(to_json(document) if options.json else as_text(document, explain_text))
        return 0
    from gpuwaste.cli.policy_replay import replay_policies
    from gpuwaste.report.policy_text import replay_text

    document = replay_policies(options, config)
    return emit(
        document, options, replay_text, empty=not document["submissions"], wasted=document["false_reject_ratio"]
    )


def _add_policies(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--policies", type=Path, metavar="DIR", help="instead of advisor.policies_dir")
    add_config(parser)
