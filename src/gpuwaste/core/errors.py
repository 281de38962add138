"""The one tree of errors: each message says what is wrong, where, and what to do about it."""

from typing import Final

MAX_WORDS: Final = 5000
"""Characters of another program's words that an error repeats: they may hold a path, which has up to 4096 bytes."""


class GpuwasteError(Exception):
    """Anything that a person can act on; commands print it as one line."""

    exit_code = 1


class UsageError(GpuwasteError):
    """The caller asked for something that cannot be (exit code 2)."""

    exit_code = 2


class NoDataError(GpuwasteError):
    """The question is fine and there is nothing to answer it with (exit code 3)."""

    exit_code = 3


class ConfigError(GpuwasteError):
    """The configuration file cannot be used as it stands."""

    exit_code = 2


class ParseError(GpuwasteError):
    """A text from Slurm, PCP or a peer is not what its format says."""


class SlurmError(GpuwasteError):
    """A Slurm command or service did not answer, or answered with an error."""


class ModelError(GpuwasteError):
    """A model bundle cannot be used; the one in use stays in its place."""


class StoreError(GpuwasteError):
    """A store cannot be opened, read or written."""


class WireError(GpuwasteError):
    """The other side of a connection cannot be reached or does not speak our protocol."""


class RetryableWireError(WireError):
    """The same request may succeed later: nothing is lost by sending it again."""


class AuthError(WireError):
    """The other side could not be, or was not, authenticated."""
