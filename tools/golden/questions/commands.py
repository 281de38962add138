"""The commands: help of every one, what is read of the hub, and what files alone answer."""

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from gpuwaste.cli.main import command_names
from tools.golden.questions.api import VIEWS, kinds_of_jobs, open_job
from tools.golden.site import DAY, NOW, Site
from tools.golden.story import WEEK
from tools.golden.world import COORDINATOR, OPERATOR, STRANGER, USER, Printed, World

_SUBCOMMAND: Final = re.compile(r"^    ([a-z][a-z-]*)(?:  |$)", re.MULTILINE)
_FORMS: Final = ((), ("--json",), ("--csv",), ("--parsable",))
_FORMS_OF: Final = {OPERATOR: 4, USER: 3}
"""How many of the forms: what a reader may see is the same in each, and how a form looks for each reader."""
_WEEK: Final = ("-S", f"@{WEEK[0]}", "-E", f"@{WEEK[1]}")
_MONTH: Final = ("-S", f"@{NOW - 30 * DAY}", "-E", f"@{NOW}")
_ALL: Final = ("-S", f"@{NOW - 71 * DAY}", "-E", f"@{NOW + DAY}")
_ROOT: Final = Path(__file__).parents[3]
_SCRIPT: Final = "#!/bin/bash\n#SBATCH --gres=gpu:a100:4\n#SBATCH -p gpu -t 12:00:00 -J train1\npython train.py\n"
_HLO: Final = """HloModule product

ENTRY main {
  a = f32[64,128]{1,0} parameter(0)
  b = f32[128,32]{1,0} parameter(1)
  ROOT c = f32[64,32]{1,0} dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""
_WITHOUT_CONFIG: Final = {("events", "kinds"), ("estimate", "probe")}
_OF_LOG: Final = ("-S", "1970-01-01", "-E", "1970-02-10")
_COLUMNS: Final = (
    "Cluster|JobID|JobIDRaw|User|Account|Partition|State|Submit|Start|End|AllocCPUS|NNodes|AllocTRES|TimelimitRaw"
)
_SWF_HEAD: Final = "; Version: 2.2\n; MaxProcs: 4\n"


def asked(world: World, site: Site) -> Iterator[tuple[str, str]]:
    """Yield what the commands print that read the hub, and their help."""
    for names in _all_help(world):
        yield f"command/help/{' '.join(names)}", text_of(world.command(USER, [*names, "--help"]))
    for mistaken in ("reprot", "report --jsn", "model premote x", "train", "notify list", "--jsn"):
        yield f"command/mistaken/{mistaken}", text_of(world.command(USER, mistaken.split()))
    for person in (OPERATOR, USER, COORDINATOR, STRANGER):
        config = ["--config", str(world.config(person, **_sections(world.folder)))]
        for words in dict.fromkeys(_of(world, site, person)):
            yield f"command/{person} {' '.join(words)}", text_of(world.command(person, _with(words, config)))
    yield from _mcp(world, site)


def of_files(world: World) -> Iterator[tuple[str, str]]:
    """Yield what the commands print that read files alone."""
    _lay_out(world.folder)
    config = ["--config", str(world.config(OPERATOR, **_sections(world.folder)))]
    for words in _on_files(world.folder):
        yield f"command/files {' '.join(words)}", text_of(world.command(OPERATOR, _with(words, config)))


def saved_simulation(world: World) -> tuple[str, ...]:
    """Keep a simulation for the hub's pages; return its id."""
    _lay_out(world.folder)
    config = ["--config", str(world.config(OPERATOR, **_sections(world.folder)))]
    words = ["simulate", "what-if", "limits,processors=2", "--swf", str(world.folder / "log.swf"), "--save", *config]
    return tuple(re.findall(r"/simulations/(\w+)", world.command(OPERATOR, words).err))


def text_of(printed: Printed) -> str:
    """Return what was printed as one text."""
    return f"exit code {printed.code}\n{printed.out}" + (f"--- stderr\n{printed.err}" if printed.err else "")


def _sections(folder: Path) -> dict[str, dict[str, str]]:
    """Return what the configuration file of the hub's host says of the site's files."""
    names = ("rules", "inlets", "outlets")
    hub = {f"{name}_dir": str(folder / f"{name}.d") for name in names}
    return {"hub": {**hub, "state_dir": str(folder / "hub")}, "advisor": {"policies_dir": str(folder / "policies.d")}}


def _with(words: Sequence[str], config: Sequence[str]) -> list[str]:
    """Return a command with its configuration, before what is sbatch's."""
    if tuple(words[:2]) in _WITHOUT_CONFIG:
        return list(words)
    place = list(words).index("--") if "--" in words else len(words)
    return [*words[:place], *config, *words[place:]]


def _all_help(world: World) -> Iterator[list[str]]:
    yield []
    waiting = [[name] for name in command_names()]
    while waiting:
        words = waiting.pop()
        yield words
        shown = world.command(USER, [*words, "--help"]).out.partition("\noptions:")[0]
        waiting += [[*words, name] for name in _SUBCOMMAND.findall(shown)]


def _of(world: World, site: Site, person: str) -> Iterator[tuple[str, ...]]:
    ids, own = kinds_of_jobs(site), ("-u", USER) if person == OPERATOR else ()
    for form in _FORMS[: _FORMS_OF.get(person, 1)]:
        yield ("report", *own, *_ALL, *form)
        yield ("now", "--hours", "1", *form)
        yield ("now", "--hours", "72", *form)
        yield ("now", *form)
        yield ("policy", "verdicts", *_MONTH, *form)
        yield ("digest", "list", *_ALL, *form)
        yield ("digest", "preview", *form)
        yield ("digest", "replay", *_WEEK, *form)
        for printed in ids[::12]:
            yield ("job", printed, *form)
        if person in {OPERATOR, COORDINATOR}:
            yield ("report", "-A", "physics", *_WEEK, *form)
            yield ("report", "-a", *_ALL, *form)
            yield ("report", "-M", "all", *_ALL, *form)
            yield ("policy", "verdicts", "--score", *_MONTH, *form)
        if person == OPERATOR and form == ("--parsable",):
            for table in ("users", "accounts", "clusters", "days"):
                yield ("report", "-a", *_WEEK, "--table", table, *form, "-n")
    for printed in ids[:: 4 if person == OPERATOR else 30]:
        yield ("job", printed)
    yield from _more(world, site, person)


def _more(world: World, site: Site, person: str) -> Iterator[tuple[str, ...]]:
    job = open_job(site)
    for form in ((), ("--json",)) if person in _FORMS_OF else ((),):
        yield ("rules", "list", *form)
        yield ("rules", "explain", "ladder", "-j", job, *form)
        yield ("rules", "replay", "ladder", *_WEEK, *form)
        yield ("rules", "actions", *_ALL, *form)
        yield ("rules", "actions", "--status", "intended", *_ALL, *form)
        yield ("events", "kinds", *form)
        yield ("events", "status", *form)
        yield ("model", "trial", *form)
        yield ("predict", "-j", "9001", *form)
        yield ("analyze", *_ALL, *form)
    for identity in _actions(world, person):
        yield ("rules", "actions", identity)
    yield from (("events", "list"), ("events", "list", "--kinds", "rule.*"), ("events", "list", "--after", "5"))
    yield from (
        ("report", "-u", USER, "--fail-above", "1", *_ALL),
        ("now", "--fail-above", "1"),
        ("now", "--hours", "1", "--fail-above", "1"),
    )
    yield from (("job", "4711"), ("job", "x"), ("report", "-S", "nonsense"), ("report", "-u", "bob", *_WEEK))
    yield ("analyze", *_ALL, "--parsable")
    for view in VIEWS if person == OPERATOR else VIEWS[:1]:
        yield ("analyze", *_WEEK, "--view", view, "--compare", "previous")
    for name in ("jobstats", "sacctmgr", "xdmod"):
        yield ("export", name, *(("-a",) if person == OPERATOR else ()), "-S", f"@{NOW - 2 * DAY}", "-E", f"@{NOW}")
    yield ("predict", "--json", "--", "--gres=gpu:2", "--time=60", "--partition=gpu", "--wrap=x")
    yield ("predict", "--", "--gres=gpu:2", "--time=60", "--partition=gpu", "--wrap=x")
    yield ("policy", "explain", "--policies", str(world.folder / "policies.d"), "9001")


def _actions(world: World, person: str) -> list[str]:
    found: dict[str, Any] = json.loads(world.ask(person, "GET", "/v1/actions").body)
    return sorted(row["id"] for row in found.get("actions", ()))[:6]


def _lay_out(folder: Path) -> None:
    lines = [_COLUMNS]
    for day in range(28):
        for number in range(3):
            raw, at = day * 3 + number + 1, f"2024-03-{day + 1:02d}T{number * 5:02d}"
            state = "FAILED" if number == 2 else "COMPLETED"  # noqa: PLR2004 one of three
            lines.append(f"one|{raw}|{raw}|user{number}|acct|gpu|{state}|{at}:00:00|{at}:10:00|{at}:40:00|8|1|"
                         "cpu=8,gres/gpu=2|120")  # fmt: skip
    (folder / "sacct.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    rows = [(n, n * DAY // 2, 0, 30_000 + 7000 * (n % 5), 1 + n % 4, 90_000) for n in range(1, 81)]
    log = [f"{j} {s} {w} {r} {p} -1 -1 {p} {limit} -1 1 7 1 -1 1 1 -1 -1" for j, s, w, r, p, limit in rows]
    (folder / "log.swf").write_text(_SWF_HEAD + "\n".join(log) + "\n", encoding="utf-8")
    (folder / "train.sh").write_text(_SCRIPT, encoding="utf-8")
    (folder / "product.hlo").write_text(_HLO, encoding="utf-8")


def _on_files(folder: Path) -> Iterator[Sequence[str]]:
    sacct, log, fixtures = str(folder / "sacct.txt"), str(folder / "log.swf"), _ROOT / "tests/fixtures"
    for form in ((), ("--json",), ("--parsable",)):
        yield ("analyze", "--sacct", sacct, *form)
    yield ("analyze", "--sacct", str(fixtures / "own_recordings/sacct_2205.json"))
    yield (
        "analyze",
        "--csv",
        str(fixtures / "csv/numbers_for_absent.csv"),
        "--mapping",
        str(fixtures / "csv/mapping.toml"),
    )
    yield ("analyze", "--swf", log, "-S", "1970-01-10", "-E", "1970-01-20", "--compare", "previous")
    yield ("analyze", "--sacct", "/nonexistent")
    schedulers = ("--scheduler", "fcfs,sjf,easy")
    for form in ((), ("--json",)):
        yield ("simulate", "run", "--swf", log, *schedulers, *form)
        yield ("simulate", "what-if", "limits,processors=2", "--swf", log, *form)
        yield ("simulate", "run", "--from", log, "--first", "20", *form)
        yield ("simulate", "run", "--swf", log, "--seeds", "3", "--walltime", "recent", *form)
        for file in sorted((fixtures / "estimate").glob("*.json")):
            yield ("estimate", str(file), "--gpu", "h100,a100-40gb,t4", "--goal", "smallest", *form)
        yield ("estimate", str(folder / "product.hlo"), *form)
        yield ("estimate", str(folder / "product.hlo"), "--gpu", "h100", "--mig", "--price", "h100=2.5", *form)
        yield ("predict", str(folder / "train.sh"), *form)
        yield ("predict", "--model", str(folder / "models/second"), str(folder / "train.sh"), *form)
        yield ("plan", str(folder / "train.sh"), *form)
        yield ("model", "list", *form)
        yield ("model", "show", "second", *form)
        yield ("policy", "explain", str(folder / "train.sh"), "--policies", str(folder / "policies.d"), *form)
        yield (
            "policy",
            "replay",
            "--swf",
            log,
            "-S",
            "1970-01-01",
            "-E",
            "1970-02-10",
            "--policies",
            str(folder / "policies.d"),
            *form,
        )
    yield ("policy", "check", str(_ROOT / "etc/policies.d"))
    yield ("policy", "check", str(folder / "policies.d"))
    yield ("rules", "check", str(_ROOT / "etc/rules.d"))
    yield ("rules", "check", str(folder / "rules.d"))
    yield ("events", "check", str(folder / "inlets.d"), str(folder / "outlets.d"))
    yield ("history", "import", "--sacct", "sacct.txt", "--into", "own.duckdb")
    yield ("history", "status", "--into", "own.duckdb")
    yield ("history", "status", "--into", "own.duckdb", "--json")
    yield ("config", "show")
    yield ("simulate", "generate")
    yield ("estimate", "probe", "torch")
    yield ("estimate", "probe", "jax")


def _mcp(world: World, site: Site) -> Iterator[tuple[str, str]]:
    """Yield what a client of the Model Context Protocol gets over standard input and output."""
    calls: list[tuple[str, dict[str, Any]]] = [
        ("report", {"user": "alice", "start": f"@{WEEK[0]}", "end": f"@{WEEK[1]}"}),
        ("job", {"job_id": kinds_of_jobs(site)[0]}), ("job", {"job_id": "x"}), ("now", {"rows": 3}), ("view", {}),
        ("view", {"name": "waste", "start": f"@{WEEK[0]}", "end": f"@{WEEK[1]}"}),
    ]  # fmt: skip
    for person in (OPERATOR, USER):
        for number, text in enumerate(world.tools(person, calls)):
            yield f"mcp/{person} {number}", text
