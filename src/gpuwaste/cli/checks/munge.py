"""munge: a credential is created and decoded on this host."""

from collections.abc import Iterator
from typing import Final

from gpuwaste.cli.check import EVERYWHERE, Check, Status, Surroundings
from gpuwaste.core.errors import GpuwasteError
from gpuwaste.wire.munge import Munge

PLACE: Final = 30
NAME: Final = "munge"
ROLES: Final = EVERYWHERE


def check(around: Surroundings) -> Iterator[Check]:
    """Create a credential and decode it."""
    if around.config.common.token_file:
        yield Check(NAME, Status.OK, "not used: token_file is set")
        return
    try:
        munge = Munge(around.config.common.munge_socket)
        identity = munge.decode(munge.encode(b"doctor"))
    except GpuwasteError as error:
        yield Check(NAME, Status.FAIL, str(error), "start munged, or set [common] munge_socket or token_file")
        return
    yield Check(NAME, Status.OK, f"credentials work for uid {identity.uid} from {identity.origin_address}")
