"""SIGHUP's work: changed keys are put in force where that is safe, the others named, a broken file changes nothing."""

import logging
from dataclasses import replace

import pytest

from gpuwaste.core.config import Config
from gpuwaste.core.errors import ConfigError
from gpuwaste.core.reload import Reloader


class Rig:
    """A reloader of a hub with two groups of keys, and what it was told."""

    def __init__(self) -> None:
        self.config = Config()
        self.applied: list[tuple[str, object]] = []
        self.error: ConfigError | None = None
        self.reloader = Reloader(
            self.config,
            self._read,
            ("common", "hub"),
            {
                ("hub.sacct_every_s", "hub.sacct_overlap_s"): lambda c: self._note("sacct", c.hub.sacct_every_s),
                ("hub.staff_groups",): lambda c: self._note("staff", c.hub.staff_groups),
            },
        )

    def change(self, **hub: object) -> None:
        self.config = replace(self.config, hub=replace(self.config.hub, **hub))  # type: ignore[arg-type]

    def _read(self) -> Config:
        if self.error:
            raise self.error
        return self.config

    def _note(self, name: str, value: object) -> None:
        self.applied.append((name, value))


@pytest.fixture
def rig(caplog: pytest.LogCaptureFixture) -> Rig:
    caplog.set_level(logging.INFO)
    return Rig()


def test_safe_keys_are_applied_once_and_others_wait(rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
    """The line names what is in force now and what needs a restart; the latter is named again at the next time."""
    rig.change(sacct_every_s=5.0, staff_groups=("hpc",), listen="0.0.0.0:1")
    rig.reloader.reload()
    assert rig.applied == [("sacct", 5.0), ("staff", ("hpc",))]
    rig.reloader.reload()
    assert len(rig.applied) == 2
    assert [record.message for record in caplog.records] == [
        "configuration: reloaded: hub.sacct_every_s, hub.staff_groups; needs a restart: hub.listen",
        "configuration: needs a restart: hub.listen",
    ]


def test_another_daemons_keys_and_no_change_are_no_news(rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
    """What this daemon does not use is not named."""
    rig.config = replace(rig.config, agent=replace(rig.config.agent, interval_s=1.0))
    rig.reloader.reload()
    assert caplog.records[-1].message == "configuration: nothing has changed"


def test_a_broken_file_changes_nothing(rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
    """The error is said; when the file is mended, everything that changed meanwhile is applied."""
    rig.change(staff_groups=("hpc",))
    rig.error = ConfigError("gpuwaste.toml: [hub] unknown key 'x'")
    rig.reloader.reload()
    assert rig.applied == []
    assert "is still used: gpuwaste.toml: [hub] unknown key 'x'" in caplog.records[-1].message
    rig.error = None
    rig.reloader.reload()
    assert rig.applied == [("staff", ("hpc",))]


def test_a_value_that_cannot_be_applied_is_tried_again(rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
    """An error in putting a key in force is said, and the key still counts as changed."""

    def refuse(_config: Config) -> None:
        raise ConfigError("[agent] health_xids: 'x' is not an Xid number")

    reloader = Reloader(Config(), lambda: rig.config, ("hub",), {("hub.staff_groups",): refuse})
    rig.change(staff_groups=("hpc",))
    for _ in range(2):
        reloader.reload()
        assert "is not an Xid number" in caplog.records[-1].message
