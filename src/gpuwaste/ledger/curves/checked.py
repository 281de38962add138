"""What a node answers for a run is checked before it is shown: a node may lie, and then about itself alone."""

import threading
import zlib
from collections.abc import Collection
from itertools import pairwise
from typing import Final

import msgspec
from msgspec.structs import replace

from gpuwaste.core.errors import ParseError
from gpuwaste.core.typed import decoder
from gpuwaste.ledger.curves.curve_types import (
    MOST_GPUS,
    QUANTITIES,
    SCHEMA,
    CurveSeries,
    GpuCurves,
    NodeCurves,
    NodeSamples,
)
from gpuwaste.net.sample_query import MOST_UNPACKED_B, SampleQuestion

_MOST_VALUES: Final = 400_000  # of an answer: an honest one has fewer, however many GPUs
_GZIP: Final = 31
_decoding = threading.Lock()  # numbers take ten times their text: one answer at a time
_decoder = decoder(NodeSamples)


def checked(body: bytes, question: SampleQuestion, own: Collection[str], most_gpus: int) -> NodeCurves:
    """Return the samples that a node has of a run: of the GPUs that are the run's own, within the window.

    `own` are the GPUs that the ledger has of the run on this node; where it has none yet, `most_gpus` are taken. Raises
    ParseError where it is no answer to the question.
    """
    with _decoding:
        found = _decoded(body)
    window = question.window
    if (found.schema, found.node, found.job_id, found.start) != (
        SCHEMA, question.node, window.job_id, window.start,
    ):  # fmt: skip
        raise ParseError("the answer is for another question")
    times = found.t_ms
    if times and not window.since_us // 1000 <= times[0] <= times[-1] <= window.until_us // 1000 + 1:
        raise ParseError("the answer has times outside the run")
    if any(later <= before for before, later in pairwise(times)):
        raise ParseError("the answer's times do not ascend")
    if len({(gpu.gpu_uuid, gpu.instance) for gpu in found.gpus}) < len(found.gpus):
        raise ParseError("the answer has a GPU twice")
    for gpu in found.gpus:
        _check_lengths(gpu, len(times))
    gpus = [gpu for gpu in found.gpus if gpu.gpu_uuid in own] if own else found.gpus[: min(most_gpus, MOST_GPUS)]
    return replace(
        _answered(question.node, found),
        gpus_left_out=len(found.gpus) - len(gpus),
        interval_ms=found.interval_ms,
        t_ms=times if gpus else [],
        gpus=gpus,
    )


def _answered(node: str, found: NodeSamples) -> NodeCurves:
    return NodeCurves(
        node=node,
        state="answered",
        source="agent",
        kept_since=found.kept_since,
        kept_days=found.kept_days,
        unreadable_days=found.unreadable_days,
    )


def _decoded(body: bytes) -> NodeSamples:
    unpacker = zlib.decompressobj(_GZIP)
    try:
        text = unpacker.decompress(body, MOST_UNPACKED_B)
        if not unpacker.eof:
            raise ParseError("the answer is larger than any honest one, or cut off")
        found = _decoder.decode(text)
    except (zlib.error, msgspec.DecodeError, RecursionError) as error:
        raise ParseError(f"the answer cannot be read: {error}") from error
    if sum(len(column) for gpu in found.gpus for column in _columns(gpu)) > _MOST_VALUES:
        raise ParseError("the answer has more values than any honest one")
    return found


def _columns(gpu: GpuCurves) -> list[list[float | None]]:
    series: list[CurveSeries | None] = [getattr(gpu, name) for name in QUANTITIES]
    return [column for one in series if one for column in (one.mean, one.min, one.max) if column is not None]


def _check_lengths(gpu: GpuCurves, length: int) -> None:
    if any(len(column) != length for column in _columns(gpu)):
        raise ParseError("the answer's columns differ in length")
