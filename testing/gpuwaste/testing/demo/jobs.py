"""What the demo's three users run: one job for each finding, its near miss beside it, and what must be said of each."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final


@dataclass(frozen=True, slots=True)
class DemoJob:
    """One submission.

    `finding` is the kind that must be named, "" for none, and `near` the one that it nearly is; `load` is the load
    program's arguments, `devices` the number of GPUs of the whole submission (all tasks of an array).
    """

    name: str
    user: str
    load: str
    finding: str = ""
    near: str = ""
    devices: int = 1
    gpus: int = 1
    options: Mapping[str, str | int | bool] = field(default_factory=dict)
    interactive: bool = False


FIRST: Final = (
    DemoJob("train-ddp", "alice", "--per-gpu '0=70:92:20000' --for 70", "one_gpu_of_many", devices=4, gpus=4),
    DemoJob("preprocess", "bob", "--gpus none --for 74", "gpus_untouched"),
    DemoJob("solver", "carol", "--phase 70:96:30000", devices=2, gpus=2),
    DemoJob("finetune", "bob", "--phase 12:90 --phase 78:0", "idle_tail"),
)

SECOND: Final = (
    DemoJob("loader", "alice", "--phase 45:22 --cpu 1.9", "cpu_starved", options={"c": 1}),
    DemoJob("notebook-model", "alice", "--phase 62:0:30000", "memory_resident"),
    DemoJob("cpu-build", "alice", "--phase 64:0:4000", "gpus_opened_idle"),
    DemoJob("allreduce", "bob", "--phase 62:100:20000:62:0.0", "busy_hang"),
    DemoJob("sweep", "carol", "--phase 64:3:2000", "many_small_jobs", devices=3, options={"array": "0-2"}),
    DemoJob("shell", "carol", "--phase 5:40 --phase 66:0", "idle_interactive", interactive=True),
)

# Near misses: too short, too cool, too few, too busy or too evenly spread to be named.
NEAR: Final = (
    DemoJob("near-tail", "bob", "--phase 30:85 --phase 10:0", near="idle_tail"),
    DemoJob("near-touch", "alice", "--phase 5:60:4000 --phase 30:0", near="idle_tail"),
    DemoJob("near-sweep", "bob", "--phase 35:3:2000", devices=2, options={"array": "0-1"}),
    DemoJob("near-shell", "carol", "--phase 30:50 --phase 5:0", near="idle_interactive", interactive=True),
    DemoJob("near-hang", "bob", "--phase 35:100:20000:340:0.9"),
    DemoJob("near-pair", "alice", "--per-gpu '0=35:90;1=35:30'", devices=2, gpus=2),
    DemoJob("near-starved", "alice", "--phase 35:22 --cpu 0.2", near="cpu_starved", options={"c": 1}),
)
