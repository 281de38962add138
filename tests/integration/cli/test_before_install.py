"""before-install.sh: on this host as it is, and with the answers that commands of Enterprise Linux give.

The answers are those of the commands' manuals and sources; no host with Enterprise Linux was seen.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest

from gpuwaste.cli.check import Role, Status
from gpuwaste.cli.doctor_checks import SCRIPT, as_text, host_checks
from gpuwaste.cli.main import main
from gpuwaste.testing.patience import patient

SHELLS: Final = [shell for shell in ("dash", "bash", "busybox") if shutil.which(shell)]
Lines = list[list[str]]
Ask = Callable[..., Lines]
EL9: Final = (
    'NAME="Rocky Linux"\nVERSION="9.4 (Blue Onyx)"\nID="rocky"\nID_LIKE="rhel centos fedora"\nVERSION_ID="9.4"\n'
)
CREDENTIAL: Final = """STATUS:          Success (0)
ENCODE_HOST:     gpu1 (10.1.2.3)
UID:             root (0)
"""


def scontrol(
    folder: str = "/usr/lib64/slurm",
    kind: str = "accounting_storage/slurmdbd",
    tres: str = "cpu,mem,energy,node,billing,gres/gpu",
) -> str:
    """Return a scontrol that tells its version and its configuration."""
    lines = (
        f"AccountingStorageTRES   = {tres}",
        f"AccountingStorageType   = {kind}",
        f"PluginDir               = {folder}",
    )
    shown = "\n".join(("Configuration data as of 2026-11-28T08:00:00", *lines))
    return f"[ $1 = --version ] && echo slurm 23.11.10 && exit\ncat <<'END'\n{shown}\nEND"


@dataclass(frozen=True)
class Case:
    """A check, what it finds, and the commands and files of a host where it does."""

    check: str
    status: str
    found: str
    commands: Mapping[str, str]
    files: Mapping[str, str] = field(default_factory=dict)


TARGETED: Final = "echo 'Loaded policy name:             targeted'"
PERFECT: Final = {
    "uname": "echo x86_64",
    "python3.12": "echo 3.12.11",
    "getconf": "echo glibc 2.34",
    "rpm": "case $1 in --version) echo RPM version 4.16.1.3 ;; --showrc) echo 'rpmlib(PayloadIsZstd) = 5.4.18-1' ;; "
    "*) echo slurm 23.11.10 ;; esac",
    "systemctl": 'case $1 in --version) echo "systemd 252 (252-32.el9_4.7)" ;; *) echo inactive ;; esac',
    "getent": "exit 2",
    "getenforce": "echo Disabled",
    "update-crypto-policies": "echo DEFAULT",
    "firewall-cmd": "case $1 in --state) echo running ;; *) echo yes ;; esac",
    "munge": "echo MUNGE:AAAA:",
    "unmunge": f"cat <<'END'\n{CREDENTIAL}END",
    "scontrol": scontrol(),
    "slurmd": "exit 1",
    "slurmctld": "exit 1",
    "ldconfig": 'echo "	libnvidia-ml.so.1 (libc6,x86-64) => /lib64/libnvidia-ml.so.1"',
    "stat": "echo cgroup2fs",
    "timedatectl": "echo yes",
    "df": 'echo "Filesystem 1024-blocks Used Available Capacity Mounted on"; echo "/dev/sda1 99999999 1 88888888 1% /"',
}  # fmt: skip
"""A host with Enterprise Linux 9 on which nothing is in the way."""


@pytest.fixture
def ask(request: pytest.FixtureRequest, tmp_path: Path) -> Ask:
    """Return a function that runs the script on a made-up host: commands and files; an empty text removes either."""

    def run(commands: Mapping[str, str] | None = None, files: Mapping[str, str] | None = None, *words: str) -> Lines:
        root, folder = tmp_path / "root", tmp_path / "bin"
        for made in (root, folder):
            shutil.rmtree(made, ignore_errors=True)
        folder.mkdir()
        for name, text in {**PERFECT, **(commands or {})}.items():
            if text:
                (folder / name).write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
                (folder / name).chmod(0o755)
        there = {
            "etc/os-release": EL9,
            "run/systemd/system/.": "",
            "usr/lib64/slurm/.": "",
            "usr/.": "",
            "var/lib/.": "",
        }
        for name, text in {**there, **(files or {})}.items():
            path = root / name
            (path if name.endswith("/.") else path.parent).mkdir(parents=True, exist_ok=True)
            if not name.endswith("/."):
                path.write_text(text, encoding="utf-8")
        _own_tools(folder)
        name = getattr(request, "param", "sh")
        shell = [shutil.which(name) or "", *(["sh"] if name == "busybox" else [])]
        argv = [*shell, str(SCRIPT), "--fields", "--root", str(root), *words]
        done = subprocess.run(
            argv,
            capture_output=True,
            text=True,
            timeout=patient(120),
            check=False,
            env={"PATH": str(folder)},
            errors="strict",
        )
        assert done.stderr == ""
        lines = [line.split("\t") for line in done.stdout.splitlines()]
        assert all(len(line) == 4 for line in lines)
        assert done.returncode == int(any(status == "fail" for status, *_ in lines))
        return lines

    return run


def _own_tools(folder: Path) -> None:
    """Give the host what each has: coreutils, sed, awk, grep. Nothing else of this host is found."""
    for name in ("awk", "cat", "cut", "grep", "head", "sed", "sh", "sleep", "tr", "timeout", "env", "yes"):
        if not (folder / name).exists():
            (folder / name).symlink_to(shutil.which(name) or "")


def of(lines: Lines, *names: str) -> list[tuple[str, str]]:
    """Return status and text of the lines of some checks."""
    return [(status, found) for status, name, found, _ in lines if name in names]


def test_this_host_as_it_is() -> None:
    """The command prints what the script prints, line by line; these tests run on Python and glibc."""
    done = subprocess.run(["sh", str(SCRIPT)], capture_output=True, text=True, timeout=patient(120), check=False)
    assert done.stderr == ""
    checks = list(host_checks(frozenset(Role)))
    by_script = [line for line in done.stdout.splitlines() if " disk " not in line and line.split()[1] != "python"]
    ours = [as_text(check).rstrip("\n") for check in checks if check.name not in {"disk", "python"}]
    assert ours == by_script
    assert done.returncode == int(any(check.status is Status.FAIL for check in checks))
    found = {check.name: check.status for check in checks}
    assert found["glibc"] is Status.OK
    assert found["python"] is Status.OK
    assert {
        "system",
        "systemd",
        "user",
        "selinux",
        "crypto",
        "firewall",
        "munge",
        "slurm",
        "clock",
        "disk",
    } <= found.keys()


def test_the_command_needs_no_configuration(capsys: pytest.CaptureFixture[str]) -> None:
    """`gpuwaste doctor --before-install` works where the file and Slurm are missing, as JSON too."""
    code = main(["doctor", "--before-install", "--role", "login", "--json", "--config", "/nonexistent"])
    document = json.loads(capsys.readouterr().out)
    assert document["document"] == "doctor"
    assert document["roles"] == ["login"]
    assert code == int(document["status"] == "fail")
    assert "nvml" not in {check["name"] for check in document["checks"]}


@pytest.mark.parametrize("ask", SHELLS, indirect=True)
def test_enterprise_linux_with_nothing_in_the_way(ask: Ask) -> None:
    """All is ok but that nobody has installed there yet."""
    lines = ask()
    assert [line for line in lines if line[0] != "ok"] == [
        [
            "warn",
            "system",
            "rocky 9.4, x86_64",
            "packages are built for it, but were never installed on it: report what you see",
        ]
    ]
    assert of(lines, "firewall") == [("ok", "port 9461/tcp (hub) is open"), ("ok", "port 9460/tcp (agent) is open")]
    assert of(lines, "package") == [("ok", "Slurm is the package slurm 23.11.10")]
    assert of(lines, "user") == [
        ("ok", "gpuwaste will get uid 463, which is free here"),
        ("ok", "gpuwaste-actor will get uid 464, which is free here"),
    ]


CASES: Final = {
    "another processor": Case("system", "fail", "rocky 9.4, ppc64le", {"uname": "echo ppc64le"}),
    "an old release": Case(
        "system",
        "warn",
        "centos 7, x86_64",
        {},
        {"etc/os-release": 'ID="centos"\nID_LIKE="rhel fedora"\nVERSION_ID="7"\n'},
    ),
    "no Python": Case("python", "warn", "no python3.12 here", {"python3.12": ""}),
    "half a Python": Case(
        "python",
        "fail",
        "python3.12 cannot import bz2, ctypes, lzma, sqlite3, ssl, zlib or zoneinfo",
        {"python3.12": "exit 1"},
    ),
    "an old glibc": Case("glibc", "fail", "glibc 2.17", {"getconf": "echo glibc 2.17"}),
    "another libc": Case("glibc", "fail", "no glibc", {"getconf": "exit 1"}),
    "an rpm without zstd": Case(
        "rpm",
        "fail",
        "RPM version 4.11.3 does not read packages compressed with zstd",
        {"rpm": "echo RPM version 4.11.3"},
    ),
    "an old systemd": Case("systemd", "warn", "systemd 219", {"systemctl": "echo systemd 219"}),
    "a taken uid": Case(
        "user",
        "fail",
        "uid or gid 463 of gpuwaste belongs to sshusers",
        {"getent": '[ "$2" = 463 ] && echo "sshusers:x:463:463::/:/bin/sh"'},
    ),
    "a taken gid": Case(
        "user",
        "fail",
        "uid or gid 463 of gpuwaste belongs to scratch",
        {"getent": '[ "$1 $2" = "group 463" ] && echo "scratch:x:463:"'},
    ),
    "a uid of the site": Case(
        "user",
        "ok",
        "gpuwaste will get uid 4463, which is free here",
        {},
        {"etc/sysusers.d/gpuwaste.conf": "u gpuwaste 4463\n"},
    ),
    "the user exists": Case(
        "user",
        "ok",
        "gpuwaste exists with uid 900",
        {"getent": '[ "$2" = gpuwaste ] && echo "gpuwaste:x:900:900::/:/bin/sh"'},
    ),
    "permissive": Case("selinux", "warn", "permissive, policy unknown", {"getenforce": "echo Permissive"}),
    "enforcing": Case(
        "selinux", "warn", "enforcing, policy targeted", {"getenforce": "echo Enforcing", "sestatus": TARGETED}
    ),
    "mls": Case(
        "selinux",
        "warn",
        "enforcing, policy mls",
        {"getenforce": "echo Enforcing", "sestatus": 'echo "Loaded policy name:             mls"'},
    ),
    "FIPS": Case(
        "crypto",
        "warn",
        "FIPS mode, policy FIPS",
        {"update-crypto-policies": "echo FIPS"},
        {"proc/sys/crypto/fips_enabled": "1\n"},
    ),
    "half FIPS": Case(
        "crypto",
        "warn",
        "policy FIPS:OSPP, but the kernel is not in FIPS mode",
        {"update-crypto-policies": "echo FIPS:OSPP"},
        {"proc/sys/crypto/fips_enabled": "0\n"},
    ),
    "the future": Case("crypto", "warn", "policy FUTURE", {"update-crypto-policies": "echo FUTURE"}),
    "fapolicyd": Case("fapolicyd", "warn", "active", {"systemctl": "echo active"}),
    "no firewalld": Case(
        "firewall",
        "ok",
        "firewalld does not run; other packet filters are not checked",
        {"firewall-cmd": "echo not running; exit 252"},
    ),
    "closed ports": Case(
        "firewall",
        "warn",
        "port 9461/tcp (hub) is closed",
        {"firewall-cmd": "case $1 in --state) echo running ;; *) echo no; exit 1 ;; esac"},
    ),
    "no munge": Case("munge", "warn", "no munge here", {"munge": ""}),
    "munged is down": Case("munge", "fail", "credentials do not work: no answer", {"unmunge": "exit 6"}),
    "a stale credential": Case(
        "munge",
        "fail",
        "credentials do not work: Rewound credential (16)",
        {"unmunge": 'echo "STATUS:          Rewound credential (16)"'},
    ),
    "Debian's address": Case(
        "munge",
        "warn",
        "credentials work, but have the address 127.0.1.1",
        {"unmunge": 'echo "STATUS: Success (0)"; echo "ENCODE_HOST:     gpu1 (127.0.1.1)"'},
    ),
    "no Slurm": Case("slurm", "warn", "no scontrol on PATH", {"scontrol": ""}),
    "an old Slurm": Case("slurm", "warn", "Slurm 20.11.9", {"scontrol": "echo slurm 20.11.9"}),
    "a newer Slurm": Case("slurm", "warn", "Slurm 26.11.0", {"scontrol": "echo slurm 26.11.0"}),
    "slurmctld is down": Case(
        "slurm", "warn", "slurmctld does not answer", {"scontrol": "[ $1 = --version ] && echo slurm 23.11.10"}
    ),
    "OpenHPC": Case("package", "warn", "Slurm is the package slurm-ohpc 23.11.10", {"rpm": "echo slurm-ohpc 23.11.10"}),
    "Slurm from source": Case(
        "package",
        "warn",
        "no package owns scontrol in version 23.11.10",
        {"rpm": "echo file /opt/slurm/bin/scontrol is not owned by any package"},
    ),
    "no accounting": Case(
        "accounting", "fail", "AccountingStorageType is (null)", {"scontrol": scontrol(kind="(null)", tres="")}
    ),
    "no GPUs in accounting": Case(
        "accounting",
        "warn",
        "AccountingStorageTRES has no gres/gpu",
        {"scontrol": scontrol(kind="accounting_storage/slurmdbd", tres="cpu,gres/gpu:a100")},
    ),
    "another PluginDir": Case(
        "plugindir", "warn", "/opt/slurm/lib", {"scontrol": scontrol("/gone:/opt/slurm/lib")}, {"opt/slurm/lib/.": ""}
    ),
    "no PluginDir": Case("plugindir", "fail", "/gone is not a directory here", {"scontrol": scontrol("/gone")}),
    "no driver": Case("nvml", "warn", "no libnvidia-ml.so.1", {"ldconfig": "exit 0"}),
    "cgroup 1": Case("cgroup", "ok", "version 1 or hybrid", {"stat": "echo tmpfs"}),
    "no cgroup": Case("cgroup", "warn", "no cgroup filesystem in /sys/fs/cgroup", {"stat": "exit 1"}),
    "a free clock": Case("clock", "warn", "not synchronised", {"timedatectl": "echo no"}),
    "a full disk": Case("disk", "warn", "/usr: 0 GiB free", {"df": 'echo head; echo "/dev/sda1 100 100 0 100% /"'}),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_in_the_way_has_a_line(ask: Ask, case: str) -> None:
    """Each thing that a host may lack or have is told by its own line, the others stay as they were."""
    one = CASES[case]
    assert (one.status, one.found) in of(ask(one.commands, one.files), one.check)


def test_labels_that_are_not_the_policy_s(ask: Ask) -> None:
    """Files that restorecon would relabel are counted, with the command for it; without restorecon it says so."""
    on = {"getenforce": "echo Enforcing", "sestatus": TARGETED, "ps": "exit 0"}
    files = {"etc/gpuwaste/gpuwaste.toml": "", "var/lib/gpuwaste/.": ""}
    wrong = 'for i in 1 2 3; do echo "Would relabel /var/lib/gpuwaste/$i from a:b:c:s0 to d:e:f:s0"; done'
    for command, expected in (
        ("exit 0", ("ok", "files of gpuwaste have the labels of the policy")),
        (wrong, ("warn", "3 files of gpuwaste have other labels than the policy's")),
        ("", ("warn", "no restorecon")),
    ):
        assert of(ask({**on, "restorecon": command}, files), "labels") == [expected]
    assert of(ask({**on, "restorecon": "exit 0"}), "labels")[0][1].startswith("no file of gpuwaste yet")


def test_domains_of_daemons(ask: Ask) -> None:
    """Under SELinux a daemon of Slurm in a domain of its own is named; unconfined ones and other programs are fine."""
    shown = (
        'echo "system_u:system_r:unconfined_service_t:s0 slurmctld"; echo "system_u:system_r:munge_t:s0 munged"; '
        'echo "system_u:system_r:sshd_t:s0-s0:c0.c1023 sshd"'
    )
    lines = ask({"getenforce": "echo Enforcing", "restorecon": "exit 0", "ps": shown})
    assert of(lines, "domain") == [
        ("ok", "slurmctld runs unconfined"),
        ("warn", "munged runs as system_u:system_r:munge_t:s0"),
    ]


def test_roles_choose_checks(ask: Ask) -> None:
    """A role leaves out what others need; Debian takes its own Python; a word that is no option ends with 2."""
    lines = ask({}, {}, "--role", "hub")
    assert {"accounting"} <= {name for _, name, *_ in lines}
    assert not {"nvml", "cgroup", "plugindir", "package"} & {name for _, name, *_ in lines}
    debian = {"etc/os-release": "ID=debian\nVERSION_ID=12\n"}
    found = ask({"python3.11": "echo 3.11.2"}, debian)
    assert of(found, "python", "system") == [("ok", "debian 12, x86_64"), ("ok", "python3.11 is 3.11.2")]
    assert of(ask({"python3.14": "echo 3.14.0"}, {}, "--python", "python3.14"), "python") == [
        ("ok", "python3.14 is 3.14.0")
    ]
    for words in (("--rôle", "hub"), ("--role", "root"), ("--role",)):
        done = subprocess.run(
            ["sh", str(SCRIPT), *words], capture_output=True, text=True, timeout=patient(60), check=False
        )
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith("before-install: ")


ENDLESS: Final = "yes '\033[2J\tfail\tglibc\tno glibc'"
GARBAGE: Final = r"printf '\000\377\033[31m\t%s\r\nok\tforged\tline\n$(touch /tmp/x)`id` * ~\n' slurm"


@pytest.mark.parametrize("ask", SHELLS, indirect=True)
@pytest.mark.parametrize("text", [ENDLESS, GARBAGE, "kill -9 $$"], ids=["endless", "garbage", "killed"])
def test_commands_that_answer_anything(ask: Ask, text: str) -> None:
    """Whatever a command prints, and however much, there are the same checks, in lines of one form, without escapes."""
    commands = {name: text for name in PERFECT if name != "python3.12"}
    commands |= dict.fromkeys(("sestatus", "restorecon", "ps", "getenforce"), text)
    files = {"etc/os-release": "ID=\033[31m\nVERSION_ID=`id`\n" * 10_000, "proc/sys/crypto/fips_enabled": "1" * 100_000}
    lines = ask(commands, files)
    assert {"system", "glibc", "systemd", "user", "crypto", "munge", "slurm", "clock", "disk"} <= {
        n for _, n, *_ in lines
    }
    assert len(lines) < 40
    for line in lines:
        assert "forged" not in line[1]
        assert all(field.isprintable() and len(field) < 300 for field in line)


def test_a_command_that_does_not_answer(ask: Ask) -> None:
    """What hangs is left after a time, and its line says that nothing was found."""
    quick = f'#!/bin/sh\nshift 3\nexec {shutil.which("timeout")} -k 1 1 "$@"'
    lines = ask({"timeout": quick, "scontrol": "exec sleep 600", "unmunge": "exec sleep 600"})
    assert of(lines, "munge") == [("fail", "credentials do not work: no answer")]
    assert of(lines, "slurm")[0] == ("warn", "Slurm of an unknown version")


def test_a_host_that_answers_nothing_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command ends at its time limit with a line that says so, and keeps what was found before."""
    (tmp_path / "getconf").write_text("#!/bin/sh\nexec sleep 600\n", encoding="utf-8")
    (tmp_path / "getconf").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    checks = list(host_checks(frozenset({Role.LOGIN}), 3.0))
    assert [check.name for check in checks] == ["system", "python", "before install"]
    assert checks[-1].found == "not finished within 3 s"
