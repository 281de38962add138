"""An error inside our Lua module costs no job, also where the release rejects jobs on an error of the script."""

from collections.abc import Callable
from typing import Final, TypeVar

from tools.matrix.checks import lua_verdict
from tools.matrix.rig import Rig, expect

T = TypeVar("T")
NAME: Final = "Lua shim: an error inside, job accepted"
JOB_SUBMIT: Final = ""
_RAISES: Final = """
function slurm_job_submit(job_desc, part_list, submit_uid)
  error("an error of the site's own")
end
function slurm_job_modify()
  return slurm.SUCCESS
end
return slurm.SUCCESS
"""
_BROKEN_CORE: Final = """
package.loaded["gpuwaste_core"] = {
  version = 1,
  ask = function() error("broken on purpose") end,
  comment = function() error("broken on purpose") end,
}
"""
_NO_CORE: Final = 'package.preload["gpuwaste_core"] = function() error("not to be had") end\n'


def run(rig: Rig) -> None:
    """Break what our module calls, then what it loads; last a script that raises by itself, to see what Slurm does."""
    for reason, before in (("broken on purpose", _BROKEN_CORE), ("not to be had", _NO_CORE)):
        rig.use_lua(before + lua_verdict.site_script(rig))
        _in_log(rig, reason, rig.accepted)
    rig.use_lua(_RAISES)
    done = _in_log(rig, "an error of the site's own", rig.submit)
    rejected = done.returncode != 0
    expect(
        rejected == rig.release.lua_error_rejects,
        f"job_submit/lua of {rig.version} {'rejects' if rejected else 'accepts'} a job where the script raises: "
        "change lua_error_rejects in tools/matrix/releases.py",
    )


def _in_log(rig: Rig, words: str, submit: Callable[[], T]) -> T:
    """Submit, and see in slurmctld's log that the error did happen."""
    mark = rig.log_size()
    result = submit()
    expect(words in rig.log_after(mark), f"slurmctld's log has no {words!r}: the edited script was not run")
    return result
