"""Credentials keep their promises: munge with two real munged of different hosts, and token files."""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.integration.etc.idle_client import example_client

from gpuwaste.core.errors import AuthError, RetryableWireError
from gpuwaste.net.munge_credentials import Munge, MungeChecker, MungeIssuer
from gpuwaste.net.request_signing import (
    ACK_HEADER,
    CredentialChecker,
    CredentialIssuer,
    RetryableAuthError,
    Via,
    ack_digest,
    request_digest,
    sign_ack,
    sign_request,
    verify_ack,
    verify_request,
)
from gpuwaste.net.tokens import TokenChecker, TokenIssuer

MUNGED = shutil.which("munged", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
pytestmark = pytest.mark.sockets
needs_munged = pytest.mark.skipif(MUNGED is None, reason="munged is not installed (Debian: munge)")
START_S = 20.0


@pytest.fixture(scope="module")
def start_munged() -> Iterator[Callable[..., str]]:
    """Start a private munged by name and origin; all of one test module share the key. Returns its socket."""
    # pytest's own folders are closed, which munged refuses.
    base = Path(tempfile.mkdtemp(prefix="gpuwaste-munge-", dir="/tmp"))
    base.chmod(0o711)
    key = base / "key"
    key.write_bytes(os.urandom(128))
    key.chmod(0o400)
    started: list[tuple[Path, subprocess.Popen[bytes]]] = []

    def start(name: str, origin: str, before: tuple[str, ...] = ()) -> str:
        home = base / name
        home.mkdir(mode=0o711)
        paths = {"socket": "sock", "pid-file": "pid", "log-file": "log", "seed-file": "seed"}
        options = [f"--{option}={home / file}" for option, file in paths.items()]
        command = [*before, str(MUNGED), "--foreground", f"--key-file={key}", f"--origin={origin}", *options]
        with (home / "out").open("wb") as out:
            process = subprocess.Popen(command, stdout=out, stderr=out)
        started.append((home / "pid", process))
        deadline = time.monotonic() + START_S
        while not (home / "sock").exists():
            assert process.poll() is None, (home / "out").read_text()
            assert time.monotonic() < deadline, "munged does not come up"
            time.sleep(0.02)
        return str(home / "sock")

    yield start
    for pid_file, process in started:
        os.kill(int(pid_file.read_text()), signal.SIGTERM)  # faketime is a parent of munged and passes no signal on
        process.wait(10)
    shutil.rmtree(base)


@pytest.fixture(scope="module")
def node(start_munged: Callable[..., str]) -> Munge:
    return Munge(start_munged("node", "127.0.0.2"))


@pytest.fixture(scope="module")
def hub(start_munged: Callable[..., str]) -> Munge:
    return Munge(start_munged("hub", "127.0.0.1"))


@needs_munged
def test_a_credential_says_who_made_it_where_and_when(node: Munge, hub: Munge) -> None:
    """The decoding host learns uid, gid, payload, the encoding host's address and the time."""
    before = int(time.time())
    identity = hub.decode(node.encode(b"payload \x00 with any byte \xff"))
    assert (identity.uid, identity.gid) == (os.getuid(), os.getgid())
    assert identity.origin_address == "127.0.0.2"
    assert identity.payload == b"payload \x00 with any byte \xff"
    assert before <= identity.encoded_at <= time.time()
    assert node.decode(hub.encode(b"")).payload == b""
    assert node.decode(hub.encode(b"")).origin_address == "127.0.0.1"


@needs_munged
def test_a_replayed_credential_is_refused_for_good(node: Munge, hub: Munge) -> None:
    """The second decode is refused (17) and is not retryable, although munge hands out uid and payload with it."""
    credential = node.encode(b"once")
    hub.decode(credential)
    with pytest.raises(AuthError, match=r"\(17\)") as caught:
        hub.decode(credential)
    assert not isinstance(caught.value, RetryableWireError)


@needs_munged
@pytest.mark.skipif(shutil.which("faketime") is None, reason="faketime is not installed (Debian: faketime)")
@pytest.mark.parametrize(("shift", "code"), [("+2h", 15), ("-2h", 16)])
def test_clocks_apart_are_retryable(start_munged: Callable[..., str], node: Munge, shift: str, code: int) -> None:
    """A credential that is expired (15) or from the future (16) by the decoding host's clock may be made anew."""
    other = Munge(start_munged(f"shifted{shift}", "127.0.0.3", ("faketime", "-f", shift)))
    with pytest.raises(RetryableAuthError, match=rf"\({code}\).*clocks"):
        other.decode(node.encode(b"x"))


@needs_munged
def test_a_tampered_credential_is_refused_for_good(node: Munge, hub: Munge) -> None:
    """One changed character gives AuthError that is not retryable."""
    credential = node.encode(b"x" * 64)
    middle = len(credential) // 2
    swapped = "A" if credential[middle] != "A" else "B"
    with pytest.raises(AuthError) as caught:
        hub.decode(credential[:middle] + swapped + credential[middle + 1 :])
    assert not isinstance(caught.value, RetryableWireError)


@needs_munged
@pytest.mark.parametrize(
    "garbage",
    ["", "x", "MUNGE:", "MUNGE::", "MUNGE:AwQDAAA:", "MUNGE:" + "A" * 500 + ":", "a\0b", "M\nN", "ключ", "A" * 10**6],
)
def test_garbage_is_refused(hub: Munge, garbage: str) -> None:
    """Whatever stands in the place of a credential gives one AuthError line, not retryable."""
    with pytest.raises(AuthError) as caught:
        hub.decode(garbage)
    assert not isinstance(caught.value, RetryableWireError)
    assert len(str(caught.value)) < 300
    assert "\n" not in str(caught.value)


@needs_munged
def test_sizes_are_bounded(hub: Munge) -> None:
    """A payload that no caller of ours makes is refused before munged sees it."""
    with pytest.raises(AuthError, match="4097 bytes"):
        hub.encode(b"x" * 4097)
    assert len(hub.decode(hub.encode(b"x" * 4096)).payload) == 4096


@needs_munged
def test_a_missing_munged_is_retryable(tmp_path: Path) -> None:
    """Without a munged behind the socket both directions say so, and that trying again may help."""
    nobody = Munge(str(tmp_path / "none"))
    for attempt in (lambda: nobody.encode(b"x"), lambda: nobody.decode("MUNGE:AwQDAAA:")):
        with pytest.raises(RetryableAuthError, match=r"munged does not answer on this host .*: start munge"):
            attempt()


@needs_munged
def test_threads_share_one_object(node: Munge, hub: Munge) -> None:
    """Eight threads encode and decode through the same objects; each gets its own payload back."""
    wrong: list[object] = []

    def work(name: int) -> None:
        for i in range(25):
            payload = f"{name}:{i}".encode()
            found = hub.decode(node.encode(payload))
            if (found.payload, found.origin_address) != (payload, "127.0.0.2"):
                wrong.append(found)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@dataclass
class Pair:
    """Both sides of one kind of credential, and a client's side whose acknowledgements another hub would sign."""

    issuer: CredentialIssuer
    checkers: dict[Via, CredentialChecker]
    stranger: CredentialIssuer  # a client that must not accept this hub's acknowledgements
    bound: bool  # a credential is good for one request only


@pytest.fixture(params=["munge", "token"])
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> Pair:
    if request.param == "token":
        mine, other, all_of_them = tmp_path / "mine", tmp_path / "other", tmp_path / "all"
        for path, text in ((mine, "a" * 32), (other, "b" * 32), (all_of_them, f"gpu1 {'a' * 32}\ngpu2 {'b' * 32}\n")):
            path.touch(mode=0o600)
            path.write_text(text)
        return Pair(TokenIssuer(mine), {"token": TokenChecker(all_of_them)}, TokenIssuer(other), bound=False)
    if MUNGED is None:
        pytest.skip("munged is not installed (Debian: munge)")
    node, hub = request.getfixturevalue("node"), request.getfixturevalue("hub")
    issuer, stranger = MungeIssuer(node, os.getuid()), MungeIssuer(node, os.getuid() + 1)
    return Pair(issuer, {"munge": MungeChecker(hub)}, stranger, bound=True)


def test_a_signed_request_names_its_caller(pair: Pair) -> None:
    """The hub learns the caller from a request signed for the same method, target and body."""
    headers = sign_request(pair.issuer, "GET", "/v1/jobs/4%2B1?x=1")
    caller = verify_request(pair.checkers, headers["Authorization"], "GET", "/v1/jobs/4%2B1?x=1")
    assert caller.via in pair.checkers
    assert (caller.uid, caller.origin) == ((os.getuid(), "127.0.0.2") if pair.bound else (None, ""))
    assert caller.name == ("" if pair.bound else "gpu1")


@pytest.mark.parametrize(
    ("method", "target", "body"),
    [("POST", "/v1/x", b"body"), ("GET", "/v1/y", b"body"), ("GET", "/v1/x", b"body2"), ("GET", "/v1/x?a=1", b"body")],
)
def test_a_credential_is_bound_to_its_request(pair: Pair, method: str, target: str, body: bytes) -> None:
    """A captured munge credential is good for no other request; a token is a password and is not bound."""
    value = sign_request(pair.issuer, "GET", "/v1/x", b"body")["Authorization"]
    if not pair.bound:
        assert verify_request(pair.checkers, value, method, target, body).name == "gpu1"
        return
    with pytest.raises(AuthError, match="another request"):
        verify_request(pair.checkers, value, method, target, body)


@pytest.mark.parametrize("value", ["", "Munge", "Bearer", "Basic YTpi", "Munge x", "Bearer x", "Bearer ü", "x" * 9000])
def test_a_bad_authorization_header_is_refused(pair: Pair, value: str) -> None:
    """A missing, foreign or false header gives AuthError that is not retryable."""
    with pytest.raises(AuthError) as caught:
        verify_request(pair.checkers, value, "GET", "/")
    assert not isinstance(caught.value, RetryableWireError)


def test_an_acknowledgement_is_the_hubs_and_of_this_body(pair: Pair) -> None:
    """The client accepts the hub's signature over the very body, and nothing else."""
    caller = verify_request(pair.checkers, sign_request(pair.issuer, "GET", "/")["Authorization"], "GET", "/")

    def signature() -> str:
        return sign_ack(pair.checkers, caller, b'{"accepted":1}')[ACK_HEADER]

    verify_ack(pair.issuer, signature(), b'{"accepted":1}')
    for issuer, credential, body in (
        (pair.issuer, signature(), b'{"accepted":2}'),
        (pair.stranger, signature(), b'{"accepted":1}'),
        (pair.issuer, "", b'{"accepted":1}'),
        (pair.issuer, "forged", b'{"accepted":1}'),
    ):
        with pytest.raises(AuthError):
            verify_ack(issuer, credential, body)


def test_an_answer_to_an_order_is_good_for_its_own_request(pair: Pair) -> None:
    """Held back and handed over as the answer to a later request it is refused; a token is no one-time credential."""
    first, later = (sign_request(pair.issuer, "POST", "/v1/actions/claim", b"{}")["Authorization"] for _ in range(2))
    caller = verify_request(pair.checkers, first, "POST", "/v1/actions/claim", b"{}")

    def signature() -> str:
        return sign_ack(pair.checkers, caller, b'{"taken":true}', first)[ACK_HEADER]

    verify_ack(pair.issuer, signature(), b'{"taken":true}', first)
    with pytest.raises(AuthError):
        verify_ack(pair.issuer, signature(), b'{"taken":true}')
    if pair.bound:
        with pytest.raises(AuthError):
            verify_ack(pair.issuer, signature(), b'{"taken":true}', later)


def test_a_request_credential_is_no_acknowledgement(pair: Pair) -> None:
    """What a client signs cannot be turned around as the hub's word, even by the same user."""
    value = sign_request(pair.issuer, "POST", "/v1/hours", b"{}")["Authorization"].partition(" ")[2]
    with pytest.raises(AuthError):
        verify_ack(pair.issuer, value, b"{}")


@needs_munged
def test_the_example_client_of_idleness_checks_the_hubs_signature_with_munges_commands(
    node: Munge, hub: Munge, start_munged: Callable[..., str]
) -> None:
    """Its credential is good at the hub once; it accepts the hub's signature for this request, once, and no other."""
    client = example_client()
    proof = client.MungeProof(pwd.getpwuid(os.getuid()).pw_name, start_munged("culler", "127.0.0.3"))
    digest = request_digest("GET", "/v1/jobs/7/idleness?nonce=n", b"")
    scheme, credential = proof.credential(digest).split(" ")
    checker = MungeChecker(hub)
    caller = checker.check(credential, digest)
    assert (scheme, caller.uid, caller.origin) == ("Munge", os.getuid(), "127.0.0.3")
    answer = ack_digest(b"yes", f"{scheme} {credential}")
    signed = checker.issue_ack(caller, answer)
    with pytest.raises(client.NotAnsweredError, match="not signed by the hub"):
        proof.check(checker.issue_ack(caller, answer), ack_digest(b"yes", "Munge another"))
    proof.check(signed, answer)
    for bad in (signed, "", "MUNGE:AwQ:"):
        with pytest.raises(client.NotAnsweredError, match="unmunge: exit code"):
            proof.check(bad, answer)
