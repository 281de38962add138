"""The line to use has the form in which the job asked."""

import pytest
from tests.unit.ledger.builders import job

from gpuwaste.ledger.finding import gpu_request


@pytest.mark.parametrize(
    ("submitted", "line"),
    [
        ("sbatch --gres=gpu:a100:4 train.sh", "#SBATCH --gres=gpu:a100:1"),
        ("sbatch --gres=gpu:4 train.sh", "#SBATCH --gres=gpu:1"),
        ("sbatch --gres gpu:a100:4 train.sh", "#SBATCH --gres=gpu:a100:1"),
        ("sbatch --gres=nic:1,gpu:4 train.sh", "#SBATCH --gres=gpu:1"),
        ("sbatch -G 4 train.sh", "#SBATCH -G 2"),
        ("sbatch -G4 train.sh", "#SBATCH -G 2"),
        ("sbatch --gpus=a100:4 train.sh", "#SBATCH --gpus=a100:2"),
        ("sbatch --gpus-per-node=4 train.sh", "#SBATCH --gpus-per-node=1"),
        ("sbatch -n 4 --gpus-per-task=a100:1 train.sh", "#SBATCH --ntasks=2 --gpus-per-task=a100:1"),
        ("sbatch -p gpu --exclusive train.sh --gres=gpu:h100:8", "#SBATCH --gres=gpu:a100:1"),
        ("sbatch --wrap 'a\"b' --gpus=3", "#SBATCH --gpus=2"),
        ("sbatch 'unclosed", "#SBATCH --gres=gpu:a100:1"),
        ("sbatch --gres=gpu:$(reboot):4 x", "#SBATCH --gres=gpu:a100:1"),
        ("", "#SBATCH --gres=gpu:a100:1"),
    ],
)
def test_the_line_has_the_form_of_the_request(submitted: str, line: str) -> None:
    """Two GPUs, one on each node, are asked for by the option that the user knows."""
    assert gpu_request(job(submit_line=submitted)).line(2, 1) == line


def test_a_strange_gpu_type_is_left_out() -> None:
    """A type that no gres.conf could hold is not copied into a line."""
    assert gpu_request(job(gpu_type="a100; rm -rf /")).line(1, 1) == "#SBATCH --gres=gpu:1"
