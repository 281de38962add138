"""JobRequest: the data of a job at its submission, from any source, and its amounts as TRES."""

from dataclasses import dataclass
from typing import Annotated, Any, Final

from msgspec import Meta

from gpuwaste.core.errors import ParseError
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.slurm.accounting.tres_amounts import count_of_tres, gpu_count, memory_b, parse_tres

_Text = Annotated[str, Meta(max_length=4096)]
_Amount = Annotated[int, Meta(ge=0, le=1 << 62)]
_BASIS: Final = 0xCBF29CE484222325
_PRIME: Final = 0x100000001B3
_MASK: Final = (1 << 64) - 1
_SAME: Final = ("user", "submit", "account", "partition", "qos", "name", "time_limit_s")


@dataclass(slots=True)
class JobRequest:
    """One job, array or het component as its user requests it; None and "" are "not given"."""

    user: Annotated[_Text, Meta(description="The submitting user: the caller; for operators any user.")]
    submit: Annotated[_Amount, Meta(description="UTC seconds; default: now.")]
    account: _Text = ""
    partition: _Text = ""
    qos: _Text = ""
    name: _Text = ""
    time_limit_s: Annotated[_Amount | None, Meta(description="The time limit, seconds.")] = None
    nodes: _Amount | None = None
    cpus: Annotated[_Amount | None, Meta(description="CPUs of the job, over all nodes.")] = None
    mem_b: Annotated[_Amount | None, Meta(description="Bytes over all nodes.")] = None
    gpus: Annotated[_Amount, Meta(description="GPUs of the job, over all nodes; 0: none.")] = 0
    gpu_type: _Text = ""
    is_array: bool = False
    interactive: bool = False
    script: Annotated[
        Annotated[str, Meta(max_length=4 * 1024**2)] | None,
        Meta(description="Text of the batch script; null: none, or not stored."),
    ] = None
    comment: Annotated[_Text, Meta(description="--comment; it can contain an override of a policy.")] = ""
    whole_node: Annotated[
        bool | None,
        Meta(description="Whether it gets entire nodes (--exclusive, or by its partition); null: not known."),
    ] = None


def script_hash(script: str | bytes) -> str:
    """Return the hash of a full script as 16 lower-case hex digits; about 15 ms for 256 KiB."""
    value = _BASIS
    for byte in script.encode("utf-8", "surrogateescape") if isinstance(script, str) else script:
        value = ((value ^ byte) * _PRIME) & _MASK
    return f"{value:016x}"


def request_like(job: Any, **known: Any) -> JobRequest:
    """Build the request of a run in accounting (JobRecord) or slurmctld (RunningJob) from its own fields."""
    same = {name: getattr(job, name) for name in _SAME}
    return request_from_tres(job.req_tres, is_array=job.array_job_id is not None, **same, **known)


def request_amounts(request: JobRequest) -> dict[str, int]:
    """Return the amounts of a request by TRES; memory in bytes, left out where it is not given."""
    found = {"cpu": request.cpus or 0, "node": request.nodes or 0, "gres/gpu": request.gpus, "mem": request.mem_b or 0}
    if request.gpu_type and "," not in request.gpu_type:
        found[f"gres/gpu:{request.gpu_type}"] = request.gpus
    return {name: amount for name, amount in found.items() if amount}


def request_from_tres(tres: str, **known: Any) -> JobRequest:
    """Build a request with the amounts of a printed TRES list; an invalid list leaves them unknown."""
    try:
        amounts = parse_tres(tres)
        gpus, mem_b = gpu_count(amounts), memory_b(amounts)
    except ParseError:
        amounts, gpus, mem_b = {}, gpu_count({}), None
    return JobRequest(
        nodes=count_of_tres(amounts, "node"),
        cpus=count_of_tres(amounts, "cpu"),
        mem_b=mem_b,
        gpus=gpus.total,
        gpu_type=gpus.type,
        **known,
    )


def request_of(job: JobRecord) -> JobRequest:
    """Return the request of a run, with the amounts of ReqTRES; a text that is not TRES leaves them unknown."""
    return request_like(job, interactive=job.interactive)
