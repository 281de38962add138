"""The client of the hub: GET for reports and maps, POST of hours with a signed acknowledgement.

The transferred types are imported where they are used: a report needs none, and a user waits for each import.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, TypeVar
from urllib.parse import quote, urlencode

from gpuwaste.core.errors import (
    AuthError,
    ConfigError,
    NoDataError,
    ParseError,
    RetryableWireError,
    StoreError,
    WireError,
)
from gpuwaste.core.text import words_of
from gpuwaste.net.addresses import Endpoint, parse_endpoints
from gpuwaste.net.http import HttpAnswer, HttpExchange, HttpRequest, UnreachedError, tls_context
from gpuwaste.net.request_signing import ACK_HEADER, CredentialIssuer, RetryableAuthError, sign_request, verify_ack

if TYPE_CHECKING:
    from gpuwaste.net.batch import Ack, Batch, Envelope, L

ROLE_HEADER: Final = "Gpuwaste-Role"
STANDS_BY: Final = "stands-by"
"""The mark in the answers of a hub that stands by: it did not process the request, so the next hub can be tried."""
MAX_ANSWER_BYTES: Final = 64 * 1024**2
HOURS_PATH: Final = "/v1/hours"
VERDICTS_PATH: Final = "/v1/verdicts"
HISTORY_PATH: Final = "/v1/history"
SCORE_PATH: Final = "/v1/verdicts/score"
SNAPSHOT_PATH: Final = "/v1/history/snapshot"
PREDICT_PATH: Final = "/v1/predict"
PLAN_PATH: Final = "/v1/plan"
WAITS_PATH: Final = "/v1/plan/waits"
TRIAL_PATH: Final = "/v1/models/trial"
RIGHT_SIZES_PATH: Final = "/v1/right-sizes"
SIZE_TABLE_PATH: Final = "/v1/right-sizes/table"
SUBMITTED_PATH: Final = "/v1/plan/submitted"
PROGRAM_RUNS_PATH: Final = "/v1/programs/runs"
LINK_PATH: Final = "/v1/web/link"
_MAX_SNAPSHOT_BYTES: Final = 4 * 1024**3
_SNAPSHOT_S: Final = 300.0
_MAX_ACK_BYTES: Final = 8 * 1024**2
_OK: Final = 200
_UNAUTHORIZED: Final = 401
_FORBIDDEN: Final = 403
_NOT_FOUND: Final = 404
_UPGRADE: Final = 426
_TOO_MANY: Final = 429
_SERVER_ERROR: Final = 500
_NOT_INSTALLED: Final = 501
_LATER: Final = 503
_STANDS_BY_S: Final = 5.0  # where such a hub does not name when to retry
_MAX_DIGITS: Final = 6  # of Retry-After, in seconds; a date is not read
_T = TypeVar("_T")


class RefusedError(WireError):
    """The hub understood the request and rejects it with a message; the same request will be rejected again."""

    def __init__(self, message: str, status: int, protocol: tuple[int, int] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.protocol = protocol  # of a 426: the lowest and the highest protocol that the hub supports


class BusyError(RetryableWireError):
    """The hub answers, is overloaded, and names when to retry."""

    def __init__(self, message: str, retry_after_s: float) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class StandsByError(BusyError):
    """The hub stands by: it answers, and did not process the request."""


class HubClient:
    """Sends requests to the hub; each attempt carries a fresh credential. Threads may share one object.

    `urls` are those of all hosts that a hub may run on, separated by spaces. Where one is not reached, or stands by and
    does not answer this request, the next is tried at once, also where a GET gets a 503. Where one does not answer in
    time, or postpones a batch, the next attempt begins with the next one. `timeout_s` limits the entire exchange with
    one. A WireError that is none of its subclasses means that something other than a hub answered.
    """

    def __init__(
        self, urls: str, issuer: CredentialIssuer | None = None, ca: str = "", timeout_s: float = 20.0
    ) -> None:
        self._endpoints = parse_endpoints(urls)
        self._turn = 0
        if issuer is not None and issuer.secret and any(one.clear for one in self._endpoints):
            raise ConfigError(f"hub_url {urls}: a token would be sent in clear text: use https://")
        self._issuer = issuer
        self._tls = tls_context(ca) if any(one.scheme == "https" for one in self._endpoints) else None
        self._timeout_s = timeout_s

    def get(self, path: str, params: Mapping[str, str | int] | None = None) -> dict[str, Any]:
        """Return the JSON object at `path` (not yet percent-encoded).

        Raises NoDataError (404), AuthError, RefusedError, RetryableWireError, WireError.
        """
        target = quote(path) + (f"?{urlencode(params)}" if params else "")
        answer = self._send("GET", target, b"", MAX_ANSWER_BYTES)
        return self._found(answer, path)

    def get_signed(self, path: str, params: Mapping[str, str | int]) -> dict[str, Any]:
        """Do as `get`, and verify that the hub itself answered exactly this request. Also raises AuthError.

        On the Unix socket there is no credential and no signature: the socket's folder belongs to the hub. A token is
        the same in each request: `params` must have what makes this one unique, and the caller compares the answer's.
        """
        target = f"{quote(path)}?{urlencode(params)}"
        answer, authorization = self._sent("GET", target, b"", MAX_ANSWER_BYTES, "")
        found = self._found(answer, path)
        if self._issuer is not None:
            verify_ack(self._issuer, answer.headers.get(ACK_HEADER, ""), answer.body, authorization)
        return found

    def post(self, path: str, question: Mapping[str, Any]) -> dict[str, Any]:
        """Send a request as JSON and return the JSON object of the answer. Raises as `get` does."""
        target, body = quote(path), json.dumps(question).encode()
        return self._found(self._send("POST", target, body, MAX_ANSWER_BYTES, "application/json"), path)

    def post_signed(self, path: str, question: Mapping[str, Any]) -> dict[str, Any]:
        """Do as `post`, and verify that the hub itself answered exactly this request. Also raises AuthError."""
        if self._issuer is None:
            raise AuthError("orders need a credential: munge, or token_file")
        target, body = quote(path), json.dumps(question).encode()
        answer, authorization = self._sent("POST", target, body, MAX_ANSWER_BYTES, "application/json")
        found = self._found(answer, path)
        verify_ack(self._issuer, answer.headers.get(ACK_HEADER, ""), answer.body, authorization)
        return found

    def predict(self, requests: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Return the hub's prediction for each request (the fields of JobRequest; user and submit may be left out)."""
        return _predictions(self.post(PREDICT_PATH, {"requests": list(requests)}), len(requests))

    def expect(self, requests: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Return when each request would start and end, by the hub's queue."""
        return self.post(PLAN_PATH, {"requests": list(requests)})

    def expect_job(self, printed_id: str) -> dict[str, Any]:
        """Return when a pending job is expected to start and end."""
        return self.get(PLAN_PATH, {"job": printed_id})

    def right_sizes(self) -> dict[str, Any]:
        """Return the findings about the size of the caller's requests."""
        return self.get(RIGHT_SIZES_PATH, {})

    def record_plan(self, plan: Mapping[str, Any]) -> dict[str, Any]:
        """Record the plan of jobs that were submitted; the answer names the jobs that are recorded now."""
        return self.post(SUBMITTED_PATH, plan)

    def program_runs(self, program: str) -> dict[str, Any]:
        """Return the caller's own completed runs of a program, by its fingerprint."""
        return self.get(PROGRAM_RUNS_PATH, {"program": program})

    def predict_job(self, printed_id: str) -> list[dict[str, Any]]:
        """Return the hub's prediction for a job, one for each component of a het job."""
        return _predictions(self.get(PREDICT_PATH, {"job": printed_id}), None)

    def history(self, after: int, limit: int, read: Callable[[object], _T]) -> list[_T]:
        """Return the events of runs after event `after`, at most `limit`, each converted by `read`.

        Raises as `get` and `read` do.
        """
        found = self.get(HISTORY_PATH, {"after": after, "limit": limit}).get("events")
        if not isinstance(found, list):
            raise WireError(f"{self._endpoint.url}: no events in the answer: does the hub run another version?")
        return list(map(read, found))

    def post_hours(self, envelope: "Envelope", batch: "Batch[L]") -> "Ack":
        """Send a batch and return the hub's acknowledgement, its signature checked.

        Raises RefusedError where the hub rejects the entire batch; otherwise as `get`. After any error the hub may have
        the rows all the same: sending them again is harmless.
        """
        return self._post_rows(HOURS_PATH, envelope, batch)

    def post_verdicts(self, envelope: "Envelope", batch: "Batch[L]") -> "Ack":
        """Send verdicts and return the hub's acknowledgement, its signature checked. Raises as `post_hours`."""
        return self._post_rows(VERDICTS_PATH, envelope, batch)

    def _post_rows(self, path: str, envelope: "Envelope", batch: "Batch[L]") -> "Ack":
        from gpuwaste.net.batch import encode_batch, parse_ack  # noqa: PLC0415 as the module says

        if self._issuer is None:
            raise ConfigError("hours and verdicts need a credential: munge, or token_file")
        answer = self._send("POST", path, encode_batch(envelope, batch), _MAX_ACK_BYTES)
        self._object(answer)
        verify_ack(self._issuer, answer.headers.get(ACK_HEADER, ""), answer.body)
        try:
            return parse_ack(answer.body, batch)
        except ParseError as error:
            raise WireError(f"{answer.url}: {error}") from error

    def get_snapshot(self, directory: Path) -> None:
        """Write the hub's state of the history to `directory`, which is replaced completely; `Follower.load` reads it.

        Raises as `get` does (RetryableWireError while the hub still reads its history), and StoreError.
        """
        import tempfile  # noqa: PLC0415 as the module says

        from gpuwaste.net.snapshot_tar import read_tar  # noqa: PLC0415 as the module says

        try:
            directory.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=directory.parent) as file:
                answer = self._send("GET", SNAPSHOT_PATH, b"", _MAX_SNAPSHOT_BYTES, sink=file)
                if answer.status != _OK:
                    raise self._error(answer)
                file.seek(0)
                read_tar(file, directory)
        except OSError as error:
            raise StoreError(f"{directory}: cannot be written: {error.strerror or error}") from error

    def fetch(self, path: str, sink: BinaryIO, max_bytes: int) -> None:
        """Write the body of the answer at `path` to `sink`. Raises as `get` does, and StoreError."""
        answer = self._send("GET", quote(path), b"", max_bytes, sink=sink)
        if answer.status != _OK:
            raise self._error(answer)

    def _send(
        self,
        method: str,
        target: str,
        body: bytes,
        max_bytes: int,
        content: str = "application/x-ndjson",
        *,
        sink: BinaryIO | None = None,
    ) -> HttpAnswer:
        return self._sent(method, target, body, max_bytes, content, sink=sink)[0]

    def _sent(
        self,
        method: str,
        target: str,
        body: bytes,
        max_bytes: int,
        content: str,
        *,
        sink: BinaryIO | None = None,
    ) -> tuple[HttpAnswer, str]:
        """Return the answer of the first hub that accepts the request, and the credential that it was sent with."""
        timeout_s = self._timeout_s if sink is None else max(self._timeout_s, _SNAPSHOT_S)
        passed: list[RetryableWireError] = []
        put_off: tuple[HttpAnswer, str] | None = None
        for _ in self._endpoints:
            endpoint, headers = self._endpoint, self._headers(method, target, body, content)
            request = HttpRequest(method, target, body, headers)
            try:
                answer = HttpExchange(endpoint, self._tls, timeout_s, max_bytes).send(request, sink)
            except UnreachedError as error:
                passed.append(error)
            except RetryableWireError:  # it may have the request: the next attempt is the caller's
                self._pass_on(endpoint)
                raise
            else:
                sent = answer, headers.get("Authorization", "")
                if answer.status != _LATER:
                    return sent
                if not _stands_by(answer):
                    put_off = put_off or sent
                    if method != "GET":  # it may have stored the body all the same
                        self._pass_on(endpoint)
                        return sent
                passed.append(_put_off(endpoint.url, answer))
            self._pass_on(endpoint)
        if put_off is not None:
            return put_off
        raise _nobody(passed)

    def _headers(self, method: str, target: str, body: bytes, content: str) -> dict[str, str]:
        """Return the headers of one attempt: each has its own credential."""
        headers = {"Accept": "application/json"}
        if body:
            headers["Content-Type"] = content
        if self._issuer is not None:
            headers |= sign_request(self._issuer, method, target, body)
        return headers

    @property
    def _endpoint(self) -> Endpoint:
        """The endpoint whose turn it is."""
        return self._endpoints[self._turn]

    def _pass_on(self, endpoint: Endpoint) -> None:
        """Make the endpoint after this one the next to use; where two threads fail at once, it moves on only once."""
        self._turn = (self._endpoints.index(endpoint) + 1) % len(self._endpoints)

    def _found(self, answer: HttpAnswer, path: str) -> dict[str, Any]:
        if answer.status == _NOT_FOUND:
            raise NoDataError(_words_of(answer) or f"{path}: not found")
        return self._object(answer)

    def _object(self, answer: HttpAnswer) -> dict[str, Any]:
        """Return a good answer's JSON object; raise what any other answer means."""
        if answer.status != _OK:
            raise self._error(answer)
        found = _json_object(answer)
        if found is None:
            raise WireError(f"{answer.url}: answers without a JSON object: is this the hub? See hub_url")
        return found

    def _error(self, answer: HttpAnswer) -> WireError:
        url, status, body = answer.url, answer.status, _json_object(answer)
        said = f"{url}: {_words_of(answer) or 'no reason given'} (HTTP {status})"
        if (status >= _SERVER_ERROR and status != _NOT_INSTALLED) or status == _TOO_MANY:
            return _later(said, answer.headers.get("Retry-After", ""))
        if 300 <= status < 400:  # noqa: PLR2004 HTTP's redirects
            return WireError(
                f"{url}: redirects to {answer.headers.get('Location', '?')[:200]!r}: set hub_url to the hub"
            )
        if status == _UNAUTHORIZED and body is not None and body.get("retry") is True:
            return RetryableAuthError(said)
        if status in {_UNAUTHORIZED, _FORBIDDEN}:
            return AuthError(said)
        if body is None or "error" not in body:
            return WireError(f"{url}: HTTP {status} without an error message of a hub: is this the hub? See hub_url")
        return RefusedError(said, status, _protocol_range(body) if status == _UPGRADE else None)


def _stands_by(answer: HttpAnswer) -> bool:
    """Return whether a hub did not process the request because it stands by."""
    return answer.status == _LATER and answer.headers.get(ROLE_HEADER) == STANDS_BY


def _put_off(url: str, answer: HttpAnswer) -> RetryableWireError:
    """Return the error of a 503, for the case that no other hub accepts the request."""
    error = _later(f"{url}: {_words_of(answer)}", answer.headers.get("Retry-After", ""))
    if not _stands_by(answer):
        return error
    words = str(error) if _words_of(answer) else f"{url}: this hub is a standby"
    return StandsByError(words, error.retry_after_s if isinstance(error, BusyError) else _STANDS_BY_S)


def _nobody(passed: Sequence[RetryableWireError]) -> RetryableWireError:
    """Return the error for the caller where no hub accepted the request, from the error of each."""
    if len(passed) == 1:
        return passed[0]
    words = "; ".join(map(str, passed))
    if all(isinstance(error, UnreachedError) for error in passed):
        return UnreachedError(words)
    after = [error.retry_after_s for error in passed if isinstance(error, BusyError)]
    return BusyError(words, max(after)) if after else RetryableWireError(words)


def _later(said: str, after: str) -> RetryableWireError:
    if len(after) <= _MAX_DIGITS and after.isascii() and after.isdigit():
        return BusyError(said, float(after))
    return RetryableWireError(said)


def _predictions(answer: Mapping[str, Any], wanted: int | None) -> list[dict[str, Any]]:
    """Return the documents in an answer of /v1/predict. Raises WireError where they are missing."""
    found = answer.get("predictions")
    if (
        not isinstance(found, list)
        or not all(isinstance(item, dict) for item in found)
        or len(found) != (len(found) if wanted is None else wanted)
    ):
        raise WireError("the hub's answer lacks a prediction for some requests: does it run another version?")
    return found


def _json_object(answer: HttpAnswer) -> dict[str, Any] | None:
    try:
        value = json.loads(answer.body)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _words_of(answer: HttpAnswer) -> str:
    """Return the hub's own message for an error, as one printable line."""
    error = (_json_object(answer) or {}).get("error", "")
    return words_of(error)


def _protocol_range(body: dict[str, Any]) -> tuple[int, int] | None:
    match body.get("protocol"):
        case [int(low), int(high)]:
            return (low, high)
    return None
