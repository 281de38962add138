"""What settings of slurm.conf mean, for plans and the simulator alike."""

import pytest

from gpuwaste.slurm.site.slurm_settings import enforced


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", set()),
        ("none", {"none"}),
        ("Associations, QOS", {"associations", "qos"}),
        ("safe", {"safe", "limits", "associations"}),
        ("all", {"all", "limits", "associations", "qos"}),
    ],
)
def test_what_is_enforced(text: str, words: set[str]) -> None:
    """AccountingStorageEnforce brings along what its words need: slurm.conf(5)."""
    assert enforced(text) == words
