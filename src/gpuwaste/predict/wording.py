"""Numbers and features in the words of the user whose job it is."""

from typing import Final

from gpuwaste.core.units import format_size, say_duration
from gpuwaste.predict.features.base import Feature
from gpuwaste.predict.view import RING, View

_NAME: Final = 40


def number(value: float, digits: int = 1) -> str:
    """Return a number without an empty fraction."""
    return f"{value:.{digits}f}".removesuffix(".0")


def amount(value: float, unit: str) -> str:
    """Return a value in its unit as one says it."""
    if unit == "s":
        return say_duration(value)
    if unit == "B":
        return format_size(value)
    return f"{value:.0f}" if value == round(value) else number(value, 1 if abs(value) >= 1 else 2)


def named(key: str, view: View) -> str:
    """Return how the user's jobs of a key are told from others: " named train"."""
    if key == "name":
        return f" named {view.request.name[:_NAME]}"
    return " of this size and limit" if key == "shape" else ""


def last_jobs(key: str, view: View) -> str:
    """Return "your last 8 jobs named train", with as many as there are."""
    count = view.remembered(key)
    return f"your last {count} jobs{named(key, view)}" if count > 1 else f"your last job{named(key, view)}"


def feature_text(feature: Feature, value: float, key: str, view: View) -> str:
    """Return a feature's own sentence with its value, spoken to the user."""
    flag = "{value}: 1 yes, 0 no"
    if flag in feature.text:
        text = feature.text.replace(f" ({flag})", "")
        text = text if value else text.replace(" failed", " did not fail") if " failed" in text else f"no: {text}"
    else:
        text = feature.text.replace("{value}", amount(value, feature.unit))
    if key in {"user", "shape", "name"}:
        count = view.remembered(key)
        of_user = "jobs of this user" + {"name": " with this name", "shape": " with this size and limit"}.get(key, "")
        text = text.replace(f"the last {RING} {of_user}", last_jobs(key, view) if count else of_user)
        text = text.replace(f"the last of the {of_user}", f"your last job{named(key, view)}")
        text = text.replace(
            f"{amount(value, feature.unit)} {of_user}", f"{amount(value, feature.unit)} of your jobs{named(key, view)}"
        )
        text = text.replace(f"of the {of_user}", f"of your jobs{named(key, view)}")
        text = text.replace(of_user, f"your jobs{named(key, view)}")
    return text.replace(
        "of this account", f"of account {view.request.account[:_NAME]}" if view.request.account else "of your account"
    )
