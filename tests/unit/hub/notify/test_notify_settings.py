"""[notify] is checked as a whole when the hub starts: what could not work later is refused with its key."""

from typing import Any

import pytest

from gpuwaste.act.notify.notify_settings import NotifySettings
from gpuwaste.core.act_config import NotifyConfig
from gpuwaste.core.errors import ConfigError


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"weekday": "mon"}, "weekday 'mon': expected one of monday"),
        ({"every": "hour"}, "every 'hour': expected one of week, day"),
        ({"at": "24:00"}, "at '24:00': expected a time of the day"),
        ({"at": "8"}, "at '8'"),
        ({"at": "08:00+02:00"}, "at '08:00+02:00'"),
        ({"smtp_tls": "ssl"}, "smtp_tls 'ssl'"),
        ({"smtp_host": "mail"}, "sender is empty"),
        ({"sender": "HPC <hpc@example.org>"}, "sender 'HPC <hpc@example.org>': expected a plain address"),
        ({"reply_to": "a@b\r\nBcc: x@y"}, "reply_to"),
        ({"staff": ("ops",)}, "staff 'ops'"),
        ({"smtp_user": "u"}, "in clear text"),
        ({"min_wasted_share": 80.0}, "min_wasted_share 80.0: expected a share"),
        ({"quiet_hours": "always"}, "quiet_hours"),
        ({"zone": "Nowhere"}, "zone 'Nowhere'"),
    ],
)
def test_what_cannot_work_is_refused(keys: dict[str, Any], said: str) -> None:
    """Each bad value names its key and what is expected."""
    with pytest.raises(ConfigError, match=r"\[notify\] ") as caught:
        NotifySettings.from_config(NotifyConfig(**keys))
    assert said in str(caught.value)


def test_the_defaults_send_nothing() -> None:
    """Without a section there is no server, and with one it is a dry run until the site says otherwise."""
    settings = NotifySettings.from_config(NotifyConfig())
    assert (settings.dry_run, NotifyConfig().smtp_host) == (True, "")
