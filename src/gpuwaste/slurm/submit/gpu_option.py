"""The option by which a job asks for GPUs, and the same option with another number."""

import re
from dataclasses import dataclass
from typing import Final

GPU_OPTIONS: Final = ("--gres", "--gpus-per-node", "--gpus-per-task", "--gpus-per-socket", "--gpus", "-G")
_EACH: Final = re.compile(r"(?:.*[:=])?([1-9][0-9]{0,4})", re.ASCII)


def tasks_of(ntasks: str | None, per_task: str | None, gpus: int) -> int | None:
    """Return the tasks of a job with so many GPUs, by the values of --ntasks or of --gpus-per-task; None: not known."""
    if ntasks is not None and ntasks.isascii() and ntasks.isdecimal() and len(ntasks) <= 5 and int(ntasks):  # noqa: PLR2004 digits
        return int(ntasks)
    each = _EACH.fullmatch(per_task or "")
    return gpus // int(each[1]) or None if each else None


@dataclass(frozen=True, slots=True)
class GpuRequest:
    """The option that asked for GPUs, its type ("" for any), and the tasks among which --gpus-per-task divides them.

    `tasks` None: one for each GPU.
    """

    option: str
    gpu_type: str
    tasks: int | None = None
    on_command_line: bool = False

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
            tasks = self.tasks if self.tasks and whole % self.tasks == 0 else whole
            return f"#SBATCH --ntasks={tasks} --gpus-per-task={kind}{whole // max(1, tasks)}"
        return f"#SBATCH --gpus-per-node={kind}{on_a_node}"  # also for --gpus-per-socket: sockets are not known here

    def none(self) -> str:
        """Return the #SBATCH line that asks for no GPU."""
        return "#SBATCH --gpus=0" if self.option in {"-G", "--gpus"} else "#SBATCH --gres=none"
