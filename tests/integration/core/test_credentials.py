"""Secrets that systemd hands to a service: keys that name them below $CREDENTIALS_DIRECTORY."""

from pathlib import Path

import pytest

from gpuwaste.cli.check import Role
from gpuwaste.cli.config_check import problems
from gpuwaste.core.config import load_config
from gpuwaste.core.config_files import expanded
from gpuwaste.net.tokens import TokenIssuer

TEXT = """
[common]
token_file = "$CREDENTIALS_DIRECTORY/token"
hub_url = "https://hub:1"
[hub]
lake_catalog = "host=db passfile=$CREDENTIALS_DIRECTORY/pgpass"
tls_key = "$CREDENTIALS_DIRECTORY/tls.key"
tls_cert = "/etc/gpuwaste/hub.pem"
node_tokens_file = "$CREDENTIALS_DIRECTORY/tokens"
[notify]
smtp_password_file = "$CREDENTIALS_DIRECTORY/smtp"
text = "costs $CREDENTIALS_DIRECTORY of nobody"
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a configuration whose secrets are credentials."""
    file = tmp_path / "gpuwaste.toml"
    file.write_text(TEXT)
    return file


def test_a_service_reads_its_own(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each value has the directory of the service that reads it, within a longer text too, and the token is usable."""
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path))
    config = load_config(path)
    assert config.notify.smtp_password_file == f"{tmp_path}/smtp"
    assert config.hub.lake_catalog == f"host=db passfile={tmp_path}/pgpass"
    assert config.hub.tls_key == f"{tmp_path}/tls.key"
    assert config.notify.text == "costs $CREDENTIALS_DIRECTORY of nobody"
    (tmp_path / "token").write_text("x" * 43 + "\n")
    (tmp_path / "token").chmod(0o400)
    assert TokenIssuer(Path(config.common.token_file)).issue("digest").startswith("Bearer ")


def test_elsewhere_they_are_not_looked_for(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the variable, or with one that is no path, the value stays, and the check has no line on such files."""
    for value in (None, "", "relative"):
        monkeypatch.setenv("CREDENTIALS_DIRECTORY", value) if value is not None else monkeypatch.delenv(
            "CREDENTIALS_DIRECTORY", raising=False
        )
        config = load_config(path)
        assert config.common.token_file.startswith("$CREDENTIALS_DIRECTORY/")
        assert expanded("/etc/x") == "/etc/x"
        found = problems(path, config, frozenset({Role.HUB, Role.AGENT}))
        assert not [line for line in found if "CREDENTIALS" in line]
