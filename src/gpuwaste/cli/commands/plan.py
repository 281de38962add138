"""Plan a job before it is submitted: when it would start and end under several requests, and which of them is best.

Words after FILE are arguments of the script. Words after -- are read as sbatch reads them:
gpuwaste plan -- --time=10 job.sbatch
Nothing is submitted unless --submit asks for it.
"""

import argparse

from gpuwaste.cli.options import add, add_config, config_of
from gpuwaste.cli.words import path_word, size_word

HELP = "when a job would start under several requests, and which is best"
EXAMPLES = (
    ("gpuwaste plan job.sbatch", "When this job would start, and with which request sooner."),
    ("gpuwaste plan --goal cheapest -o job.plan job.sbatch", "Keep the plan in a file."),
    ("gpuwaste plan --submit job.plan", "Submit the request that the plan chose."),
    ("gpuwaste plan --watch 4711", "Print when the expected start of a job moves, and why."),
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("words", nargs="*", type=str, metavar="FILE", help="batch script")
    parser.add_argument(
        "--goal",
        choices=("fastest", "cheapest", "safest"),
        default="fastest",
        help="what to choose by: the end, the cost (billing, GPU-hours), or the risk to fail (default: fastest)",
    )
    parser.add_argument(
        "--deadline", metavar="TIME", help="deadline by which the job must end: a time as in sacct, or now+8hours"
    )
    parser.add_argument("--take", type=size_word, metavar="N", help="choose candidate N yourself")
    parser.add_argument("-o", "--output", type=path_word, metavar="PLAN", help="write the plan to this file")
    parser.add_argument("--submit", type=path_word, metavar="PLAN", help="submit what this plan file chose")
    parser.add_argument("--watch", metavar="JOB", help="follow a pending job until it starts")
    parser.add_argument(
        "--model", type=path_word, metavar="DIR", help="use this model on this host instead of the hub's"
    )
    add(parser, "json")
    add_config(parser)


def run(options: argparse.Namespace) -> int:
    """Plan, submit a plan, or watch a job."""
    from gpuwaste.cli import planning
    from gpuwaste.core.errors import UsageError

    if sum((bool(options.words), options.submit is not None, options.watch is not None)) != 1:
        raise UsageError("plan: give a batch script, --submit PLAN or --watch JOB")
    config = config_of(options)
    if options.watch is not None:
        from gpuwaste.cli.planning import watch

        return watch(config, options)
    if options.submit is not None:
        return planning.submit_plan(config, options)
    return planning.make_plan(config, options)
