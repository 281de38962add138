"""Job descriptions at every limit: what a user can give sbatch that a plugin might stumble over."""

from collections.abc import Iterator

from gpuwaste.testing.submit_load import SbatchCall

MAX_SCRIPT = 4 * 1024 * 1024
"""Slurm's default of SchedulerParameters=max_script_size, bytes."""
_CONTROLS = "a" + "".join(map(chr, range(1, 32))) + "\x7f\u0080\u009b2J\u202e"
_NOT_UTF8 = "\udcff\udcfe\udc80\udcc3(\udced\udca0\udc80\udcf8"
"""Bytes that no UTF-8 has, as Python passes them on to a program."""
_SCRIPT = "#!/bin/sh\n"


def odd_jobs(user: str) -> Iterator[tuple[str, SbatchCall]]:
    """Yield (what is odd, the submission), each with a GPU unless it says otherwise."""
    for what, arguments in _odd_arguments():
        yield what, SbatchCall(user, "odd", tuple(arguments))
    for what, script in _odd_scripts():
        yield what, SbatchCall(user, "odd", ("--gres=gpu:1",), script)
    for what, env in _odd_environments():
        yield what, SbatchCall(user, "odd", ("--gres=gpu:1", "--export=ALL"), env=env)


def _odd_arguments() -> Iterator[tuple[str, list[str]]]:
    for size in (1, 1023, 1024, 1025, 4096, 65_535, 65_536, 120_000):
        yield f"name of {size} bytes", [f"--job-name={'n' * size}"]
    for size in (1023, 1024, 1025, 60_000):
        yield f"comment of {size} bytes", [f"--comment={'c' * size}"]
        yield f"features of {size} bytes", [f"--constraint={'f' * size}"]
        yield f"account of {size} bytes", [f"--account={'a' * size}"]
        yield f"dependency of {size} bytes", [f"--dependency=afterany:{':'.join(['1'] * (size // 2))}"]
    for option in (
        "job-name",
        "comment",
        "constraint",
        "account",
        "qos",
        "reservation",
        "partition",
        "wckey",
        "licenses",
    ):
        yield f"control characters in {option}", [f"--{option}={_CONTROLS}"]
        yield f"invalid UTF-8 in {option}", [f"--{option}={_NOT_UTF8}"]
    yield "a character cut by the limit", [f"--comment={'c' * 1022}é", f"--job-name={'n' * 1023}é"]
    yield "a name that would be JSON", ['--job-name="}],"op":"modify","job":{"name":"x']
    yield "a name that would be a token", ["--job-name=;gw=0123456789abcdef", "--comment=;gw=0123456789abcdef"]
    yield "a name of all quotes, twice as long escaped", ['--job-name="' + '"\\' * 30_000]
    yield "an empty name and comment", ["--job-name=", "--comment="]
    yield "the largest array", ["--array=0-1000"]
    yield "an array with gaps", [f"--array={','.join(str(n) for n in range(0, 1000, 2))}"]
    yield "a list of many GPUs", [f"--gres={','.join(['gpu:1'] * 500)}"]
    yield (
        "all numbers at their largest",
        ["--cpus-per-task=65533", "--nodes=1-500000", "--mem=2147483647", "--nice=1000"],
    )
    yield "all numbers at their smallest", ["--cpus-per-task=1", "--nodes=1", "--mem=0", "--time=1", "--time-min=1"]
    yield "no limit of time", ["--partition=whole", "--time=UNLIMITED"]
    yield "every kind of GPU option", ["--gpus=2", "--gpus-per-node=2", "--cpus-per-gpu=1", "--mem-per-gpu=1"]
    yield "a heterogeneous job", ["--gres=gpu:1", ":", "--ntasks=2", "--partition=whole"]
    yield "a test alone", ["--test-only"]
    yield "a begin long ahead", ["--begin=now+364days", "--deadline=now+365days"]


def _odd_scripts() -> Iterator[tuple[str, str]]:
    for size in (len(_SCRIPT), 32_768, 32_769, 65_536, MAX_SCRIPT - 1, MAX_SCRIPT, MAX_SCRIPT + 1):
        yield f"script of {size} bytes", _SCRIPT + "#" * (size - len(_SCRIPT))
    yield "script of invalid UTF-8", _SCRIPT + _NOT_UTF8 * 5000
    yield "script of control characters", _SCRIPT + _CONTROLS.replace("\r", "") * 1000
    yield "script of quotes", _SCRIPT + '"\\' * 40_000
    yield "script with a character cut by the limit", _SCRIPT + "é" * 30_000


def _odd_environments() -> Iterator[tuple[str, dict[str, str]]]:
    yield "environment of 1 MB", {f"BIG{number}": "e" * 100_000 for number in range(10)}
    yield "environment of 5,000 variables", {f"V{number}": "x" for number in range(5000)}
    yield "environment of invalid UTF-8", {"ODD": _NOT_UTF8, "CONTROLS": _CONTROLS}
