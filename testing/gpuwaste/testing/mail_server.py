"""A real SMTP server on loopback that keeps what it gets, and refuses, dawdles or hangs up as a test says."""

import asyncio
import email
import email.policy
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import EmailMessage

from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

_START_S = 20.0


@dataclass(frozen=True, slots=True)
class ReceivedMail:
    """One mail as it came."""

    sender: str
    to: tuple[str, ...]
    raw: bytes

    @property
    def message(self) -> EmailMessage:
        """The mail, parsed."""
        parsed = email.message_from_bytes(self.raw, policy=email.policy.default)
        assert isinstance(parsed, EmailMessage)  # noqa: S101 what the policy makes
        return parsed

    @property
    def text(self) -> str:
        """Its body."""
        return str(self.message.get_content())


@dataclass
class MailServer:
    """What the server has, and what it shall do; the answers to RCPT are by address."""

    received: list[ReceivedMail] = field(default_factory=list)
    rcpt: dict[str, str] = field(default_factory=dict)
    data: str = ""  # answer to a mail instead of 250
    hang_up: bool = False  # take the mail and close without an answer
    slow_s: float = 0.0  # before the answer to RCPT
    port: int = 0
    loop: asyncio.AbstractEventLoop | None = None

    async def handle_RCPT(  # noqa: N802 aiosmtpd's name
        self, server: SMTP, session: Session, envelope: Envelope, address: str, rcpt_options: list[str]
    ) -> str:
        """Take or refuse an address."""
        del server, session, rcpt_options
        await asyncio.sleep(self.slow_s)
        if address in self.rcpt:
            return self.rcpt[address]
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802 aiosmtpd's name
        """Take a mail."""
        del session
        if self.data:
            return self.data
        content = envelope.content or b""
        raw = content.encode() if isinstance(content, str) else content
        self.received.append(ReceivedMail(str(envelope.mail_from), tuple(envelope.rcpt_tos), raw))
        if self.hang_up and server.transport is not None:
            server.transport.close()
        return "250 taken"

    def to(self, address: str) -> list[ReceivedMail]:
        """Return what came for an address."""
        return [mail for mail in self.received if address in mail.to]


@contextmanager
def running_mail_server(
    port: int = 0, *, starttls: ssl.SSLContext | None = None, tls: ssl.SSLContext | None = None, password: str = ""
) -> Iterator[MailServer]:
    """Serve on a loopback port until the block ends.

    `starttls` asks for it before any mail, `tls` speaks it from the first byte; `password` asks for a login with it.
    """
    kept = MailServer()
    loop = asyncio.new_event_loop()
    ready = threading.Event()

    def known(_: SMTP, __: Session, ___: Envelope, ____: str, data: LoginPassword) -> AuthResult:
        return AuthResult(success=data.password == password.encode(), handled=False)

    def protocol() -> SMTP:
        return SMTP(
            kept, loop=loop, tls_context=starttls, require_starttls=starttls is not None,
            authenticator=known if password else None, auth_required=bool(password), auth_require_tls=tls is None,
        )  # fmt: skip

    async def serve() -> None:
        server = await loop.create_server(protocol, "127.0.0.1", port, ssl=tls)
        kept.port = server.sockets[0].getsockname()[1]
        ready.set()

    def work() -> None:
        loop.run_until_complete(serve())
        loop.run_forever()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    assert ready.wait(_START_S), "the mail server does not start"  # noqa: S101 a test's own stop
    try:
        yield kept
    finally:
        loop.call_soon_threadsafe(_end, loop)
        thread.join(_START_S)
        loop.close()


def _end(loop: asyncio.AbstractEventLoop) -> None:
    """Give up what still waits, and stop once it has heard of it."""
    for task in asyncio.all_tasks(loop):
        task.cancel()
    loop.call_later(0.05, loop.stop)
