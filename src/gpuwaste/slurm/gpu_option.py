"""The option by which a job asks for GPUs, and the same option with another number."""

from dataclasses import dataclass
from typing import Final

GPU_OPTIONS: Final = ("--gres", "--gpus-per-node", "--gpus-per-task", "--gpus-per-socket", "--gpus", "-G")


@dataclass(frozen=True, slots=True)
class GpuRequest:
    """The option that asked for GPUs, its type ("" for any), and whether its number is for the whole job."""

    option: str
    gpu_type: str

    def line(self, whole: int, on_a_node: int) -> str:
        """Return the #SBATCH line that asks for `whole` GPUs, `on_a_node` of them on each node."""
        kind = f"{self.gpu_type}:" if self.gpu_type else ""
        if self.option == "--gres":
            return f"#SBATCH --gres=gpu:{kind}{on_a_node}"
        if self.option == "-G":
            return f"#SBATCH -G {kind}{whole}"
        if self.option == "--gpus":
            return f"#SBATCH --gpus={kind}{whole}"
        if self.option == "--gpus-per-task":
            return f"#SBATCH --ntasks={whole} --gpus-per-task={kind}1"
        return f"#SBATCH {self.option}={kind}{on_a_node}"

    def none(self) -> str:
        """Return the #SBATCH line that asks for no GPU."""
        return "#SBATCH --gpus=0" if self.option in {"-G", "--gpus"} else "#SBATCH --gres=none"
