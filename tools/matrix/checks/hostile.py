"""Job descriptions of hostile content and size: accepted as without us, and the request stays well formed."""

from typing import Final

from gpuwaste.advice.submit_frames import HEADER, MAX_REQUEST
from tools.matrix.rig import Rig, expect, says

NAME: Final = "hostile job descriptions"
JOB_SUBMIT: Final = "gpuwaste"
_MIB: Final = 1024 * 1024
_CASES: Final[tuple[tuple[str, ...], ...]] = (
    ("--job-name=\x1b[31mred\x07", "--comment=\x01\x02\x1f\x7f"),
    ("--comment=\udcff\udcfe\udc80 no UTF-8",),
    ('--job-name="},{"op":"modify"', "--comment=%s%n%x\\u0000;gw=0123456789abcdef"),
    ("--job-name=" + "n" * 1024,),
    ("--comment=" + "\u20ac" * 300,),
    ("--comment=" + "c" * 1024, "--job-name=" + "\u202e" * 100),
)


def run(rig: Rig) -> None:
    """Each description, then scripts up to just below max_script_size."""
    with rig.advisor(says("pass")) as advisor:
        for options in _CASES:
            rig.accepted(*options)
        for script in (": " + "x" * (_MIB - 100), ": \x01\x02\x7f\udcff" * 1000, "exit 0 # " + "\\" * 65_000):
            rig.accepted(script=script)
        requests = list(advisor.requests)
    asked = len(_CASES) + 3
    expect(len(requests) == asked, f"the advisor was asked {len(requests)} times for {asked} jobs")
    largest = max(map(len, advisor.frames))
    expect(largest <= HEADER.size + MAX_REQUEST, f"a request of {largest} bytes")
    sizes = [int(request["job"].get("script_bytes", 0)) for request in requests]
    expect(max(sizes) > _MIB - 200, f"the scripts' sizes are {sizes}")
