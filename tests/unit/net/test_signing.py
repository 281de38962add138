"""Digests are what docs/explanation/interfaces.md says, byte for byte."""

from hashlib import sha256

from gpuwaste.net.request_signing import ack_digest, request_digest


def test_a_request_digest_covers_method_target_and_body() -> None:
    """The digest is the hex sha256 of the three parts, a newline between them."""
    assert request_digest("GET", "/v1/report?user=a%2Bb", b"") == sha256(b"GET\n/v1/report?user=a%2Bb\n").hexdigest()
    assert request_digest("POST", "/v1/hours", b"x\xff") == sha256(b"POST\n/v1/hours\nx\xff").hexdigest()


def test_an_acknowledgements_digest_differs_from_any_requests() -> None:
    """The word ACK stands where a request has its method."""
    assert ack_digest(b"{}") == sha256(b"ACK\n{}").hexdigest()
