"""What a job asked for and got, as TRES texts, where sacct's ReqTRES and AllocTRES do not tell: from older columns."""

import re
from collections.abc import Mapping

from gpuwaste.core.errors import ParseError
from gpuwaste.slurm.accounting.req_mem import printed, total_b
from gpuwaste.slurm.submit.gpu_items import gpu_items

_WHOLE = re.compile(r"[1-9]\d{0,8}", re.ASCII)


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


def allocated_tres(values: Mapping[str, str]) -> str:
    """Return AllocTRES, with the GPUs of AllocGRES where it has none.

    AllocGRES, of all nodes, is a column up to Slurm 20.02. AllocTRES has GPUs only where AccountingStorageTRES names
    them.
    """
    told = values.get("AllocTRES", "")
    if "gres/gpu" in told:
        return told
    return ",".join(part for part in (told, *_gpus(values.get("AllocGRES", ""), 1)) if part)


def _count(text: str) -> int:
    return int(text) if _WHOLE.fullmatch(text) else 0


def _memory(text: str, cpus: int, nodes: int) -> str:
    try:
        amount = total_b(text, nodes or 1, cpus)
    except ParseError:
        return ""
    return "" if amount is None else printed(amount)


def _gpus(text: str, nodes: int) -> list[str]:
    by_type: dict[str, int] = {}
    for kind, count in gpu_items(text):
        by_type[kind] = by_type.get(kind, 0) + count * nodes
    total = sum(by_type.values())
    typed = [f"gres/gpu:{kind}={count}" for kind, count in by_type.items() if kind and count]
    return [f"gres/gpu={total}", *typed] if total else []
