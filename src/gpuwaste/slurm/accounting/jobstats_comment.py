"""jobstats' text in AdminComment as AccountedUse: `JS1:` and base64 of gzip of JSON, its figures by node.

{"nodes": {NODE: {"total_memory", "used_memory": bytes, "total_time": CPU seconds, "cpus",
"gpu_utilization", "gpu_used_memory", "gpu_total_memory": {GPU: percent or bytes}}}, "total_time": seconds, "gpus"}
(jobstats 1.0.0: jobstats.py, get_data_out and report_job_json; slurm/slurmctldepilog.sh). "Short" and "None" stand for
runs of which it has nothing. A mean is rounded to a tenth where Prometheus has a fraction, and an integer where it has
none: 0 is exactly 0 at every reading, 0.0 is a mean below 0.05 %.
"""

import re
import zlib
from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from gpuwaste.core.errors import ParseError
from gpuwaste.core.typed import decoder
from gpuwaste.slurm.accounting.accounted_use import AccountedUse

PREFIX: Final = "JS1:"
_TEXT = re.compile(r"(?:^|[;,\s])JS(\d{1,4}):([^;,\s]*)")
_NOTHING: Final = frozenset({"", "Short", "None"})
_MOST_TEXT: Final = 4 * 1024**2  # characters: a run of 5,000 nodes with 8 GPUs has 1.5 million
_MOST_JSON: Final = 8 * 1024**2  # bytes
_MOST_NODES: Final = 20_000
_MOST_BYTES: Final = 1 << 60
_MOST_CPU_S: Final = 1e15
_FULL_PCT: Final = 100.0
_GZIP: Final = 31  # zlib's window size with gzip's header
_NAME: Final = 256
_LATE_S: Final = 120  # two samplings of jobstats and its start
_LATE_RATIO: Final = 0.05

_Amount = int | float


class _Node(msgspec.Struct, frozen=True):
    """The figures of one node."""

    total_memory: _Amount | None = None
    used_memory: _Amount | None = None
    total_time: _Amount | None = None
    cpus: _Amount | None = None
    gpu_utilization: dict[str, _Amount] = {}
    gpu_used_memory: dict[str, _Amount] = {}
    gpu_total_memory: dict[str, _Amount] = {}

    def gpus(self) -> list[str]:
        """Return the names of its GPUs."""
        return sorted(self.gpu_utilization.keys() | self.gpu_used_memory.keys() | self.gpu_total_memory.keys())


class _Summary(msgspec.Struct, frozen=True):
    """The summary of one run."""

    nodes: dict[str, _Node]
    total_time: _Amount


_DECODE: Final = decoder(_Summary)


def jobstats_use(comment: str, gpus: int | None, start: int | None, end: int | None) -> tuple[AccountedUse, ...]:
    """Return what the comment of a run with `gpus` GPUs has; nothing without GPUs, an end, or a summary.

    Raises ParseError where the summary cannot be read, or is not that of this run.
    """
    found = _TEXT.search(comment) if gpus and "JS" in comment else None
    if found is None or found[2] in _NOTHING or not gpus or start is None or end is None:
        return ()
    span_s = end - start
    if found[1] != "1":
        raise ParseError(f"jobstats: a summary in format JS{found[1]}: only JS1 can be read")
    summary = _summary(found[2])
    late_s = abs(summary.total_time - span_s)
    if late_s > _LATE_S and late_s > _LATE_RATIO * span_s:
        raise ParseError(f"jobstats: a summary of {summary.total_time:.0f} s for a run of {span_s} s")
    if len(summary.nodes) > _MOST_NODES:
        raise ParseError(f"jobstats: a summary of {len(summary.nodes)} nodes: at most {_MOST_NODES}")
    told = [(name, node, node.gpus()) for name, node in summary.nodes.items()]
    if (count := sum(len(names) for *_, names in told)) > gpus:
        raise ParseError(f"jobstats: a summary of {count} GPUs for a run that held {gpus}")
    return tuple(use for name, node, names in told for use in _uses(name, node, names))


def _summary(text: str) -> _Summary:
    """Decode a summary. Raises ParseError."""
    if len(text) > _MOST_TEXT:
        raise ParseError(f"jobstats: a summary of {len(text)} characters: at most {_MOST_TEXT}")
    unpacker = zlib.decompressobj(_GZIP)
    try:
        data = unpacker.decompress(b64decode(text, validate=True), _MOST_JSON)
    except (Base64Error, ValueError, zlib.error) as error:
        raise ParseError(f"jobstats: the summary is damaged: {error}") from error
    if unpacker.unconsumed_tail:
        raise ParseError(f"jobstats: the summary is larger than {_MOST_JSON} bytes when unpacked")
    if not unpacker.eof:
        raise ParseError("jobstats: the summary is cut off")
    try:
        return _DECODE.decode(data)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise ParseError(f"jobstats: the summary is not what jobstats writes: {str(error)[:120]}") from error


def _uses(name: str, node: _Node, gpus: Sequence[str]) -> Iterator[AccountedUse]:
    """Yield the GPUs of a node, or one row of a node without GPUs. Raises ParseError."""
    if not all(0 < len(text) <= _NAME for text in (name, *gpus)):
        raise ParseError("jobstats: a node or GPU without a name, or with a long one")
    host = (
        _bytes(node.cpus),
        None if node.total_time is None else float(_within(node.total_time, _MOST_CPU_S)),
        _bytes(node.used_memory),
        _bytes(node.total_memory),
    )
    short = _host(name)
    for gpu in gpus or ("",):
        use = (
            *_percents(node.gpu_utilization, gpu),
            _bytes(node.gpu_used_memory.get(gpu)),
            _bytes(node.gpu_total_memory.get(gpu)),
        )
        yield AccountedUse("jobstats", short, gpu, *use, *host)


def _host(name: str) -> str:
    """Return a node's name as Slurm has it: Prometheus may have a full one."""
    first, _, rest = name.partition(".")
    return first if rest and not name.replace(".", "").isdigit() else name


def _percents(means: Mapping[str, _Amount], gpu: str) -> tuple[float | None, float | None]:
    """Return the mean and, where the mean tells it, the largest reading."""
    mean = means.get(gpu)
    if mean is None:
        return None, None
    return float(_within(mean, _FULL_PCT)), 0.0 if isinstance(mean, int) and not mean else None


def _bytes(amount: _Amount | None) -> int | None:
    """Return a whole number, of bytes or CPUs."""
    return None if amount is None else round(_within(amount, _MOST_BYTES))


def _within(amount: _Amount, most: float) -> _Amount:
    if not 0 <= amount <= most:
        raise ParseError(f"jobstats: {amount:.3g} is not between 0 and {most:.3g}")
    return amount
