"""munge: a credential is created and decoded on this host."""

from collections.abc import Iterator
from typing import Final

from gpuwaste.cli.check import EVERYWHERE, Check, Role, Status, Surroundings
from gpuwaste.core.errors import GpuwasteError
from gpuwaste.net.addresses import is_loopback_address
from gpuwaste.net.munge_credentials import START_MUNGE, Munge

PLACE: Final = 30
NAME: Final = "munge"
ROLES: Final = EVERYWHERE
_KEYS: Final = "[common] munge_socket or token_file"


def check(around: Surroundings) -> Iterator[Check]:
    """Create a credential and decode it."""
    if around.config.common.token_file:
        yield Check(NAME, Status.OK, "not used: token_file is set")
        return
    try:
        munge = Munge(around.config.common.munge_socket)
        identity = munge.decode(munge.encode(b"doctor"))
    except GpuwasteError as error:
        found = str(error).removesuffix(START_MUNGE)
        yield Check(NAME, Status.FAIL, found, f"as root: systemctl start munge; or set {_KEYS}")
        return
    origin = identity.origin_address
    if Role.AGENT in around.roles and Role.HUB not in around.roles and is_loopback_address(origin):
        yield from _loopback(around, origin)
        return
    yield Check(NAME, Status.OK, f"credentials work for uid {identity.uid} from {origin}")


def _loopback(around: Surroundings, origin: str) -> Iterator[Check]:
    """Check a node whose munged has a loopback address: a hub elsewhere compares it with NodeAddr."""
    nodes = around.slurm.nodes()
    if any(node.address == origin for node in nodes):
        yield Check(NAME, Status.OK, f"credentials work, from {origin}, which is a NodeAddr")
        return
    address = next((n.address for n in nodes if around.host in {n.name, n.hostname}), "") or "NODEADDR"
    yield Check(
        NAME,
        Status.FAIL,
        f"credentials of this node are from {origin}, as /etc/hosts has it: a hub on another host rejects"
        " this node's rows",
        f'write OPTIONS="--origin={address}" to /etc/default/munge or /etc/sysconfig/munge, then restart munge',
    )
