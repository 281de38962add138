"""The version of this distribution, as the daemons tell it."""

from importlib.metadata import PackageNotFoundError, version


def own_version() -> str:
    """Return the version, "0" where the code runs from a copy that was not installed."""
    try:
        return version("gpuwaste")
    except PackageNotFoundError:
        return "0"
