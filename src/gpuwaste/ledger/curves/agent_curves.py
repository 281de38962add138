"""The samples of a run from the agent of its node: requested, signed by the hub, and checked before they are shown."""

import threading
import zlib
from collections.abc import Collection
from itertools import pairwise
from typing import Final

import msgspec
from msgspec.structs import replace

from gpuwaste.core import log_event
from gpuwaste.core.clock import Clock
from gpuwaste.core.errors import AuthError, ConfigError, ParseError, RetryableWireError, WireError
from gpuwaste.core.typed import decoder
from gpuwaste.jobs.cluster_facts import ClusterFacts, UnknownSiteError
from gpuwaste.ledger.curves.curve_types import (
    MOST_GPUS,
    QUANTITIES,
    SCHEMA,
    CurveSeries,
    GpuCurves,
    NodeCurves,
    NodeSamples,
    NodeState,
)
from gpuwaste.net.addresses import ip_address, parse_endpoint
from gpuwaste.net.http import HttpAnswer, HttpExchange, HttpRequest, tls_context
from gpuwaste.net.request_signing import ACK_HEADER, CredentialIssuer, sign_request, verify_ack
from gpuwaste.net.sample_query import MOST_ANSWER_B, MOST_UNPACKED_B, SampleQuestion

_REJECTED: Final = log_event.warning(
    "curves-answer-rejected: the answer of node {node} for a job's samples is rejected: {error}",
    "Another program at the agent's port, an agent of another user ([hub] agent_user), or false data.",
)
_REFUSED: Final = log_event.warning(
    "curves-refused: the agent of node {node} refuses to answer for a job's samples: {error}",
    "Check that [agent] hub_user on that node is the hub's user; compare the clocks and munge's keys.",
)
PATIENCE_S: Final = 20.0  # for an exchange: the agent's child process has fifteen seconds
_BUSY_S: Final = 0.5  # between two tries, in the first half of the time
_WORDS: Final[dict[NodeState, str]] = {
    "unreachable": "the node's agent does not answer",
    "gone": "Slurm no longer has this node",
    "not_served": "the node's agent does not serve samples: an older version, or [agent] serve_samples is off",
    "refused": "the node's agent refuses the hub: see the hub's log",
    "busy": "the node's agent is answering other questions: retry",
    "failed": "the node's agent cannot read its samples: see its log",
    "invalid": "the node's answer is rejected: see the hub's log",
    "not_asked": "agents are not queried: [hub] agent_url is not set",
}
_STATES: Final[dict[int, NodeState]] = {401: "refused", 403: "refused", 404: "not_served", 500: "failed", 503: "busy"}
_OK: Final = 200
_MOST_VALUES: Final = 400_000  # of an answer: an honest one has fewer, however many GPUs
_GZIP: Final = 31
_decoding = threading.Lock()  # decoded numbers take ten times their text: one answer at a time
_decoder = decoder(NodeSamples)


class AgentSamples:
    """Requests samples from agents. Thread-safe. Raises ConfigError where the URL or the CA cannot be used."""

    def __init__(
        self,
        url: str,
        ca: str,
        issuer: CredentialIssuer,
        site: ClusterFacts,
        clock: Clock,
        *,
        patience_s: float = PATIENCE_S,
    ) -> None:
        """`url` has {address} (NodeAddr) or {node} as host; a node must answer within `patience_s`."""
        self._url = url
        self._patience_s = patience_s
        self._clock = clock
        self._issuer = issuer
        self._site = site
        self._tls = tls_context(ca) if scheme_of(url) == "https" else None

    def ask(self, question: SampleQuestion, own: Collection[str], most_gpus: int) -> NodeCurves:
        """Return a node's samples of a run, or why there are none. Raises nothing."""
        try:
            address = self._address(question.node)
        except UnknownSiteError:
            return without(question.node, "unreachable")
        if not address:
            return without(question.node, "gone")
        try:
            answer = self._answer(_filled(self._url, question.node, address), question.target)
            if answer.status != _OK:
                return self._refusal(question.node, answer)
            verify_ack(self._issuer, answer.headers.get(ACK_HEADER, ""), answer.body)
            return checked(answer.body, question, own, most_gpus)
        except RetryableWireError:
            return without(question.node, "unreachable")
        except (AuthError, ParseError, WireError) as error:
            _REJECTED.log(node=question.node, error=error)
            return without(question.node, "invalid")

    def _answer(self, url: str, target: str) -> HttpAnswer:
        """Send the request, again while the agent is busy with another one. Raises WireError."""
        until_us = self._clock.mono_us() + int(self._patience_s * 1e6)
        while True:
            left_s = (until_us - self._clock.mono_us()) / 1e6
            exchange = HttpExchange(
                parse_endpoint(url, "is the agent running?", "agent_url"),
                self._tls,
                max(_BUSY_S, left_s),
                MOST_ANSWER_B,
            )
            headers = {"Accept-Encoding": "gzip", **sign_request(self._issuer, "GET", target)}
            answer = exchange.send(HttpRequest("GET", target, b"", headers))
            if _STATES.get(answer.status) != "busy" or left_s < self._patience_s / 2:
                return answer
            self._clock.wait(threading.Event(), _BUSY_S)

    def _refusal(self, node: str, answer: HttpAnswer) -> NodeCurves:
        state = _STATES.get(answer.status, "invalid")
        if state in {"refused", "invalid"}:
            said = answer.body[:200].decode("ascii", "replace").strip()
            _REFUSED.log(node=node, error=f"HTTP {answer.status}: {said!r}")
        return without(node, state)

    def _address(self, node: str) -> str:
        """Return the node's address: the IPv4 address of its NodeAddr if any; "" for a node that is not in Slurm."""
        found = sorted(self._site.addresses(node))
        return next((one for one in found if ip_address(one)), found[0] if found else "")


def scheme_of(url: str) -> str:
    """Return the scheme of the agents' URL, http or https. Raises ConfigError."""
    try:
        return parse_endpoint(_filled(url, "node", "127.0.0.1")).scheme
    except ConfigError as error:
        raise ConfigError(f"[hub] agent_url {url!r}: expected http://{{address}}:PORT or https://") from error


def without(node: str, state: NodeState) -> NodeCurves:
    """Return the entry of a node without samples."""
    return NodeCurves(node=node, state=state, words=_WORDS.get(state, ""))


def _filled(url: str, node: str, address: str) -> str:
    return url.replace("{node}", node).replace("{address}", address)


def checked(body: bytes, question: SampleQuestion, own: Collection[str], most_gpus: int) -> NodeCurves:
    """Return a node's samples of a run: of the run's own GPUs, within the window.

    `own` are the GPUs that the ledger has of the run on this node; if it has none yet, up to `most_gpus` are accepted.
    Raises ParseError where the body does not answer the question.
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
