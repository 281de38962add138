"""Hours of the day have one format in gpuwaste.toml, rules and policies."""

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import gpuwaste.core
from gpuwaste.act.notify.notify_settings import NotifySettings
from gpuwaste.advice.policy.policy_file import READERS
from gpuwaste.core.act_config import NotifyConfig
from gpuwaste.core.day_hours import Hours, parse_day_hours
from gpuwaste.core.errors import ConfigError


def _of_notices(value: Any) -> Hours | None:
    return NotifySettings.from_config(NotifyConfig(quiet_hours=value)).quiet_hours


def _of_rules(value: Any) -> Hours | None:
    found = READERS[Hours](value, "quiet_hours")
    return found if isinstance(found, Hours) else None


@pytest.mark.parametrize("reader", [_of_notices, _of_rules])
def test_both_files_read_the_same_hours(reader: Any) -> None:
    """[notify] quiet_hours and quiet_hours of a rule take HH:MM-HH:MM, over midnight too."""
    assert reader("20:00-07:00") == Hours(1200, 420)
    assert reader("22:30-24:00") == Hours(1350, 1440)


@pytest.mark.parametrize("reader", [_of_notices, _of_rules])
def test_whole_hours_are_refused_with_what_to_write(reader: Any) -> None:
    """A file that still has 20-7 is refused in one line that has the new text."""
    with pytest.raises(ConfigError, match=r"quiet_hours: expected .* found '20-7': write \"20:00-07:00\"$"):
        reader("20-7")


@pytest.mark.parametrize(
    "value", ["20", "20:00", "20:00-20:00", "25:00-03:00", "a-b", "20-7-8", "20:60-21:00", 7, None]
)
def test_other_texts_are_no_hours(value: Any) -> None:
    """What is no part of the day is refused."""
    with pytest.raises(ConfigError, match=r"^here: "):
        parse_day_hours(value, "here")


def test_no_mail_is_sent_in_quiet_hours() -> None:
    """20:00-07:00 is quiet from 20:00 to 06:59 in the site's zone; without the key no hour is quiet."""
    settings = NotifySettings.from_config(NotifyConfig(quiet_hours="20:00-07:00", zone="Europe/Berlin"))
    begin = int(datetime(2026, 11, 15, 23, tzinfo=UTC).timestamp())  # midnight in Berlin
    told = {hour for hour in range(24) if not settings.quiet(begin + hour * 3600 + 1800)}
    assert told == set(range(7, 20))
    assert not NotifySettings.from_config(NotifyConfig()).quiet(begin)


def test_no_other_module_reads_hours_of_the_day() -> None:
    """core/day_hours.py has the one pattern of them, and no page shows another format."""
    root = Path(next(iter(gpuwaste.core.__path__))).parent
    texts = {path.relative_to(root).as_posix(): path.read_text() for path in root.rglob("*.py")}
    pair = re.compile(r"\\d\{(?:1,)?2\}\)-\(\\d")  # digits, a dash, digits: of hours, written as a pattern
    assert [name for name, text in texts.items() if pair.search(text)] == ["core/day_hours.py"]
    assert not [name for name, text in texts.items() if "quiet_hours" in text and "strptime" in text]
