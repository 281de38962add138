"""The only tree of errors: each message names what is wrong, where, and what to do about it."""

from typing import Final

MAX_WORDS: Final = 5000
"""Characters of another program's message that an error repeats: it may hold a path, which has up to 4096 bytes."""


class GpuwasteError(Exception):
    """An error that a person can act on; commands print it as one line."""

    exit_code = 1


class UsageError(GpuwasteError):
    """The command was called with wrong or contradictory arguments (exit code 2)."""

    exit_code = 2


class NoDataError(GpuwasteError):
    """The request is valid, but there is no data for it (exit code 3)."""

    exit_code = 3


class ConfigError(GpuwasteError):
    """The configuration has an error."""

    exit_code = 2


class ParseError(GpuwasteError):
    """Input from Slurm, PCP, a peer or a file does not have the expected format."""


class SlurmError(GpuwasteError):
    """A Slurm command or service did not answer, or answered with an error."""


class ModelError(GpuwasteError):
    """A model bundle cannot be used; the one in use stays in use."""


class StoreError(GpuwasteError):
    """A store cannot be opened, read or written."""


class WireError(GpuwasteError):
    """The other side of a connection cannot be reached or uses another protocol."""


class RetryableWireError(WireError):
    """The same request may succeed later; it can be repeated without loss."""


class AuthError(WireError):
    """Authentication failed, on this side or on the other."""
