"""JobRequest: what is known of a job at the moment of its submission, from whatever source."""

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

_Text = Annotated[str, Meta(max_length=4096)]
_Amount = Annotated[int, Meta(ge=0, le=1 << 62)]


@dataclass(slots=True)
class JobRequest:
    """One job, array or het component as its user asks for it; None and "" are "not said"."""

    user: Annotated[_Text, Meta(description="Whose history counts: the caller's; an operator may name anybody.")]
    submit: Annotated[_Amount, Meta(description="UTC seconds; left out: now.")]
    account: _Text = ""
    partition: _Text = ""
    qos: _Text = ""
    name: _Text = ""
    time_limit_s: Annotated[_Amount | None, Meta(description="The time limit, seconds.")] = None
    nodes: _Amount | None = None
    cpus: Annotated[_Amount | None, Meta(description="Processors of the whole job.")] = None
    mem_b: Annotated[_Amount | None, Meta(description="Bytes over all nodes.")] = None
    gpus: Annotated[_Amount, Meta(description="Whole GPUs of the whole job, 0 for none.")] = 0
    gpu_type: _Text = ""
    is_array: bool = False
    interactive: bool = False
    script: Annotated[
        Annotated[str, Meta(max_length=4 * 1024**2)] | None,
        Meta(description="The batch script's text; null where there is none or it was not kept."),
    ] = None
    comment: Annotated[_Text, Meta(description="--comment, which can contain an override of a policy.")] = ""
    whole_node: Annotated[
        bool | None,
        Meta(description="Whether it gets whole nodes (--exclusive, or its partition); null: unknown"),
    ] = None
