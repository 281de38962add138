"""What a job asked for, as a TRES text, where sacct's ReqTRES is not there: from the columns beside and before it."""

import re
from collections.abc import Mapping

from gpuwaste.core.errors import ParseError
from gpuwaste.slurm.req_mem import printed, total_b

_WHOLE = re.compile(r"[1-9]\d{0,8}", re.ASCII)
_GPU = re.compile(r"(?:gres:)?gpu(?::([A-Za-z][\w.-]{0,63}))?:(\d{1,6})", re.ASCII)


def request_tres(values: Mapping[str, str]) -> str:
    """Return `cpu=..,mem=..,node=..,gres/gpu=..` of ReqCPUS, ReqMem, ReqNodes and ReqGRES; "" where none tells.

    ReqMem for each processor (c) or node (n) and ReqGRES, which is for each node, are multiplied; what cannot be read
    is left out.
    """
    cpus, nodes = _count(values.get("ReqCPUS", "")), _count(values.get("ReqNodes", ""))
    parts = [f"cpu={cpus}"] if cpus else []
    memory = _memory(values.get("ReqMem", ""), cpus, nodes)
    parts += [f"mem={memory}"] if memory and cpus else []
    parts += [f"node={nodes}"] if nodes else []
    return ",".join([*parts, *_gpus(values.get("ReqGRES", ""), nodes or 1)])


def _count(text: str) -> int:
    return int(text) if _WHOLE.fullmatch(text) else 0


def _memory(text: str, cpus: int, nodes: int) -> str:
    try:
        amount = total_b(text, nodes or 1, cpus)
    except ParseError:
        return ""
    return "" if amount is None else printed(amount)


def _gpus(text: str, nodes: int) -> list[str]:
    parts, total = [], 0
    for item in text.split(","):
        match = _GPU.fullmatch(item.strip())
        if match is not None and int(match[2]):
            total += int(match[2]) * nodes
            parts += [f"gres/gpu:{match[1]}={int(match[2]) * nodes}"] if match[1] else []
    return [f"gres/gpu={total}", *parts] if total else []
