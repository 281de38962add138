"""A certificate that nobody but its test trusts."""

import shutil
import subprocess
from pathlib import Path

import pytest

from gpuwaste.testing.patience import patient

_KIND = ("-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2")


def self_signed(certificate: Path, key: Path, names: str = "IP:127.0.0.1", common_name: str = "localhost") -> None:
    """Write a PEM certificate for subject alternative names, as openssl has them, and its key."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl, which makes the test's certificate, is missing")
    whose = ("-subj", f"/CN={common_name}", *(("-addext", f"subjectAltName={names}") if names else ()))
    argv = ["openssl", "req", *_KIND, "-keyout", str(key), "-out", str(certificate), *whose]
    subprocess.run(argv, check=True, capture_output=True, timeout=patient(60))
