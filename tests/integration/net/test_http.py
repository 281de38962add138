"""One HTTP exchange: the time for a connection is not the time for an answer."""

import socket
import threading

import pytest
from tests.integration.hub.model_double import running_model

from gpuwaste.core.errors import RetryableWireError
from gpuwaste.ledger.curves.prometheus_curves import endpoint_of
from gpuwaste.net.addresses import parse_endpoint
from gpuwaste.net.http import HttpExchange, HttpRequest


def test_an_error_names_the_server_that_was_asked() -> None:
    """Where Prometheus does not run, the hub is not named; a hub is named by default."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    for endpoint, said in (
        (endpoint_of(url), "is Prometheus running"),
        (parse_endpoint(url), "is the hub running"),
    ):
        with pytest.raises(RetryableWireError, match=said):
            HttpExchange(endpoint, None, 5.0, 4096).send(HttpRequest("GET", "/", b"", {}))


def test_an_answer_may_take_longer_than_a_connection() -> None:
    """A server that answers after the time for connecting, and within that of the exchange, is heard."""
    with running_model(lambda text: text) as server:
        server.go_on.clear()
        late = threading.Timer(1.5, server.go_on.set)
        late.start()
        exchange = HttpExchange(parse_endpoint(f"http://127.0.0.1:{server.server_port}"), None, 60.0, 4096, 0.5)
        answer = exchange.send(HttpRequest("POST", "/v1", b'{"messages": [{"content": "yes"}]}', {}))
        late.join()
    assert (answer.status, b'"yes"' in answer.body) == (200, True)
