"""Mail over a real SMTP server: what arrives, and what is said of mail that does not; no name breaks a header."""

import socket
import ssl
import threading
from collections.abc import Iterator
from email.message import EmailMessage
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Literal

import pytest
from tests.self_signed import self_signed

from gpuwaste.act.notify.mailer import ServerDownError, SmtpMailer, make_message
from gpuwaste.testing.daemon_config import free_port
from gpuwaste.testing.mail_server import MailServer, running_mail_server

FROM, TO = "hpc@example.org", "alice@example.org"
NOW = 1_763_000_000


@pytest.fixture
def server() -> Iterator[MailServer]:
    with running_mail_server() as running:
        yield running


def mail(subject: str = "Idle GPUs", text: str = "Dear alice,\n", key: str = "digest alice 1") -> EmailMessage:
    """Return a mail to alice."""
    return make_message(sender=FROM, reply_to="", to=TO, subject=subject, text=text, at_utc=NOW, key=key)


def send(server: MailServer, message: EmailMessage | None = None, timeout_s: float = 20.0) -> tuple[str, str]:
    """Send a mail; returns what became of it."""
    done = SmtpMailer("127.0.0.1", server.port, timeout_s=timeout_s).send(message or mail(), FROM, TO)
    return done.status, done.detail


def test_a_mail_arrives_whole(server: MailServer) -> None:
    """Headers, text, lines of dots and long lines come as they were written."""
    text = "Dear alice,\n.\n..two\n" + "x" * 2000 + "\n\u2013 ende\n"
    assert send(server, mail(text=text))[0] == "sent"
    (got,) = server.received
    assert (got.sender, got.to, got.text.replace("\r\n", "\n")) == (FROM, (TO,), text)
    message = got.message
    assert message["From"].addresses[0].addr_spec == FROM
    assert (message["Subject"], message["Auto-Submitted"]) == ("Idle GPUs", "auto-generated")
    assert int(parsedate_to_datetime(str(message["Date"])).timestamp()) == NOW
    assert all(len(line) <= 998 for line in got.raw.split(b"\r\n"))


@pytest.mark.parametrize(
    "name",
    [
        "a\r\nBcc: eve@example.org",
        "a\nX: y",
        "\r\n.\r\nMAIL FROM:<x@y>",
        "\x00\x1b[31m\x7f",
        "\u202egnp.exe",
        "j" * 5000,
    ],
)
def test_hostile_names_break_nothing(server: MailServer, name: str) -> None:
    """A job's or user's name with line breaks or control characters, or a very long one, adds no header and no mail."""
    assert send(server, mail(f"GPU-time of {name}", f"job {name}\n"))[0] == "sent"
    (got,) = server.received
    assert set(got.message.keys()) == {
        *("From", "To", "Subject", "Date", "Message-ID", "Auto-Submitted", "X-Auto-Response-Suppress"),
        *("Content-Type", "Content-Transfer-Encoding", "MIME-Version"),
    }
    subject = str(got.message["Subject"])
    assert subject.isprintable()
    assert len(subject) <= 150
    assert got.to == (TO,)


def test_the_same_key_gives_the_same_id() -> None:
    """A copy is known by its Message-ID, another period's mail has another."""
    assert mail()["Message-ID"] == mail()["Message-ID"]
    assert mail()["Message-ID"] != mail(key="digest alice 2")["Message-ID"]


def test_refusals_are_told_apart(server: MailServer) -> None:
    """5xx for one address is final, 4xx is for later, both with the server's words; the next mail goes."""
    server.rcpt[TO] = "550 no such user"
    assert send(server) == ("failed", "550 no such user")
    server.rcpt[TO] = "451 greylisted"
    assert send(server) == ("later", "451 greylisted")
    server.rcpt.clear()
    server.data = "452 no space"
    assert send(server) == ("later", "452 no space")
    server.data = "554 spam"
    assert send(server) == ("failed", "554 spam")
    server.data = ""
    assert send(server)[0] == "sent"
    assert len(server.received) == 1


def test_no_answer_after_the_last_line_is_unclear(server: MailServer) -> None:
    """The server has the mail and hangs up before it says so: nobody can say that it was not sent."""
    server.hang_up = True
    assert send(server)[0] == "unclear"
    assert len(server.received) == 1


def test_a_server_that_is_down() -> None:
    """Nothing listens: it may be tried again."""
    with pytest.raises(ServerDownError, match="mail server 127"):
        SmtpMailer("127.0.0.1", free_port(), timeout_s=5).send(mail(), FROM, TO)


def test_a_silent_server_is_given_up(server: MailServer) -> None:
    """A server that takes the connection and never answers, or only after an age, is left at the deadline."""
    server.slow_s = 60
    with pytest.raises(ServerDownError):
        send(server, timeout_s=0.3)
    assert server.received == []


def test_a_server_that_drips_is_cut() -> None:
    """One byte at a time keeps no thread: the whole exchange has a deadline beside that of each step."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        done = threading.Event()

        def drip() -> None:
            peer, _ = listener.accept()
            with peer:
                while not done.wait(0.05):
                    try:
                        peer.sendall(b"2")
                    except OSError:
                        return

        thread = threading.Thread(target=drip)
        thread.start()
        try:
            with pytest.raises(ServerDownError):
                SmtpMailer("127.0.0.1", listener.getsockname()[1], timeout_s=0.4).send(mail(), FROM, TO)
        finally:
            done.set()
            thread.join(10)


@pytest.mark.parametrize(
    "greeting", [b"554 go away\r\n", b"421 busy\r\n", b"HTTP/1.1 400 Bad\r\n\r\n", b"\xff\x00\r\n", b""]
)
def test_what_is_no_mail_server(greeting: bytes) -> None:
    """A foreign server, or one that turns everybody away, is a server that is down."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            peer, _ = listener.accept()
            with peer:
                peer.sendall(greeting)

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(ServerDownError):
            SmtpMailer("127.0.0.1", listener.getsockname()[1], timeout_s=5).send(mail(), FROM, TO)
        thread.join(10)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a PEM file with a key and its certificate, of the address 127.0.0.1."""
    folder = tmp_path_factory.mktemp("tls")
    self_signed(folder / "cert", folder / "key", common_name="mail")
    whole = folder / "whole.pem"
    whole.write_bytes((folder / "key").read_bytes() + (folder / "cert").read_bytes())
    return whole


@pytest.mark.parametrize("kind", ["starttls", "tls"])
def test_tls_and_login(certificate: Path, tmp_path: Path, kind: Literal["starttls", "tls"]) -> None:
    """Over TLS of either kind, with the password from its file; another authority, host or password sends nothing."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate)
    secret = tmp_path / "password"
    secret.write_text("s3cret\n")
    first, later = (context, None) if kind == "tls" else (None, context)
    with running_mail_server(password="s3cret", tls=first, starttls=later) as server:  # noqa: S106 a made-up one

        def to(host: str = "127.0.0.1", ca: str = str(certificate)) -> str:
            mailer = SmtpMailer(host, server.port, kind, ca, "hpc", secret, 20)
            return mailer.send(mail(), FROM, TO).status

        assert to() == "sent"
        with pytest.raises(ServerDownError, match="certificate"):
            to(ca="")
        with pytest.raises(ServerDownError, match="certificate"):
            to(host="localhost")
        secret.write_text("wrong")
        with pytest.raises(ServerDownError, match="535"):
            to()
        assert len(server.received) == 1


def test_starttls_is_not_left_out(server: MailServer) -> None:
    """A server without STARTTLS gets no mail and no password in the clear."""
    with pytest.raises(ServerDownError, match="STARTTLS"):
        SmtpMailer("127.0.0.1", server.port, "starttls", user="u").send(mail(), FROM, TO)
