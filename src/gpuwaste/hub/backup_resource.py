"""A copy of the store while the hub runs: /v1/backup."""

from typing import Any

from gpuwaste.core.scope import Scope
from gpuwaste.hub.models import BackupAnswer
from gpuwaste.show.resource import NoQuestion, Order, Reading, Resource


def begin(reading: Reading, scope: Scope, _: NoQuestion, __: bytes) -> dict[str, Any]:
    """Start a backup of the store, unless one is running; for root, operators and staff."""
    from gpuwaste.hub.backup import Backups

    return reading.get(Backups).begin(scope)


def stands(reading: Reading, scope: Scope, _: NoQuestion) -> dict[str, Any]:
    """Return the state of the backup."""
    from gpuwaste.hub.backup import Backups

    return reading.get(Backups).stands(scope)


RESOURCES = (
    Order(path="/v1/backup", question=NoQuestion, document=BackupAnswer, do=begin),
    Resource(path="/v1/backup", question=NoQuestion, document=BackupAnswer, read=stands),
)
