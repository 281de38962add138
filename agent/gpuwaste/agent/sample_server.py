"""GET /v1/samples: the samples of one run, only for the hub's user, one answer at a time.

The hub signs each request with munge, over the exact target, which names the node and the run; the answer is signed
like acknowledgements. The samples are read by a child process (job_samples.py), so that the agent's memory does not
grow; the sampling thread is not involved.
"""

import subprocess
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Final

from gpuwaste.agent.child import exit_words, start_child
from gpuwaste.core import log_event
from gpuwaste.core.config import Config
from gpuwaste.core.errors import AuthError, RetryableWireError, StoreError
from gpuwaste.net.daemon_client import hub_uid
from gpuwaste.net.metrics_server import Reply
from gpuwaste.net.munge_credentials import Munge, MungeChecker
from gpuwaste.net.request_signing import CredentialChecker, Via, sign_ack, verify_request
from gpuwaste.net.sample_query import MOST_ANSWER_B, SampleQuestion

_ENDED: Final = log_event.warning(
    "job-samples-failed: cannot read the samples of a run for the hub: {error}",
    "The job's page shows this in place of the curves. Signal 9: killed, often out of memory. Signal 14: too slow.",
)
_WAIT_S: Final = 17.0  # longer than the child's own deadline: only a hanging disk takes so long


@dataclass(frozen=True, slots=True)
class Askers:
    """Who may send requests, and how they authenticate."""

    checkers: Mapping[Via, CredentialChecker]
    uids: frozenset[int]


def hub_asks(config: Config) -> Askers | None:
    """Return the hub's user and root, by munge; None where nobody may send requests. Raises ConfigError."""
    if config.common.token_file or not config.agent.serve_samples:
        return None
    return Askers({"munge": MungeChecker(Munge(config.common.munge_socket))}, frozenset({0, hub_uid(config)}))


class SampleServer:
    """Answers the hub's requests for the samples of a run on this node."""

    def __init__(
        self,
        folder: Path,
        node: str,
        askers: Askers,
        *,
        kept_days: Callable[[], int],
        gap_us: int,
    ) -> None:
        """`folder` has the node store's files; samples further apart than `gap_us` have a gap between them."""
        self._folder = folder
        self._node = node
        self._askers = askers
        self._kept_days = kept_days
        self._gap_us = gap_us
        self._busy = threading.Lock()

    def answer(self, target: str, authorization: str) -> Reply:
        """Answer one request, with 503 while another one is answered. Unauthenticated ones do not block others."""
        try:
            caller = verify_request(self._askers.checkers, authorization, "GET", target)
            if caller.uid not in self._askers.uids:
                return _words(HTTPStatus.FORBIDDEN, "only the hub's user may ask for samples")
            question = SampleQuestion.from_target(target)
            if question is None or question.node != self._node:
                return _words(HTTPStatus.BAD_REQUEST, f"this is no question for samples of node {self._node}")
            if not self._busy.acquire(blocking=False):
                return _words(
                    HTTPStatus.SERVICE_UNAVAILABLE, "another question is being answered", ("Retry-After", "1")
                )
            try:
                body = self._read(question)
            finally:
                self._busy.release()
            acknowledged = sign_ack(self._askers.checkers, caller, body)
        except AuthError as error:
            retry = isinstance(error, RetryableWireError)
            return _words(HTTPStatus.SERVICE_UNAVAILABLE if retry else HTTPStatus.UNAUTHORIZED, str(error))
        except StoreError as error:
            _ENDED.log(error=error)
            return _words(HTTPStatus.INTERNAL_SERVER_ERROR, "the samples cannot be read: see the agent's log")
        headers = {"Content-Type": "application/json", "Content-Encoding": "gzip", **acknowledged}
        return Reply(HTTPStatus.OK, body, tuple(headers.items()))

    def _read(self, question: SampleQuestion) -> bytes:
        """Return the child's output. Raises StoreError."""
        asked = f"Path({str(self._folder)!r}), {self._node!r}, {question.numbers}"
        child = start_child("job_samples", f"{asked}, {self._kept_days()}, {self._gap_us}", subprocess.PIPE)
        try:
            written, _ = child.communicate(timeout=_WAIT_S)
        except subprocess.TimeoutExpired as error:
            child.kill()
            raise StoreError("the child that reads them hangs: does the disk answer?") from error
        if child.returncode != 0 or len(written) > MOST_ANSWER_B:
            raise StoreError(f"the child ended with {exit_words(child.returncode)} after {len(written)} bytes")
        return written


def _words(status: HTTPStatus, words: str, *headers: tuple[str, str]) -> Reply:
    return Reply(
        status, words.encode("utf-8", "replace") + b"\n", (("Content-Type", "text/plain; charset=utf-8"), *headers)
    )
