"""What the demo's three users run: one job for each finding, its near miss beside it, and what must be said of each."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final


@dataclass(frozen=True, slots=True)
class DemoJob:
    """One submission.

    `finding` is the kind that must be named, "" for none; `load` is the load program's arguments, `devices` the number
    of GPUs of the whole submission (all tasks of an array).
    """

    name: str
    user: str
    load: str
    finding: str = ""
    devices: int = 1
    gpus: int = 1
    options: Mapping[str, str | int | bool] = field(default_factory=dict)
    interactive: bool = False


FIRST: Final = (
    DemoJob("train-ddp", "alice", "--per-gpu '0=70:92:20000' --for 70", "one_gpu_of_many", devices=4, gpus=4),
    DemoJob("preprocess", "bob", "--gpus none --for 74", "gpus_untouched"),
    DemoJob("solver", "carol", "--phase 70:96:30000", devices=2, gpus=2),
    DemoJob("finetune", "bob", "--phase 12:90 --phase 70:0", "idle_tail"),
)

SECOND: Final = (
    DemoJob("loader", "alice", "--phase 45:22 --cpu 1.9", "cpu_starved", options={"c": 1}),
    DemoJob("notebook-model", "alice", "--phase 62:0:30000", "memory_resident"),
    DemoJob("allreduce", "bob", "--phase 62:100:20000:62:0.0", "busy_hang"),
    DemoJob("sweep", "carol", "--phase 64:3:2000", "many_small_jobs", devices=3, options={"array": "0-2"}),
    DemoJob("shell", "carol", "--phase 5:40 --phase 66:0", "idle_interactive", interactive=True),
    # Near misses: a tail, a hang and a starved loader that are too short, too cool or too busy to be named.
    DemoJob("near-tail", "bob", "--phase 40:85 --phase 12:0"),
)

NEAR: Final = (
    DemoJob("near-hang", "bob", "--phase 35:100:20000:340:0.9"),
    DemoJob("near-pair", "alice", "--per-gpu '0=35:90;1=35:30'", devices=2, gpus=2),
    DemoJob("near-starved", "alice", "--phase 35:22 --cpu 0.2", options={"c": 1}),
)
