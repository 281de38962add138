"""One mail to one address: its headers and text, and SMTP with a deadline: sent, not sent, or perhaps sent.

No name can break a header. Each mail is marked as sent by a program.
"""

import contextlib
import hashlib
import re
import smtplib
import socket
import ssl
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from pathlib import Path
from typing import Final, Literal, Protocol

from gpuwaste.act.notify.notice_store import NoticeStatus
from gpuwaste.core.errors import GpuwasteError
from gpuwaste.core.text import words_of
from gpuwaste.show.terminal_cells import fit

_SUBJECT: Final = 150  # columns
Tls = Literal["none", "starttls", "tls"]
_OK: Final = 250
_GO_AHEAD: Final = 354
_PERMANENT: Final = 500
_STEPS: Final = 3  # times the timeout of one step: the deadline of an entire exchange
_LONGEST: Final = 300  # characters kept of the mail server's reply
_DOTS: Final = re.compile(rb"(?m)^\.")


def make_message(
    *, sender: str, reply_to: str, to: str, subject: str, text: str, at_utc: int, key: str
) -> EmailMessage:
    """Return one mail. The addresses were checked when they were read.

    `key` identifies content and recipient: the same key gives the same Message-ID, so that a mailbox recognizes a copy.
    """
    message = EmailMessage(policy=SMTP)
    message["From"] = Address("gpuwaste", addr_spec=sender)
    message["To"] = Address(addr_spec=to)
    if reply_to:
        message["Reply-To"] = Address(addr_spec=reply_to)
    message["Subject"] = fit(subject, _SUBJECT)
    message["Date"] = datetime.fromtimestamp(at_utc, UTC)
    digest = hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    message["Message-ID"] = f"<gpuwaste.{digest}@{sender.rpartition('@')[2]}>"
    message["Auto-Submitted"] = "auto-generated"
    message["X-Auto-Response-Suppress"] = "All"
    message.set_content(text.encode("utf-8", "replace").decode(), charset="utf-8", cte="quoted-printable")
    return message


class ServerDownError(GpuwasteError):
    """The mail server is unreachable, or accepts no mail now: nothing was sent, a later try may work."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """The outcome of one mail, in the server's words. `unclear`: the server may have it, so it is not sent again."""

    status: NoticeStatus
    detail: str = ""


class Mailer(Protocol):
    """Sends mail."""

    def send(self, message: EmailMessage, sender: str, to: str) -> Delivery:
        """Send to one plain address. Raises ServerDownError."""
        ...


@dataclass(frozen=True, slots=True)
class SmtpMailer:
    """A mail server; each mail uses its own connection."""

    host: str
    port: int = 25
    tls: Tls = "none"
    ca: str = ""
    user: str = ""
    password_file: Path | None = None
    timeout_s: float = 20.0

    def send(self, message: EmailMessage, sender: str, to: str) -> Delivery:
        """Send one mail. Raises ServerDownError if the server is unreachable or accepts no mail now."""
        data = _DOTS.sub(b"..", message.as_bytes())
        try:
            with self._session() as smtp:
                return _transact(smtp, data, sender, to)
        except (OSError, smtplib.SMTPException, ValueError) as error:
            raise ServerDownError(f"mail server {self.host}:{self.port}: {_words(error)}") from error

    @contextlib.contextmanager
    def _session(self) -> Iterator[smtplib.SMTP]:
        """Yield a connection that is ready for a mail; it is cut at the deadline, whatever the server does."""
        context = ssl.create_default_context(cafile=self.ca or None) if self.tls != "none" else None
        if self.tls == "tls":
            smtp: smtplib.SMTP = smtplib.SMTP_SSL(timeout=self.timeout_s, context=context)
        else:
            smtp = smtplib.SMTP(timeout=self.timeout_s)
        watch = threading.Timer(self.timeout_s * _STEPS, _cut, [smtp])
        watch.daemon = True
        watch.start()
        try:
            if self.tls == "tls":
                smtp._host = self.host  # type: ignore[attr-defined]  # noqa: SLF001 the name that TLS checks
            code, words = smtp.connect(self.host, self.port)
            if code != 220:  # noqa: PLR2004 SMTP's greeting
                raise smtplib.SMTPConnectError(code, words)
            if self.tls == "starttls":
                smtp._host = self.host  # type: ignore[attr-defined]  # noqa: SLF001 the name that TLS checks
                smtp.starttls(context=context)
            smtp.ehlo_or_helo_if_needed()
            if self.user:
                smtp.login(self.user, self._password())
            yield smtp
        finally:
            watch.cancel()
            with contextlib.suppress(OSError, smtplib.SMTPException):
                smtp.close()

    def _password(self) -> str:
        return "" if self.password_file is None else self.password_file.read_text(encoding="utf-8").strip()


def _transact(smtp: smtplib.SMTP, data: bytes, sender: str, to: str) -> Delivery:
    """Deliver one mail. Until the last line nothing was sent; after it only the server knows."""
    code, words = smtp.mail(sender)
    if code != _OK:
        raise smtplib.SMTPSenderRefused(code, words, sender)
    code, words = smtp.rcpt(to)
    if code not in {_OK, 251}:
        return _refused(code, words)
    code, words = smtp.docmd("DATA")
    if code != _GO_AHEAD:
        return _refused(code, words)
    smtp.send(data if data.endswith(b"\r\n") else data + b"\r\n")
    try:
        smtp.send(b".\r\n")
        code, words = smtp.getreply()
    except (OSError, smtplib.SMTPException) as error:
        return Delivery(NoticeStatus.UNCLEAR, _words(error))
    if code == _OK:
        with contextlib.suppress(OSError, smtplib.SMTPException):
            smtp.quit()
        return Delivery(NoticeStatus.SENT, words_of(words, _LONGEST))
    return _refused(code, words)


def _refused(code: int, words: bytes) -> Delivery:
    status = NoticeStatus.FAILED if code >= _PERMANENT else NoticeStatus.LATER
    return Delivery(status, f"{code} {words_of(words, _LONGEST)}")


def _cut(smtp: smtplib.SMTP) -> None:
    sock = getattr(smtp, "sock", None)
    if sock is not None:
        with contextlib.suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)


def _words(error: Exception) -> str:
    said = getattr(error, "smtp_error", None)
    if said is not None:
        return f"{getattr(error, 'smtp_code', '')} {words_of(said, _LONGEST)}"
    return words_of(str(error) or type(error).__name__, _LONGEST)
