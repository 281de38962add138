"""Mail as it travels: headers that no name can break, one plain text, marked as sent by a program."""

import hashlib
from datetime import UTC, datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from typing import Final

from gpuwaste.show.cells import fit

_SUBJECT: Final = 150  # columns


def make_message(
    *, sender: str, reply_to: str, to: str, subject: str, text: str, at_utc: int, key: str
) -> EmailMessage:
    """Return one mail. The addresses were checked when they were read.

    `key` names what it tells to whom: the same key gives the same Message-ID, so that a mailbox knows a copy.
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
