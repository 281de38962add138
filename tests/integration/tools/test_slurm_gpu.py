"""Slurm's plugin for NVML is unpacked for exactly this Slurm, and a reason is one line; apt is a stand-in."""

from pathlib import Path

import pytest
from tools import slurm_gpu

from gpuwaste.core.errors import GpuwasteError

_APT = """\
#!/bin/sh
for word; do
  case $word in
    -oDir::Etc::SourceList=*) cp "${word#*=}" LOG ;;
    download) touch slurm-wlm-nvml-plugin_VERSION-2_amd64.deb ;;
  esac
done
"""
_DPKG = """\
#!/bin/sh
mkdir -p "$3/usr/lib/x86_64-linux-gnu/slurm-wlm"
echo "$2" > "$3/usr/lib/x86_64-linux-gnu/slurm-wlm/gpu_nvml.so"
"""


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder of commands before all others; what apt was told to read is kept in it as `log`."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    monkeypatch.setenv("MATRIX_MIRROR", "http://mirror.example/debian")
    _command(folder, "apt-get", _APT.replace("LOG", str(folder / "log")).replace("VERSION", "24.11.5"))
    _command(folder, "dpkg-deb", _DPKG)
    return folder


def _command(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(text)
    (folder / name).chmod(0o755)


def test_the_plugin_of_this_release_s_suite_is_unpacked(commands: Path, tmp_path: Path) -> None:
    """Contrib of the suite that has this Slurm, signed; nothing but the plugin is kept."""
    _command(commands, "slurmd", "#!/bin/sh\necho slurm-wlm 24.11.5\n")
    version = slurm_gpu.slurm_version()
    folder = tmp_path / "plugin"
    assert not slurm_gpu.is_there(folder)
    slurm_gpu.unpack(version, folder)
    assert slurm_gpu.is_there(folder)
    assert [path.name for path in folder.iterdir()] == ["gpu_nvml.so"]
    source = (commands / "log").read_text()
    assert source.startswith("deb [signed-by=/usr/share/keyrings/")
    assert source.endswith("] http://mirror.example/debian trixie contrib\n")


def test_a_plugin_for_another_version_is_refused(commands: Path, tmp_path: Path) -> None:
    """Slurmd would refuse it too, with less to go on."""
    with pytest.raises(
        GpuwasteError, match=r"the mirror has slurm-wlm-nvml-plugin_24.11.5-2_amd64.deb, slurmd here is 24"
    ):
        slurm_gpu.unpack("24.11.6", tmp_path / "plugin")
    assert not (tmp_path / "plugin").exists()


def test_a_mirror_that_does_not_answer_and_no_slurmd_are_told(commands: Path, tmp_path: Path) -> None:
    """Apt's last line, and the command that is missing."""
    _command(commands, "apt-get", "#!/bin/sh\necho W: noise >&2; echo E: no route to host >&2; exit 100\n")
    with pytest.raises(GpuwasteError, match=r"^slurm_gpu: apt-get update exited 100: E: no route to host$"):
        slurm_gpu.unpack("24.11.5", tmp_path / "plugin")
    _command(commands, "slurmd", "#!/bin/sh\necho what\n")
    with pytest.raises(GpuwasteError, match=r"slurmd -V: no version in 'what\\n'"):
        slurm_gpu.slurm_version()
