"""Under job_submit/lua no failure of the advisor costs a job, nor do many submitters at once."""

from typing import Final

from tools.matrix.checks import fail_open, lua_verdict, parallel
from tools.matrix.rig import Rig

NAME: Final = "Lua shim: fail-open, parallel submitters"
JOB_SUBMIT: Final = ""


def run(rig: Rig) -> None:
    """Go through the same faults as the C plugin."""
    rig.use_lua(lua_verdict.site_script(rig))
    fail_open.fail_open(rig)
    parallel.own_verdicts(rig)
