"""The layout of the house holds: one import name, four source roots."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROOTS = ("src", "agent", "models", "testing", "tests", "bench", "tools", "docs", "plugins", "packaging", "etc")


def test_gpuwaste_itself_is_a_namespace_package() -> None:
    """No source root holds gpuwaste/__init__.py, so that the roots merge into one import name."""
    assert not list(ROOT.glob("*/gpuwaste/__init__.py"))


def test_every_subpackage_says_what_it_is_for() -> None:
    """Each sub-package has an __init__.py that starts with a docstring."""
    folders = {
        path.parent
        for root in ("src", "agent", "models", "testing")
        for path in (ROOT / root / "gpuwaste").rglob("*.py")
    }
    for folder in folders:
        text = (folder / "__init__.py").read_text()
        assert text.startswith('"""'), folder


def test_one_module_imports_onnx_runtime() -> None:
    """No other file of ours imports ONNX Runtime, code in texts and pages included: it would bring its telemetry.

    The scene of a watched network does once, to show that it sees that.
    """
    imported = re.compile(
        r"(?<!onnx_runtime )\b(?:import|from) (?:[\w., ]*, )?onnxruntime\b|import_module\(.onnxruntime"
    )
    files = [path for root in ROOTS for path in (ROOT / root).rglob("*") if path.suffix in {".py", ".md", ".ipynb", ""}]
    found = {str(path.relative_to(ROOT)) for path in files if path.is_file() and imported.search(_text(path))}
    assert found == {"src/gpuwaste/advice/predict/onnx_runtime.py", "tests/system/quiet_scene.py"}
    assert len(files) > 1000


def test_our_hashes_are_allowed_in_fips_mode() -> None:
    """No file of the product uses a hash that Python refuses on Enterprise Linux in FIPS mode."""
    refused = re.compile(r"\b(?:md5|blake2[bs])\(|hashlib\.new\(")
    files = [path for root in ("src", "agent", "models") for path in (ROOT / root).rglob("*.py")]
    assert [str(path) for path in files if refused.search(_text(path))] == []
    assert len(files) > 500


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")
