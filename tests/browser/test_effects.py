"""The page of the effect of campaigns in a browser: whole at every width, in both schemes, and readable by all."""

from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path

import pytest
from playwright.sync_api import Browser
from tests.browser.conftest import Reader, readers
from tests.browser.scene import OPER
from tests.browser.window import SCHEMES, Scheme, keep_picture, show
from tests.integration.hub.rig import running_hub

from gpuwaste.act.campaigns.assignment import Assignment
from gpuwaste.act.campaigns.campaign_file import load_campaign
from gpuwaste.act.campaigns.campaign_keeper import CampaignKeeper
from gpuwaste.jobs.cluster_facts import ClusterFacts
from gpuwaste.testing.campaign_weeks import fill_weeks

KEY = "0123456789abcdef0123456789abcdef"


@pytest.fixture(scope="module")
def effects(tmp_path_factory: pytest.TempPathFactory, browser: Browser) -> Iterator[Reader]:
    """Open the page of a hub with a campaign that has ended, for an operator."""
    folder = tmp_path_factory.mktemp("hub")
    end = date.today() - timedelta(days=2)  # noqa: DTZ011 the site's own days
    file = folder / "campaigns.d" / "digest.toml"
    file.parent.mkdir()
    file.write_text(f'what = ["digest"]\nstart = {end - timedelta(days=27)}\nend = {end}\nheld_back = 0.5\n')
    (folder / "key").write_text(KEY)
    (folder / "key").chmod(0o600)
    keys = {"campaigns_dir": str(file.parent), "campaign_key_file": str(folder / "key")}
    with running_hub(folder, common_keys=keys) as rig:
        rig.hub.get(ClusterFacts).cluster()
        users = [f"user{number}" for number in range(30)]
        fill_weeks(rig.store, load_campaign(Path(file)), Assignment(KEY.encode()), users, 0.5)
        rig.hub.get(CampaignKeeper).step()
        with readers(rig, browser) as reader:
            found = reader(OPER)
            found.open("/effects")
            yield found


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", [360, 1440])
def test_the_page_is_whole(effects: Reader, width: int, scheme: Scheme) -> None:
    """The policy refuses nothing, axe finds nothing, and the page is no wider than the window."""
    show(effects.page, width, scheme)
    keep_picture(effects.page, f"effects-{width}-{scheme}")
    assert effects.violations() == []
    assert effects.page.evaluate("() => document.documentElement.scrollWidth") <= width
    assert effects.axe() == []
    assert effects.broken() == []


def test_the_first_line_is_the_answer(effects: Reader) -> None:
    """The heading has the GPU-hours with their interval."""
    heading = effects.page.inner_text("h1")
    assert "GPU-hours saved (95 %" in heading
    assert "held back" in heading
