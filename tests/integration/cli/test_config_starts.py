"""`gpuwaste config check` finds what a daemon would end with: no refusal of the code is without its case here."""

import os
from dataclasses import replace
from pathlib import Path

import pytest
from tools.reference import source

from gpuwaste.cli.check import EVERYWHERE, Role
from gpuwaste.cli.config_check import problems
from gpuwaste.core.config import Config, load_config
from gpuwaste.core.errors import ConfigError

pytestmark = pytest.mark.sockets

BEFORE = (
    "core.config",
    "core.config_files",
    "core.typed_toml",
)  # reading the file: `config check` ends with the very line
# policies and campaigns: test_config_check.py; outlets and inlets: test_outlet_files.py, test_inlet_files.py, and the
# hub starts without a bad one; a mapping of CSV is a command's own file; whom root becomes: commands, never a daemon; a
# list of GPUs that cannot be read: the agent starts without one and reads it again
OTHERS = (
    "sim.", "act.campaigns.campaign_file", "act.events.", "act.rules.", "slurm.formats.conf_file",
    "slurm.formats.list_conf", "advice.policy.", "slurm.formats.csv_mapping", "slurm.site.", "core.owner",
    "core.site_files", "jobs.events.",
)  # fmt: skip
NOT_OF_THE_FILE = {
    (
        "advisor.advisor_socket",
        "{}: the socket cannot be created: {}: see [advisor] socket",
    ): "the file system at that moment",
    ("advisor.advisor_socket", "{}: {}: see [advisor] socket"): "rights at that moment: the doctor's line run dir",
    ("advisor.advisor_socket", "{}: cannot connect: {}"): "a strange process there: the doctor's line advisor",
    (
        "advisor.advisor_socket",
        "{}: process {} already listens there: stop that advisor, or set [advisor] socket",
    ): "a second advisor",
    ("net.hub_client", "hours and verdicts need a credential: munge, or token_file"): "no daemon comes here without",
    ("net.metrics_server", "[{}] listen: {}: {}"): "the port is taken: `_address` tries the address alone",
    (
        "net.munge_credentials",
        "libmunge.so.2 is not installed: install munge's library (libmunge2, munge-libs) or set token_file",
    ): "a package: the doctor's line munge",
    ("agent.own_node", "{} NodeHostName={}: set [agent] node_name to Slurm's NodeName of this host"): "Slurm's answer",
}
LONG = "s" * 120
_MODEL = '[analytics]\nmodel_url = "http://h/v1"\n'
_S3 = '[hub]\nstore = "lake"\nlake_catalog = "dbname=a"\nlake_data = "s3://bucket/x"\n'
_KEYS = f'{_S3}lake_s3_keys_file = "{{keys}}"\n'
CASES: list[tuple[str, str, str, str]] = [
    # module, its words, the configuration, what the line must hold
    ("views.language_model", "model is empty", _MODEL, "[analytics] model is empty"),
    (
        "views.language_model",
        "model_url",
        '[analytics]\nmodel_url = "h:8000"\nmodel = "m"',
        "model_url 'h:8000': expected",
    ),
    (
        "agent.collectors.dcgm",
        "is not on the loopback interface",
        '[agent]\ncollectors = ["nvml", "dcgm"]\ndcgm_url = "http://node7:9400/metrics"',
        "[agent] dcgm_url: 'http://node7:9400/metrics' is not on the loopback interface",
    ),
    (
        "agent.collectors.dcgm",
        "is not on the loopback interface",
        '[agent]\ncollectors = ["nvml", "dcgm"]\ndcgm_url = "http://[::1"',
        "[agent] dcgm_url: 'http://[::1' is not on the loopback interface",
    ),
    (
        "slurm.gpu_types",
        "[estimate] {}",
        '[estimate]\nprices = ["h900=1"]',
        "[estimate] prices: 'h900': unknown GPU type",
    ),
    (
        "slurm.gpu_links",
        "[estimate] {}",
        '[estimate]\nlinks = ["h900=pcie5"]',
        "[estimate] links: 'h900': unknown GPU type",
    ),
    (
        "slurm.gpu_links",
        "two links of node",
        '[estimate]\nlinks = ["node=hdr", "node=ndr"]',
        "[estimate] links: two links of node: give one",
    ),
    (
        "slurm.gpu_links",
        "two links of {}",
        '[estimate]\nlinks = ["a100=nvlink3", "a100-40gb=pcie4"]',
        "[estimate] links: two links of a100-40gb: give one",
    ),
    (
        "slurm.gpu_links",
        "expected one of",
        '[estimate]\nlinks = ["l4=pci4"]',
        "[estimate] links: 'l4=pci4': expected one of nvlink1",
    ),
    (
        "act.campaigns.assignment",
        "expected a key of at least",
        '[common]\ncampaign_key_file = "{plain}"',
        "expected a key of at least 16 characters",
    ),
    (
        "core.files",
        "cannot be read",
        '[common]\ncampaign_key_file = "{none}"',
        "[common] campaign_key_file",
    ),
    ("advisor.advisor_socket", "exists but is not a socket", '[advisor]\nsocket = "{plain}"', "is not a socket"),
    (
        "advisor.advisor_ports",
        "SlurmUser",
        '[advisor]\nslurm_user = "nobody-here"',
        "SlurmUser 'nobody-here' is not a user",
    ),
    ("core.files", "everybody can read", '[hub]\nnode_tokens_file = "{open}"', "everybody can read or change"),
    ("core.files", "cannot be read", '[hub]\nnode_tokens_file = "{none}"', "cannot be read"),
    (
        "core.files",
        "contains characters",
        '[hub]\nnode_tokens_file = "{latin}"',
        "contains characters that are not allowed in a token",
    ),
    (
        "core.files",
        "could change files that gpuwaste trusts",
        '[hub]\nstate_dir = "{shared}"',
        "can be written to by everybody",
    ),
    ("core.files", "cannot be used", '[agent]\nstate_dir = "{plain}/below"', "cannot be used: Not a directory"),
    (
        "actor.actor_settings",
        "is no action of the actor",
        '[actor]\nactions = ["cancle"]',
        "'cancle' is no action of the actor: did you mean 'cancel'?",
    ),
    (
        "actor.actor_settings",
        "is empty: action {} needs",
        '[actor]\nactions = ["train"]',
        "[actor] train_program is empty: action train needs a program",
    ),
    (
        "actor.actor_settings",
        "expected the full path",
        '[actor]\nactions = ["train"]\ntrain_program = ["train"]',
        "'train': expected the full path of a program",
    ),
    (
        "actor.actor_settings",
        "in the path of the program",
        '[actor]\nactions = ["train"]\ntrain_program = ["/opt/{model}"]',
        "no {name} in the path of the program",
    ),
    (
        "actor.actor_settings",
        "is not known{}",
        '[actor]\nactions = ["train"]\ntrain_program = ["/opt/train", "{mode}"]',
        "{mode} is not known: did you mean 'model'?",
    ),
    ("hub.server", "listen and socket are both", '[hub]\nlisten = ""', "are both empty"),
    (
        "hub.hub_daemon",
        "agent_url needs munge",
        '[common]\nhub_url = "https://h"\ntoken_file = "{token}"\n[hub]\nagent_url = "http://{address}:9460"',
        "[hub] agent_url needs munge",
    ),
    ("ledger.curves.agent_curves", "agent_url", '[hub]\nagent_url = "gpu1:9460"', "agent_url 'gpu1:9460': expected"),
    (
        "ledger.curves.prometheus_curves",
        "prometheus_url",
        '[hub]\nprometheus_url = "http://p/prom"',
        "prometheus_url 'http://p/prom': expected",
    ),
    ("hub.hub_ports", "agent_user", '[hub]\nagent_user = "nobody-here"', "this host has no user 'nobody-here'"),
    ("hub.store_choice", "store {}", '[hub]\nstore = "pond"', "store 'pond': expected file or lake"),
    ("hub.store_choice", "lake_catalog is empty", '[hub]\nstore = "lake"', "lake_catalog is empty"),
    (
        "hub.store_choice",
        "without a password",
        '[hub]\nstore = "lake"\nlake_catalog = "dbname=a password=b"',
        "put it into libpq's passfile",
    ),
    (
        "hub.store_choice",
        "lake_data",
        '[hub]\nstore = "lake"\nlake_catalog = "dbname=a"\nlake_data = "lake"',
        "lake_data 'lake': expected an absolute path",
    ),
    (
        "hub.store_choice",
        "lake_s3_keys_file is empty",
        _S3,
        "name the file with the keys",
    ),
    ("store.lake_s3", "expected a section", f'{_S3}lake_s3_keys_file = "{{empty}}"', "[default]"),
    (
        "store.lake_s3",
        "lake_data",
        f'{_S3.replace("/x", "")}lake_s3_keys_file = "{{keys}}"',
        "expected s3://BUCKET/FOLDER",
    ),
    ("store.lake_s3", "lake_s3_endpoint", f'{_KEYS}lake_s3_endpoint = "s3"', "expected https://HOST[:PORT]"),
    ("store.lake_s3", "lake_s3_region", f'{_KEYS}lake_s3_region = "a b"', "such as us-east-1"),
    ("act.notify.mail_addresses", "address", '[notify]\naddress = "x y"', "expected a pattern such as"),
    (
        "act.notify.account_sponsors",
        "sponsor_command",
        '[notify]\nsponsor_command = ["/bin/echo"]',
        "expected {account} in one of its arguments",
    ),
    ("act.notify.account_sponsors", "users, ", '[notify]\nsponsor_file = "{crowd}"', "11 users, 10 at most"),
    ("act.notify.account_sponsors", "accounts, ", '[notify]\nsponsor_file = "{accounts}"', "50001 accounts, 50000"),
    (
        "act.notify.account_sponsors",
        "expected a user",
        '[notify]\nsponsor_file = "{sponsors}"',
        "expected a user such as",
    ),
    ("core.day_hours", "expected hours", '[notify]\nquiet_hours = "20-7"', "found '20-7': write \"20:00-07:00\""),
    ("core.day_hours", "is not a time range", '[notify]\nquiet_hours = "20:00-20:00"', "is not a time range"),
    ("act.notify.notify_settings", "[notify] at", '[notify]\nat = "8"', "expected a time of the day"),
    ("act.notify.notify_settings", "zone", '[notify]\nzone = "Mars/North"', "unknown time zone"),
    (
        "act.notify.notify_settings",
        "share 0..1",
        "[notify]\nmin_wasted_share = 80.0",
        "min_wasted_share 80.0: expected a share",
    ),
    ("act.notify.notify_settings", "sender is empty", '[notify]\nsmtp_host = "mail"', "sender is empty"),
    ("act.notify.notify_settings", "plain address", '[notify]\nsender = "HPC <h@x>"', "expected a plain address"),
    ("act.notify.notify_settings", "password would be sent", '[notify]\nsmtp_user = "u"', "set smtp_tls"),
    ("act.notify.notify_settings", "limit_mail", "[notify]\nlimit_mail = true", "smtp_host is empty"),
    (
        "advice.rescore_store",
        "limit_mail needs",
        '[notify]\nlimit_mail = true\nsmtp_host = "mail"\nsender = "hpc@example.org"',
        "needs [hub] rescore = true",
    ),
    ("advice.renewal.trial_types", "targets {}", '[models]\ntargets = ["failur"]', "[models] targets ['failur']"),
    ("advice.renewal.trial_types", "min_users", "[models]\nmin_users = 1", "min_users 2 or more"),
    ("act.notify.notify_settings", "expected one of", '[notify]\nevery = "month"', "expected one of week, day"),
    ("hub.sign_in.visitors", "hours", "[web]\nidle_h = 13.0", "idle_h 13: expected more than 0 and at most 12"),
    ("hub.sign_in.visitors", "needs [hub] socket", '[web]\nproxy_users = ["root"]', "needs [hub] socket"),
    (
        "hub.sign_in.origins",
        "no such user",
        '[hub]\nsocket = "/run/x.sock"\n[web]\nproxy_users = ["nobody-here"]',
        "this host has no such user",
    ),
    ("hub.sign_in.origins", "of its own", '[web]\nproxy_header = "Cookie"', "expected a header of its own"),
    ("net.addresses", "{} {}: {}", '[web]\nurl = "https://h:x"', "[web] url 'https://h:x'"),
    ("net.addresses", "{} {}: expected {}", '[web]\nurl = "h"', "expected https://HOST"),
    ("hub.sign_in.origins", "without a path", '[web]\nurl = "https://h/x"', "without a path"),
    ("hub.sign_in.origins", "sessions need TLS", '[web]\nurl = "http://h"', "sessions need TLS"),
    ("net.addresses", "0.0.0.0:{}", '[hub]\nlisten = ":9461"', "0.0.0.0:9461 listens on every IPv4 address"),
    ("net.addresses", "0.0.0.0:{}", '[agent]\nlisten = ":9460"', "0.0.0.0:9460 listens on every IPv4 address"),
    ("net.addresses", "such as", '[hub]\nlisten = "127.0.0.1:http"', "expected ADDRESS:PORT"),
    ("hub.server", "listen {}: {}", '[hub]\nlisten = "192.0.2.1:9461"', "name an address of this host"),
    ("hub.server", "is not a socket", '[hub]\nsocket = "{plain}"', "is not a socket"),
    ("hub.server", "socket {}: {}", '[hub]\nsocket = "{none}/h.sock"', "is not a directory"),
    ("core.unix_socket", "Unix socket", f'[hub]\nsocket = "/{LONG}"', f"[hub] socket /{LONG}: 121 bytes, but"),
    ("core.unix_socket", "Unix socket", f'[advisor]\nsocket = "/{LONG}"', f"[advisor] socket /{LONG}: 121 bytes, but"),
    (
        "core.unix_socket",
        "Unix socket",
        f'[common]\nrun_dir = "/{LONG}"',
        f"[common] run_dir /{LONG}/agent.sock: 132 bytes",
    ),
    ("core.unix_socket", "Unix socket", f'[common]\nhub_url = "unix:/{LONG}"', f"[common] hub_url /{LONG}: 121 bytes"),
    ("core.unix_socket", "Unix socket", f'[common]\nmunge_socket = "/{LONG}"', "[common] munge_socket /ssss"),
    ("core.unix_socket", "Unix socket", f'[common]\nslurmrestd_url = "unix:/{LONG}"', "[common] slurmrestd_url /ssss"),
    ("hub.server", "tls_cert", '[hub]\ntls_cert = "{plain}"\ntls_key = "{plain}"', "[hub] tls_cert, tls_key:"),
    ("net.addresses", "expected unix:/PATH", '[common]\nslurmrestd_url = "unix:x"', "expected unix:/PATH"),
    (
        "net.addresses",
        "{} {}: {}",
        '[common]\nslurmrestd_url = "http://h:x"',
        "slurmrestd_url 'http://h:x'",
    ),
    (
        "net.addresses",
        "{} {}: expected {}",
        '[common]\nslurmrestd_url = "ftp://h"',
        "slurmrestd_url 'ftp://h': expected",
    ),
    (
        "slurm.clients.client_choice",
        "[slurm] client {}: expected",
        '[slurm]\nclient = "slurmdbd"',
        "[slurm] client 'slurmdbd': expected",
    ),
    (
        "slurm.clients.client_choice",
        "set slurmrestd_url",
        '[slurm]\nclient = "slurmrestd"',
        "client is slurmrestd: set slurmrestd_url",
    ),
    (
        "slurm.clients.rest_http",
        "no JWT",
        '[common]\nslurmrestd_token_file = "{plain}"',
        "no JWT in this file",
    ),
    (
        "net.hub_client",
        "sent in clear text",
        '[common]\nhub_url = "http://h"\ntoken_file = "{token}"',
        "in clear text",
    ),
    ("net.addresses", "such as", '[agent]\nlisten = "localhost:x"', "expected ADDRESS:PORT"),
    (
        "net.metrics_server",
        "tls_cert",
        '[agent]\ntls_cert = "{plain}"\ntls_key = "{plain}"',
        "[agent] tls_cert, tls_key:",
    ),
    ("net.metrics_server", "metrics_token_file: {}", '[agent]\nmetrics_token_file = "{none}"', "metrics_token_file:"),
    ("net.metrics_server", "is empty", '[agent]\nmetrics_token_file = "{empty}"', "is empty"),
    ("net.addresses", "expected unix:/PATH", '[common]\nhub_url = "unix:x"', "[common] hub_url 'unix:x'"),
    ("net.addresses", "{} {}: {}", '[common]\nhub_url = "http://h:x"', "[common] hub_url 'http://h:x'"),
    ("net.addresses", "{} {}: expected {}", '[common]\nhub_url = "admin1:9461"', "[common] hub_url 'admin1:9461'"),
    ("hub.sign_in.origins", "[web] url {}: expected {}", '[web]\nurl = "https://a,b"', "expected https://HOST"),
    ("net.addresses", "expected no path", '[common]\nhub_url = "http://h/x"', "expected no path"),
    ("net.http", "hub_ca", '[common]\nhub_url = "https://h"\nhub_ca = "{plain}"', "[common] hub_ca"),
    (
        "net.addresses",
        "printable ASCII",
        '[agent]\ncollectors = ["dcgm"]\ndcgm_url = "http://localhost/a b"',
        "http://localhost/a b",
    ),
    (
        "net.tokens",
        "expected one token",
        '[common]\nhub_url = "https://h"\ntoken_file = "{empty}"',
        "expected one token",
    ),
    ("net.tokens", "expected NAME TOKEN", '[hub]\nnode_tokens_file = "{plain}"', "expected NAME TOKEN"),
    ("net.tokens", "has the same token", '[hub]\nnode_tokens_file = "{twice}"', "has the same token as"),
    ("net.tokens", "cannot be read", '[hub]\nnode_tokens_file = "{none}"', "cannot be read"),
    ("agent.collectors.__init__", "collectors", '[agent]\ncollectors = ["nvlm"]', "'nvlm' is not one of"),
    ("agent.agent_health", "health_xids", '[agent]\nhealth_xids = ["x"]', "'x' is not an Xid number"),
    (
        "net.daemon_client",
        "hub_user",
        '[agent]\nhub_user = "nobody-here"',
        "is not a user on this host: set the user that the hub runs as",
    ),
]
FILES = {
    "plain": b"something\n",
    "empty": b"",
    "latin": b"gpu1 \xff\n",
    "token": b"t" * 20,
    "twice": b"gpu1 " + b"t" * 20 + b"\ngpu2 " + b"t" * 20 + b"\n",
    "open": b"gpu1 " + b"t" * 20,
    "sponsors": b"proj1 = 7\n",
    "crowd": b"proj1 = [" + b'"u",' * 11 + b"]\n",
    "accounts": b"".join(b"a%d = []\n" % number for number in range(50_001)),
    "keys": b"[default]\naws_access_key_id = a\naws_secret_access_key = b\n",
}


def lines(tmp_path: Path, text: str, roles: frozenset[Role]) -> list[str]:
    """Return the problems of a configuration that may name files of ours."""
    for name, content in FILES.items():
        (tmp_path / name).write_bytes(content)
        (tmp_path / name).chmod(0o644 if name == "open" else 0o640)
    (tmp_path / "shared").mkdir(exist_ok=True)
    (tmp_path / "shared").chmod(0o777)
    for name in (*FILES, "none", "shared"):
        text = text.replace(f"{{{name}}}", str(tmp_path / name))
    path = tmp_path / "gpuwaste.toml"
    path.write_text(text + "\n", encoding="utf-8")
    return problems(path, with_users(load_config(path)), roles)


def with_users(config: Config) -> Config:
    """Return the configuration of a host that has the users of the services: here nobody has to be gpuwaste."""
    agent, hub = config.agent, config.hub
    return replace(
        config,
        agent=replace(agent, hub_user="nobody") if agent.hub_user == Config().agent.hub_user else agent,
        hub=replace(hub, agent_user="nobody") if hub.agent_user == Config().hub.agent_user else hub,
    )


@pytest.mark.parametrize(("module", "said", "text", "line"), CASES)
def test_a_refused_start_is_found_before(tmp_path: Path, module: str, said: str, text: str, line: str) -> None:
    """Each slip that ends a daemon at its start is a line of the check on that daemon's host."""
    assert module
    assert said
    found = lines(tmp_path, text, EVERYWHERE)
    assert any(line in problem for problem in found), found


def test_each_refusal_of_the_code_has_a_case() -> None:
    """Every ConfigError that a daemon can raise from its file stands in the cases above, or with why it does not."""
    known = list(NOT_OF_THE_FILE)
    for name, tree in source.modules():
        if name in BEFORE or name.startswith(OTHERS):
            continue
        for call in source.calls(tree):
            if source.called(call) == ConfigError.__name__:
                said = source.words(call.args[0])
                case = any(module == name and words in said for module, words, *_ in CASES)
                assert case or (name, said) in known, f"{name}: {said!r} has no case: does `config check` find it?"


def test_files_and_users_are_looked_at_where_their_service_runs(tmp_path: Path) -> None:
    """One file serves all hosts: the hub's certificate and the agent's user are missing on none but theirs."""
    text = '[hub]\ntls_cert = "/none/a"\ntls_key = "/none/b"\n[advisor]\nslurm_user = "nobody-here"\n'
    assert lines(tmp_path, text, frozenset({Role.LOGIN})) == []
    assert [line.split()[0] for line in lines(tmp_path, text, frozenset({Role.HUB}))] == ["[hub]", "[hub]"]
    assert len(lines(tmp_path, text, frozenset({Role.ADVISOR}))) == 1


@pytest.mark.parametrize(("section", "key"), [("common", "campaign_key_file"), ("hub", "node_tokens_file")])
def test_an_absent_file_is_one_line(tmp_path: Path, section: str, key: str) -> None:
    """Two services of one host, and two checks, meet the same file: its error is there once, and names the setting."""
    text = f'[{section}]\n{key} = "{tmp_path}/none"'
    found = lines(tmp_path, text, frozenset({Role.HUB, Role.ADVISOR}))
    assert found == [f"[{section}] {key} {tmp_path}/none: cannot be read: No such file or directory"]


def test_a_file_that_root_alone_may_read_is_named(tmp_path: Path) -> None:
    """A password file of root with mode 0600 is one that the hub cannot read; its group's, with 0640, is none."""
    text = '[agent]\nhub_user = "nobody"\n[notify]\nsmtp_password_file = "{token}"'
    (problem,) = lines(tmp_path, text, frozenset({Role.HUB}))
    assert "the service's user nobody may not read it: chgrp nobody" in problem
    (tmp_path / "world").write_text("x")
    (tmp_path / "world").chmod(0o644)
    open_text = text.replace("{token}", str(tmp_path / "world"))
    assert lines(tmp_path, open_text, frozenset({Role.HUB})) == []


@pytest.mark.parametrize(("section", "key"), [("common", "token_file"), ("agent", "metrics_token_file")])
def test_a_file_that_the_agent_may_not_read_is_named(tmp_path: Path, section: str, key: str) -> None:
    """The agent has no right to read past a file's mode: root's token with mode 0600 is a line of the check."""
    text = f'[hub]\nagent_user = "nobody"\n[{section}]\n{key} = "{{token}}"'
    assert any(
        "the service's user nobody may not read it" in line for line in lines(tmp_path, text, frozenset({Role.AGENT}))
    )


def test_an_ordinary_user_is_told_nothing_of_files_that_are_closed_to_him(tmp_path: Path) -> None:
    """What the hub may read and he may not is no fault; the same check by root, who may, goes on to what is in it."""
    closed = tmp_path / "closed"
    closed.mkdir()
    (closed / "tokens").write_bytes(b"gpu1 short\n")
    (closed / "tokens").chmod(0o640)
    closed.chmod(0o700)
    path = tmp_path / "gpuwaste.toml"
    path.write_text(f'[hub]\nnode_tokens_file = "{closed}/tokens"\n', encoding="utf-8")
    config = load_config(path)
    hub = frozenset({Role.HUB})
    if os.geteuid():
        pytest.skip("only root can be somebody else")
    assert any("expected NAME TOKEN" in problem for problem in problems(path, config, hub))
    os.seteuid(65534)
    try:
        found = problems(path, config, hub)
    finally:
        os.seteuid(0)
    assert not any("tokens" in problem for problem in found), found
