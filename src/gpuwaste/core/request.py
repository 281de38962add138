"""JobRequest: what is known of a job at the moment of its submission, from whatever source."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class JobRequest:
    """One job, array or het component as its user asks for it; None and "" are "not said".

    `submit` is UTC seconds. Amounts are for the whole job: `cpus` processors, `mem_b` bytes over all nodes,
    `gpus` whole GPUs (0 for none). `script` is the batch script's text, None where there is none or it was not kept.
    `whole_node` says whether the job gets its nodes whole (--exclusive, or its partition), None where no source tells.
    """

    user: str
    submit: int
    account: str = ""
    partition: str = ""
    qos: str = ""
    name: str = ""
    time_limit_s: int | None = None
    nodes: int | None = None
    cpus: int | None = None
    mem_b: int | None = None
    gpus: int = 0
    gpu_type: str = ""
    is_array: bool = False
    interactive: bool = False
    script: str | None = None
    comment: str = ""
    whole_node: bool | None = None
