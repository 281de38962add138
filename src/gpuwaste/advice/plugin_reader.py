"""What the submit plugins read from gpuwaste.toml: the rules of their line reader, so that a check can report errors.

plugins/job_submit/common/config.c is the reader; a test keeps the two equal. It understands one `KEY = INTEGER` or `KEY
= "TEXT"` a line below `[plugin]`, and `socket` below `[advisor]`. A line it does not understand leaves the default.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from gpuwaste.core.advice_config import AdvisorConfig, PluginConfig
from gpuwaste.core.config_files import LARGEST, config_files
from gpuwaste.core.typed_toml import read_data
from gpuwaste.core.unix_socket import MAX_BYTES

LONGEST_LINE: Final = 2046  # bytes
NUMBERS: Final = {
    "deadline_us": (100, 10_000_000),
    "breaker_misses": (1, 1_000_000),
    "breaker_first_ms": (1, 86_400_000),
    "breaker_max_ms": (1, 86_400_000),
    "stale_s": (1, 1_000_000_000),
    "script_bytes": (0, 65_536),
}
TEXTS: Final = {("plugin", "kill_switch"): 1023, ("plugin", "advisor_user"): 63, ("advisor", "socket"): MAX_BYTES}
_SECTION_BYTES: Final = 31
_BLANKS: Final = b" \t\n\v\f\r"
_REST: Final = rb"[ \t\n\v\f\r]*(?:#.*)?"
_SECTION: Final = re.compile(rb"\[([^\]]*)\]" + _REST, re.DOTALL)
_NUMBER: Final = re.compile(rb"([0-9](?:_?[0-9])*)" + _REST, re.DOTALL)
_TEXT: Final = re.compile(rb"(?:\"([^\"\\\x00-\x1f\x7f]*)\"|'([^'\\\x00-\x1f\x7f]*)')" + _REST, re.DOTALL)
_DIGITS: Final = 18


@dataclass(slots=True)
class PluginReading:
    """The settings that the plugins take, by key, and the lines that they do not understand: file, number, key, why."""

    values: dict[str, int | str]
    odd: list[tuple[Path, int, str, str]] = field(default_factory=list)


def read_as_plugin(path: Path) -> PluginReading:
    """Return what the plugins take from a file and its drop-ins. Raises OSError, ConfigError."""
    plugin = PluginConfig()
    usual: dict[str, int | str] = {key: getattr(plugin, key) for key in (*NUMBERS, "kill_switch", "advisor_user")}
    reading = PluginReading({**usual, "socket": AdvisorConfig().socket})
    first, *others = config_files(path)
    if first.exists() or not others:
        _take_lines(reading, first, first.read_bytes())
    for file in others:
        _take_lines(reading, file, read_data(file, LARGEST, "a configuration file"))
    if _number(reading, "breaker_max_ms") < _number(reading, "breaker_first_ms"):
        reading.values["breaker_max_ms"] = reading.values["breaker_first_ms"]
    return reading


def _take_lines(reading: PluginReading, file: Path, data: bytes) -> None:
    section = b""
    for number, raw in enumerate(data.split(b"\n"), 1):
        line = raw.strip(_BLANKS)
        if len(raw) > LONGEST_LINE:
            if section == b"plugin":
                reading.odd.append((file, number, "", "line too long"))
        elif line.startswith(b"["):
            found = _SECTION.fullmatch(line)
            section = found[1] if found and len(found[1]) <= _SECTION_BYTES else b""
        elif line and not line.startswith(b"#") and (odd := _take(reading, section, line)):
            reading.odd.append((file, number, *odd))


def _take(reading: PluginReading, section: bytes, line: bytes) -> tuple[str, str] | None:
    """Take a line; return the key and, where the line cannot be understood, why."""
    name, equals, value = line.partition(b"=")
    ours = section == b"plugin"
    key, place = name.strip(_BLANKS).decode("utf-8", "replace"), section.decode("utf-8", "replace")
    if equals and ours and key in NUMBERS:
        why = _take_number(reading, key, value.strip(_BLANKS))
    elif equals and (place, key) in TEXTS:
        why = _take_text(reading, place, key, value.strip(_BLANKS))
    else:
        why = "" if not ours else "not a key of [plugin]" if equals else "expected KEY = VALUE"
    return (key, why) if why else None


def _take_number(reading: PluginReading, key: str, value: bytes) -> str:
    found = _NUMBER.fullmatch(value)
    digits = found[1].replace(b"_", b"") if found else b""
    if not digits or len(digits) > _DIGITS:
        return "expected a whole number"
    least, most = NUMBERS[key]
    if not least <= int(digits) <= most:
        return f"number out of range ({least} to {most})"
    reading.values[key] = int(digits)
    return ""


def _take_text(reading: PluginReading, section: str, key: str, value: bytes) -> str:
    found = _TEXT.fullmatch(value)
    text = (found[1] or found[2] or b"") if found else b""
    if not text:
        return 'expected a "text" without backslashes'
    if len(text) > TEXTS[section, key]:
        return "text too long"
    reading.values[key] = text.decode("utf-8", "replace")
    return ""


def _number(reading: PluginReading, key: str) -> int:
    value = reading.values[key]
    return value if isinstance(value, int) else 0
