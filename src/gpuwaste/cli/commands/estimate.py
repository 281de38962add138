"""Estimate a program before it is submitted: GPU memory, on which GPU types it fits, how long a step takes there.

FILE is HLO text, StableHLO, ONNX, or the JSON that a probe writes. It is read, never run. Several files are compared.
"""

import argparse

from gpuwaste.cli import estimate_actions
from gpuwaste.cli.action_files import add_actions_or_file, run_action
from gpuwaste.cli.options import add, add_config
from gpuwaste.cli.words import size_word

HELP = "GPU memory and time that a program needs, by GPU type"
EXAMPLES = (
    ("gpuwaste estimate step.hlo", "Memory of a JAX program, and where it fits."),
    ("gpuwaste estimate program.json --gpu h100,a100-40gb", "What a probe wrote, on two GPU types."),
    ("gpuwaste estimate step.hlo --gpu h100 --steps 10000", "How long the run takes, where a site has measured h100."),
    ("gpuwaste estimate program.json --batch 8,16,32 --gpus 1,2 --goal cheapest", "Which request is cheapest."),
    ("gpuwaste estimate step.hlo --gpu h100 --gpus 1,2,4,8 --goal fastest", "Copies of a program on several GPUs."),
    ("gpuwaste estimate small.hlo large.hlo --goal smallest --mig", "The smallest GPU or MIG size for two programs."),
    ("gpuwaste estimate probe torch", "A script that writes a torch program: keep it as probe.py."),
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--gpu", metavar="TYPES", help="GPU types, separated by commas (default: all known)")
    parser.add_argument("--steps", type=size_word, metavar="N", help="steps that the run will take")
    parser.add_argument(
        "--family", default="", metavar="NAME", help="family of the program, such as transformer: narrows its interval"
    )
    parser.add_argument("--batch", metavar="SIZES", help="batch sizes to compare, of those that the probe wrote")
    parser.add_argument("--gpus", metavar="NUMBERS", help="numbers of GPUs to compare, such as 1,2,4,8")
    parser.add_argument(
        "--pipeline",
        type=size_word,
        metavar="N",
        help="several GPUs as a pipeline that divides the batch into N micro batches (default: a copy on each GPU)",
    )
    parser.add_argument(
        "--goal",
        choices=("cheapest", "fastest", "smallest"),
        help="choose by cost or GPU-hours, by run time, or by GPU memory, which needs no times (default: cheapest)",
    )
    parser.add_argument(
        "--samples", type=size_word, metavar="N", help="samples of the run; steps are samples / batch size"
    )
    parser.add_argument("--mig", action="store_true", help="compare MIG instances as well, by memory")
    parser.add_argument(
        "--price", metavar="PRICES", help="price of a GPU-hour, such as h100=2.5,l4=0.4 (default: estimate.prices)"
    )
    add(parser, "models-dir", shown="common.models_dir")
    add(parser, "json")
    add_config(parser)
    add_actions_or_file(parser, estimate_actions)


def run(options: argparse.Namespace) -> int:
    """Estimate the program, or run the action that was named."""
    code = run_action(options)
    if code is not None:
        return code
    from gpuwaste.cli.programs import load_program

    load_program("gpuwaste.estimate.reading", "estimate", "this host")
    from gpuwaste.cli.estimating import estimate_and_tell

    return estimate_and_tell(options)
