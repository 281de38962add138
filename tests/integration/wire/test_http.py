"""One HTTP exchange: the time for a connection is not the time for an answer."""

import threading

from tests.integration.hub.model_double import running_model

from gpuwaste.wire.http import HttpExchange, HttpRequest, parse_endpoint


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
