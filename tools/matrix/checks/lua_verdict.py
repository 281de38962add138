"""The Lua shim under job_submit/lua of this release: loads, asks, and says what the C plugin says."""

from typing import Final

from tools.matrix.checks import modify, verdict
from tools.matrix.rig import Rig, expect, says

NAME: Final = "Lua shim: loads, asks, verdicts"
JOB_SUBMIT: Final = ""
_SITE: Final = """
package.path = "{plugins}/?.lua;" .. package.path
package.cpath = "{plugins}/?.so;" .. package.cpath
local gpuwaste = require("gpuwaste")
function slurm_job_submit(job_desc, part_list, submit_uid)
  return gpuwaste.submit(job_desc, part_list, submit_uid)
end
function slurm_job_modify(job_desc, job_rec, part_list, modify_uid)
  return gpuwaste.modify(job_desc, job_rec, part_list, modify_uid)
end
return slurm.SUCCESS
"""


def site_script(rig: Rig) -> str:
    """Return the job_submit.lua that the documentation tells a site to write."""
    return _SITE.format(plugins=rig.plugins)


def run(rig: Rig) -> None:
    """Load the shim; then the C plugin's own checks of the verdicts and of a modification."""
    rig.use_lua(site_script(rig))
    with rig.advisor(says("pass")) as advisor:
        rig.accepted("--job-name=first", "--gres=gpu:1")
        request = next((r for r in advisor.requests if r["job"].get("name") == "first"), {})
    expect(bool(request), "the job was accepted, but the advisor was not asked about it")
    expect((request["op"], request["via"]) == ("submit", "lua"), f"the request says {request['op']}, {request['via']}")
    verdict.silent(rig)
    verdict.warn(rig)
    verdict.reject(rig)
    modify.refuses(rig)
