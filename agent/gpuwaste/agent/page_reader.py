"""ExporterReader: reads one page of a program on this host over HTTP, for collectors that use another exporter."""

from typing import Final

from gpuwaste.agent.bounded_calls import BoundedThread, CollectorError
from gpuwaste.core.errors import WireError
from gpuwaste.net.addresses import parse_target_url
from gpuwaste.net.http import AnswerSizeError, DeadlineError, HttpExchange, HttpRequest, cause_of, tls_context

ANSWER_S: Final = 2.0  # for the full answer
_CONNECT_S: Final = 0.5
_LOOKUP_S: Final = 0.5  # for the name lookup, which has no socket timeout
_MAX_BYTES: Final = 4 * 1024 * 1024
_OK: Final = 200


class ExporterReader:
    """Reads one page, each time on a new connection. Raises ConfigError for an invalid URL."""

    def __init__(self, what: str, url: str, path: str, hints: tuple[str, str, str], answer_s: float) -> None:
        """Prepare the request; `what` begins each error, `hints` end those of no, a wrong and a huge answer."""
        self._where = f"{what}: {url}"
        self._hints = hints
        self._answer_s = answer_s
        endpoint, target = parse_target_url(url + path, hints[0], f"[agent] {what.lower()}_url")
        self._request = HttpRequest("GET", target, b"", {})
        tls = tls_context("") if endpoint.scheme == "https" else None
        self._http = HttpExchange(endpoint, tls, answer_s, _MAX_BYTES, _CONNECT_S)
        self._thread = BoundedThread(
            what.lower(),
            answer_s + _LOOKUP_S,
            late=f"{self._where}: no complete answer within {answer_s + _LOOKUP_S:g} s",
            hangs=f"{self._where}: the answer before is still under way",
        )

    def read(self) -> bytes:
        """Return the page. Raises CollectorError where there is none, with the URL and what to check."""
        return self._thread.call(self._read)

    def _read(self) -> bytes:
        no_answer, no_page, too_large = self._hints
        try:
            answer = self._http.send(self._request)
        except AnswerSizeError as error:
            raise CollectorError(f"{self._where}: more than {_MAX_BYTES} bytes{too_large}") from error
        except DeadlineError as error:
            raise CollectorError(f"{self._where}: no complete answer within {self._answer_s:g} s") from error
        except WireError as error:
            raise CollectorError(f"{self._where}: no answer: {cause_of(error)}{no_answer}") from error
        if answer.status != _OK:
            raise CollectorError(f"{self._where}: status {answer.status}{no_page}")
        return answer.body
