"""The Lua shim under real interpreters: what it sends, what it does with an answer, and that it never raises."""

import re
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.plugins.lua_side import (
    EXAMPLE,
    INTERPRETERS,
    SOURCE,
    TOKEN,
    Lua,
    Outcome,
    build,
    say,
    write_settings,
)

from gpuwaste.advice.submit_frames import HEADER
from gpuwaste.testing.scripted_advisor import Answer, ScriptedAdvisor

SUBMIT = 'result(require("gpuwaste").submit(made({%s}), {}, 1000))\n'


@pytest.fixture(scope="module", params=sorted(INTERPRETERS))
def built(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """Build the shim for one Lua."""
    program, include = INTERPRETERS[request.param]
    if not shutil.which(program) or not Path(include, "lua.h").exists():
        pytest.skip(f"{program} and its headers are not installed (tools/install-debian-packages)")
    return program, build(tmp_path_factory.mktemp(f"lua{request.param}"), include)


@pytest.fixture
def lua(built: tuple[str, Path], tmp_path: Path) -> Lua:
    write_settings(tmp_path)
    return Lua(*built, tmp_path)


@pytest.fixture
def advise(tmp_path: Path) -> Iterator[Callable[..., ScriptedAdvisor]]:
    """Return a function that starts an advisor with this answer."""
    with ExitStack() as stack:

        def start(answer: Answer | None = None) -> ScriptedAdvisor:
            return stack.enter_context(ScriptedAdvisor(tmp_path / "advisor.sock", answer or say("pass")))

        yield start


@pytest.fixture
def advisor(advise: Callable[..., ScriptedAdvisor]) -> ScriptedAdvisor:
    """Start an advisor that lets everything pass."""
    return advise()


def is_pass(outcome: Outcome) -> bool:
    """Whether every call returned the number 0, and nobody was told anything."""
    return (
        bool(outcome.results)
        and all(float(r.removeprefix("number ")) == 0 for r in outcome.results)
        and not outcome.told
    )


@pytest.mark.parametrize("action", ["pass", "annotate"])
def test_a_silent_answer_leaves_the_token_alone(lua: Lua, advise: Callable[..., ScriptedAdvisor], action: Any) -> None:
    """The job passes, the user sees nothing, admin_comment keeps what was there."""
    advise(say(action, "not to be seen"))
    outcome = lua.run(SUBMIT % 'admin_comment = "site=7"')
    assert is_pass(outcome)
    assert outcome.set == {"admin_comment": f"site=7;gw={TOKEN}"}


def test_a_warning_is_told_and_the_job_passes(lua: Lua, advise: Callable[..., ScriptedAdvisor]) -> None:
    """Its lines come as one message, and a percent sign in them is a percent sign."""
    advise(say("warn", "uses 25 % of %s", "because %d"))
    outcome = lua.run(SUBMIT % "")
    assert outcome.told == ["uses 25 % of %s\nbecause %d"]
    assert [float(r.split()[1]) for r in outcome.results] == [0]
    assert outcome.set == {"admin_comment": f";gw={TOKEN}"}


@pytest.mark.parametrize(("code", "returned"), [(0, 2050), (2066, 2066), (5, 2050), (3000, 2050)])
def test_a_rejection_returns_an_error_of_slurm(
    lua: Lua, advise: Callable[..., ScriptedAdvisor], code: int, returned: int
) -> None:
    """The advisor's code where it is one of slurmctld's, else ESLURM_ACCOUNTING_POLICY, and the reason is told."""
    advise(say("reject", "too much", code=code))
    outcome = lua.run(SUBMIT % "")
    assert [float(r.split()[1]) for r in outcome.results] == [returned]
    assert outcome.told == ["too much"]


def test_a_rejection_that_cannot_be_told_passes(lua: Lua, advise: Callable[..., ScriptedAdvisor]) -> None:
    """Nobody is rejected without being told why."""
    advise(say("reject", "too much"))
    outcome = lua.run("slurm.log_user = function() error('broken') end\n" + SUBMIT % "")
    assert is_pass(outcome)
    assert "broken" in outcome.logged[0]


FIELDS = {
    "user_id": 1000,
    "group_id": 1001,
    "name": "train",
    "account": "proj1",
    "partition": "gpu",
    "qos": "normal",
    "time_limit": 60,
    "time_min": 10,
    "min_nodes": 1,
    "max_nodes": 2,
    "min_cpus": 4,
    "max_cpus": 8,
    "num_tasks": 4,
    "cpus_per_task": 2,
    "ntasks_per_node": 3,
    "pn_min_cpus": 1,
    "tres_per_job": "gres/gpu:1",
    "tres_per_node": "gres:gpu:2",
    "tres_per_socket": "gres/gpu:3",
    "tres_per_task": "gres/gpu:4",
    "cpus_per_tres": "gres/gpu:8",
    "mem_per_tres": "gres/gpu:1024",
    "sockets_per_node": 2,
    "features": "a100",
    "comment": "mine",
    "admin_comment": "site",
    "reservation": "resv",
    "dependency": "afterok:7",
    "array_inx": "0-9",
    "het_job_offset": 1,
    "shared": 0,
    "begin_time": 1_900_000_000,
}


def written(fields: dict[str, Any]) -> str:
    """Return fields as a Lua table's inside."""
    return ", ".join(
        f'{name} = "{value}"' if isinstance(value, str) else f"{name} = {value}" for name, value in fields.items()
    )


def test_every_member_is_sent(lua: Lua, advisor: ScriptedAdvisor) -> None:
    """Under the name that the C plugin gives it, with the op, the submitter and the counters."""
    script = "#!/bin/bash\nsleep 1\n"
    lua.run(SUBMIT % (written(FIELDS) + ', min_mem_per_cpu = 500, script = "#!/bin/bash\\nsleep 1\\n"'))
    request = advisor.requests[0]
    job = request["job"]
    digest = job.pop("script_hash")
    assert job == {**FIELDS, "mem_per_cpu_mb": 500, "script": script, "script_bytes": len(script)}
    assert digest == fnv1a(script.encode())
    assert (request["op"], request["via"], request["uid"]) == ("submit", "lua", 1000)
    assert request["counters"]["asked"] == 1


def fnv1a(data: bytes) -> str:
    """Return FNV-1a, 64 bits, as hexadecimal digits."""
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return f"{value:016x}"


def test_the_members_are_those_of_the_c_plugin() -> None:
    """Both lists, read from the two sources, name the same; Lua has two names of its own for memory."""
    text = (SOURCE.parent / "c" / "job_fields.h").read_text()
    sent = re.findall(r"#define GW_JOB_(?:TEXTS|NUMBERS)\(X\)((?: \\\n\tX\(\w+\))+)", text)
    assert len(sent) == 2
    in_c = set(re.findall(r"X\((\w+)\)", "".join(sent))) | {
        "time_limit",
        "mem_per_node_mb",
        "mem_per_cpu_mb",
        "begin_time",
    }
    in_lua = set(re.findall(r'^  \{"(\w+)"', (SOURCE / "gpuwaste.lua").read_text(), re.MULTILINE))
    assert in_lua - {"script"} == in_c


def test_unset_numbers_are_left_out(lua: Lua, advisor: ScriptedAdvisor) -> None:
    """NO_VAL of 16, 32 and 64 bits, INFINITE, NaN, what is below zero, 0 as a time, and what is of another type."""
    unset = {
        "user_id": 4294967294, "time_min": 4294967294, "min_nodes": 4294967295, "max_cpus": 1.8446744073709552e19,
        "cpus_per_task": 65534, "ntasks_per_node": 65535, "shared": 65534, "num_tasks": -1, "begin_time": 0,
    }  # fmt: skip
    strange = "max_nodes = 0/0, min_cpus = 1/0, pn_min_cpus = 'x', name = 7, qos = {}, account = true, features = print"
    lua.run(SUBMIT % f"{written(unset)}, {strange}, min_mem_per_node = 0")
    assert advisor.requests[0]["job"] == {"mem_per_node_mb": 0}


def test_a_limit_without_end_is_infinite(lua: Lua, advisor: ScriptedAdvisor) -> None:
    """INFINITE means something for the time limit alone."""
    lua.run(SUBMIT % "time_limit = 4294967295")
    assert advisor.requests[0]["job"] == {"time_limit": "infinite"}


@pytest.mark.parametrize(
    "job",
    [
        "nil",
        "7",
        "'text'",
        "true",
        "io.stdout",
        "print",
        "coroutine.create(function() end)",
        "setmetatable({}, {__index = function() error('no such field') end})",
        "setmetatable({}, {__index = function() error({}) end})",
        "setmetatable({}, {__index = function() error(nil) end, __newindex = function() error('read only') end})",
        "setmetatable({}, {__index = function() error(setmetatable({}, {__tostring = error})) end})",
        "setmetatable({}, {__index = function(t, n) return t[n] end})",
    ],
)
def test_a_job_that_raises_at_every_field_passes(lua: Lua, advise: Callable[..., ScriptedAdvisor], job: str) -> None:
    """Nil, other types, objects that raise anything, and one that recurses without end."""
    advisor = advise(say("annotate"))
    outcome = lua.run(
        f'local g = require("gpuwaste")\nresult(g.submit({job}, nil, 0))\nresult(g.modify({job}, {job}, nil, 0))'
    )
    assert is_pass(outcome)
    assert [request["job"] for request in advisor.requests] == [{}, {}]


@pytest.mark.parametrize(
    "arguments", ["", "nil, nil, nil", "{}, {}, 'root'", "{}, {}, -1", "{}, {}, 0/0", "{}, {}, 1e300"]
)
def test_a_call_without_a_usable_submitter_passes(lua: Lua, advisor: ScriptedAdvisor, arguments: str) -> None:
    """The advisor is not asked on behalf of nobody."""
    outcome = lua.run(f'result(require("gpuwaste").submit({arguments}))')
    assert is_pass(outcome)
    assert advisor.requests == []


def test_a_frame_is_bounded(lua: Lua, advisor: ScriptedAdvisor) -> None:
    """Texts of a megabyte are cut at 1024 bytes; of a script of 4 MB the head goes along."""
    outcome = lua.run(
        'local big = string.rep("x", 1048576)\n'
        "local fields = {script = string.rep('#!/bin/sh\\n', 419430)}\n"
        'for _, n in ipairs({"name", "account", "tres_per_node", "comment", "dependency"}) do fields[n] = big end\n'
        'result(require("gpuwaste").submit(made(fields), {}, 0))'
    )
    assert is_pass(outcome)
    job = advisor.requests[0]["job"]
    assert len(advisor.frames[0]) <= HEADER.size + 64 * 1024
    assert len(job["name"]) == len(job["comment"]) == 1024
    assert job["script_bytes"] == 4_194_300
    assert ("#!/bin/sh\n" * 419_430).startswith(job["script"])
    assert len(job["script"]) > 1000


def test_bytes_that_are_no_utf8_travel_in_base64(lua: Lua, advisor: ScriptedAdvisor) -> None:
    """Nothing is lost; control characters and quotes are escaped."""
    lua.run(SUBMIT % r'name = "\255\254", comment = "a\"\1\n"')
    assert advisor.requests[0]["job"] == {"name": {"b64": "//4="}, "comment": 'a"\x01\n'}


def test_without_an_advisor_jobs_pass_and_the_breaker_opens(lua: Lua) -> None:
    """Three misses, then nobody is asked; each job passes, and admin_comment is as it was."""
    outcome = lua.run(
        'local g, core = require("gpuwaste"), require("gpuwaste_core")\n'
        "for _ = 1, 10 do result(g.submit(made({admin_comment = 'site'}), {}, 0)) end\n"
        "local t = core.totals()\n"
        'result(string.format("%d %d %d %d", t.asked, t.missed, t.opened, t.skipped))'
    )
    assert outcome.results.pop() == "string 3 3 1 7"
    assert is_pass(outcome)
    assert outcome.set == {}


def test_a_hung_advisor_costs_the_deadline_alone(
    lua: Lua, advise: Callable[..., ScriptedAdvisor], tmp_path: Path
) -> None:
    """It takes the request and says nothing: a miss."""
    over = threading.Event()

    def hang(_: dict[str, Any]) -> bytes:
        over.wait(60)
        return b""

    advise(hang)
    write_settings(tmp_path, deadline_us=20_000)
    outcome = lua.run(SUBMIT % "" + 'result(tostring(require("gpuwaste_core").totals().missed + 0 == 1))')
    over.set()
    assert outcome.results.pop() == "string true"
    assert is_pass(outcome)


@pytest.mark.parametrize(
    "garbage", [b"", b"\0", b"HTTP/1.1 200 OK\r\n\r\n", b"\0\0\0\2\0\1{}", b"\0\0\0\4\0\2null", b"\xff" * 4096]
)
def test_garbage_from_the_socket_passes(lua: Lua, advise: Callable[..., ScriptedAdvisor], garbage: bytes) -> None:
    """Nothing but a whole reply of this version is believed."""
    advise(lambda _: garbage)
    outcome = lua.run(SUBMIT % "")
    assert is_pass(outcome)
    assert outcome.set == {}


def test_the_kill_switch_stops_everything(lua: Lua, advisor: ScriptedAdvisor, tmp_path: Path) -> None:
    """Nobody is asked and not even a token of before is touched."""
    (tmp_path / "disable").touch()
    outcome = lua.run(SUBMIT % f'admin_comment = "gw={TOKEN}"')
    assert is_pass(outcome)
    assert (outcome.set, advisor.requests) == ({}, [])


def test_a_token_that_was_brought_along_goes(lua: Lua) -> None:
    """It would join this job's end to another job's verdict, so it goes although no advisor answers."""
    outcome = lua.run(SUBMIT % f'admin_comment = "site;gw={TOKEN}"')
    assert outcome.set == {"admin_comment": "site"}


def test_a_modification_names_the_job_and_leaves_its_comment(lua: Lua, advise: Callable[..., ScriptedAdvisor]) -> None:
    """admin_comment of a modification replaces the job's, so only one that sets it gets a token."""
    advisor = advise(say("warn", "hm"))
    call = 'result(require("gpuwaste").modify(made({%s}), made({job_id = 42}), {}, 1000))'
    outcome = lua.run(call % "time_limit = 90, group_id = 0, time_min = 4294967294")
    assert (outcome.set, outcome.told) == ({}, ["hm"])
    assert advisor.requests[0]["op"] == "modify"
    assert advisor.requests[0]["job"] == {"job_id": 42, "time_limit": 90}
    assert lua.run(call % 'admin_comment = "new"').set == {"admin_comment": f"new;gw={TOKEN}"}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [("time_limit = 60", 15), ("time_limit = 60, time_min = 5", None), ("", None), ("time_limit = 10", None)],
)
def test_time_min_is_set_below_the_limit_only(
    lua: Lua, advise: Callable[..., ScriptedAdvisor], fields: str, expected: int | None
) -> None:
    """Never over the user's own, never without a limit or above it: Slurm would refuse the job."""
    advise(say("annotate", time_min=15))
    found = lua.run(SUBMIT % fields).set.get("time_min")
    assert (None if found is None else float(found)) == expected


def test_a_missing_helper_lets_jobs_pass(lua: Lua) -> None:
    """The .so is not there: one clear line in slurmctld's log for all jobs."""
    outcome = lua.run(SUBMIT % "" + SUBMIT % "", env={"LUA_CPATH": "/nonexistent/?.so"})
    assert is_pass(outcome)
    found = [line for line in outcome.logged if "package.cpath" in line]
    line = (
        "gpuwaste_core.so cannot be loaded, jobs accepted without advice: is it in package.cpath, built for this Lua?"
    )
    assert found == [f"gpuwaste.lua: {line}"]


@pytest.mark.parametrize(
    "core",
    [
        "{version = 99}",
        "7",
        "{version = 1}",
        "{version = 1, ask = function() error({}) end}",
        "{version = 1, ask = function() return 'reject' end}",
        "{version = 1, ask = function() return 'reject', {}, {}, {}, {} end}",
        "{version = 1, ask = function() return 'reject', 'x', 'y', 'z', '' end}",
        "{version = 1, ask = function() return {}, 'x', 0, 0, '' end, comment = function() error('x') end}",
    ],
)
def test_a_helper_of_another_kind_lets_jobs_pass(lua: Lua, core: str) -> None:
    """Another release's, or one that answers nonsense: the number 0 and a line in the log."""
    outcome = lua.run(f"package.loaded.gpuwaste_core = {core}\n" + SUBMIT % "")
    assert is_pass(outcome)
    assert outcome.logged


@pytest.mark.parametrize("slurm", ["nil", "7", "{}", "setmetatable({}, {__index = function() error('x') end})"])
def test_without_slurms_own_table_jobs_pass(lua: Lua, advise: Callable[..., ScriptedAdvisor], slurm: str) -> None:
    """Even what Slurm gives is not relied upon."""
    advise(say("reject", "no"))
    outcome = lua.run(f"slurm = {slurm}\n" + SUBMIT % "")
    assert is_pass(outcome)


def test_an_error_is_logged_once(lua: Lua, advise: Callable[..., ScriptedAdvisor]) -> None:
    """A defect at a hundred jobs a second must not fill the log."""
    advise(say("annotate"))
    outcome = lua.run(
        "local j = setmetatable({}, {__index = function() end, __newindex = function() error('read only', 0) end})\n"
        'for _ = 1, 50 do result(require("gpuwaste").submit(j, {}, 0)) end'
    )
    assert is_pass(outcome)
    assert outcome.logged == ["gpuwaste.lua: read only"]


BROKEN = {
    "absent": None,
    "syntax error": "this is no Lua (",
    "raises": "error('boom')",
    "raises nothing": "error()",
    "returns nothing": "",
    "returns a text": "return 'gpuwaste 7'",
    "without functions": "return {}",
    "raises at a job": "return {submit = function() error({}) end, modify = function() error('x') end}",
    "returns no number": "return {submit = function() return 'no' end, modify = function() end}",
    "never mind": "return setmetatable({}, {__index = function() error('x') end})",
}


@pytest.mark.parametrize("what", sorted(BROKEN))
def test_the_example_survives_whatever_our_module_is(lua: Lua, tmp_path: Path, what: str) -> None:
    """etc/slurm/job_submit.lua.example returns the number 0 from both functions."""
    modules = tmp_path / "modules"
    modules.mkdir()
    text = BROKEN[what]
    if text is not None:
        (modules / "gpuwaste.lua").write_text(text)
    outcome = lua.run(
        f'package.path = "{modules}/?.lua"\npackage.cpath = ""\ndofile("{EXAMPLE}")\n'
        "result(slurm_job_submit(made({}), {}, 0))\nresult(slurm_job_modify(made({}), made({}), {}, 0))",
        env={"LUA_PATH": "", "LUA_CPATH": ""},
    )
    assert is_pass(outcome)


def test_the_example_hands_on_a_rejection(lua: Lua, advise: Callable[..., ScriptedAdvisor]) -> None:
    """With the module in place the example returns its code."""
    advise(say("reject", "no", code=2066))
    outcome = lua.run(f'dofile("{EXAMPLE}")\nresult(slurm_job_submit(made({{}}), {{}}, 0))')
    assert [float(r.split()[1]) for r in outcome.results] == [2066]
