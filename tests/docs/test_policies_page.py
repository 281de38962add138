"""What is told about policies: the example files and the policies to copy can be used, and do what they say."""

import re
from dataclasses import fields, is_dataclass
from pathlib import Path

import pytest
from tests.unit.advice.policy.builders import BAD, Day, no_chance
from tools.reference import policies

from gpuwaste.advice.policy.policy_file import TABLES
from gpuwaste.advice.policy.policy_loading import built_in, load_policies, policy_from_toml
from gpuwaste.advice.policy.policy_set import PolicySet
from gpuwaste.advice.policy.rules import rules
from gpuwaste.core.typed_toml import parse_toml

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "etc" / "policies.d").iterdir())
PAGES = [ROOT / "docs/how-to/policies.md", ROOT / "docs/reference/policies.md"]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_example_has_the_mode_of_its_name(path: Path) -> None:
    """Each file of etc/policies.d can be used as it stands, and with every comment's key switched on."""
    text = path.read_text(encoding="utf-8")
    policy = policy_from_toml(text.encode(), path.name)
    assert policy.mode == policy.name == re.split(r"[-.]", path.name)[1]
    assert PolicySet((policy, built_in()), "").decide(BAD, Day(), no_chance).would_be in {"warn", "reject"}
    commented = re.sub(r"^# (?=\[|\w+ = )", "", text, flags=re.MULTILINE)
    assert policy_from_toml(commented.encode(), path.name).mode == policy.mode


def test_a_fresh_install_is_shadow() -> None:
    """The one file that is read as installed records and says nothing."""
    found = load_policies(ROOT / "etc" / "policies.d")
    assert [policy.name for policy in found.policies] == ["shadow", "default"]
    assert found.policies[0].targets == built_in().targets


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.parent.name)
def test_policies_to_copy_can_be_used(page: Path) -> None:
    """Each policy on the pages is one, without an unknown key."""
    found = re.findall(r"^```toml policy\n(.*?)^```$", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    assert found
    for text in found:
        assert parse_toml(text.encode(), page.name)
        policy_from_toml(text.encode(), page.name)


def test_the_reference_has_every_key_and_rule() -> None:
    """Each table, each key with its text, each rule in its order."""
    page = policies.page()
    for name, kind in TABLES.items():
        assert f"## [{name}]" in page
        assert is_dataclass(kind)
        for key in fields(kind):
            assert f"| `{key.name.removesuffix('_')}` |" in page
    places = [page.index(f"### {module.ORDER} {name}\n") for name, module in rules().items()]
    assert places == sorted(places)
