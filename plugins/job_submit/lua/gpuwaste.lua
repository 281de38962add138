-- Asks the gpuwaste advisor about a job, for sites that run their own job_submit.lua:
--
--   local gpuwaste = require("gpuwaste")
--   gpuwaste.submit(job_desc, part_list, submit_uid)            -> slurm.SUCCESS, or the code of a rejection
--   gpuwaste.modify(job_desc, job_rec, part_list, submit_uid)   -> the same
--
-- Neither ever raises an error, and both always return a number: from Slurm 26.05 on an error in Lua rejects the job.
-- Whatever is missing or broken, the answer is slurm.SUCCESS. Runs on Lua 5.1 to 5.4. See docs/how-to/submit-lua.md.

local VERSION = 1 -- of gpuwaste_core.so; the two come from one release
local SUCCESS = 0
local POLICY = 2050 -- ESLURM_ACCOUNTING_POLICY, the same number in Slurm 22.05 to 26.05
local FIRST_CODE, LAST_CODE = 2000, 2999 -- slurmctld's own errors; others mean something else to its callers
local MAX_SAID = 8 -- different errors that one load of the script logs

local _G, error, pcall, require, type, tostring = _G, error, pcall, require, type, tostring

local M = {_VERSION = "gpuwaste " .. VERSION}

-- How a member is read. A number's kind is the first value that is none: Slurm's NO_VAL of that width, then INFINITE.
local U16 = 65534
local U32 = 4294967294
local LIMIT = "limit" -- minutes, or infinite
local TIME = "time" -- 0 is unset
local TEXT = "text"
local INFINITE = 4294967295

-- What the advisor is told: its name for it, the name in job_desc where that differs, and how it is read. Each is read
-- on its own, so that one which this release of Slurm lacks costs nothing but itself.
local MEMBERS = {
  {"user_id", U32},
  {"name", TEXT},
  {"account", TEXT},
  {"partition", TEXT},
  {"qos", TEXT},
  {"time_limit", LIMIT},
  {"time_min", U32},
  {"min_nodes", U32},
  {"max_nodes", U32},
  {"min_cpus", U32},
  {"max_cpus", U32},
  {"num_tasks", U32},
  {"cpus_per_task", U16},
  {"ntasks_per_node", U16},
  {"pn_min_cpus", U16},
  {"mem_per_node_mb", U32, "min_mem_per_node"},
  {"mem_per_cpu_mb", U32, "min_mem_per_cpu"},
  {"tres_per_job", TEXT},
  {"tres_per_node", TEXT},
  {"tres_per_socket", TEXT},
  {"tres_per_task", TEXT},
  {"cpus_per_tres", TEXT},
  {"mem_per_tres", TEXT},
  {"sockets_per_node", U16},
  {"features", TEXT},
  {"comment", TEXT},
  {"admin_comment", TEXT},
  {"reservation", TEXT},
  {"dependency", TEXT},
  {"array_inx", TEXT},
  {"het_job_offset", U32},
  {"shared", U16},
  {"begin_time", TIME},
  {"script", TEXT}, -- the last one: it takes the room that the others leave
}

local said, said_count = {}, 0

-- Log an error once for each load of the script.
local function complain(text)
  local ok, line = pcall(tostring, text)
  text = ok and line or "unknown error"
  if said[text] or said_count >= MAX_SAID then
    return
  end
  said[text], said_count = true, said_count + 1
  pcall(function()
    _G.slurm.log_error("%s", "gpuwaste.lua: " .. text)
  end)
end

local function index(object, name)
  return object[name]
end

-- Read one member of a job, nil where that fails.
local function read(object, name)
  local ok, value = pcall(index, object, name)
  if ok then
    return value
  end
  return nil
end

-- What is sent for a value: nil for unset.
local function meaning(value, kind)
  if kind == TEXT then
    return type(value) == "string" and value or nil
  end
  if type(value) ~= "number" or value ~= value or value < 0 then
    return nil
  end
  if kind == TIME then
    return value > 0 and value < U32 and value or nil
  end
  if kind == LIMIT then
    if value == INFINITE then
      return "infinite"
    end
    kind = U32
  end
  return value < kind and value or nil
end

local function collect(job_desc, job_rec)
  local list, used = {}, 0
  local function add(name, value)
    if value ~= nil then
      list[used + 1], list[used + 2], used = name, value, used + 2
    end
  end
  if job_rec ~= nil then
    add("job_id", meaning(read(job_rec, "job_id"), U32))
  else
    add("group_id", meaning(read(job_desc, "group_id"), U32)) -- not set in a modification
  end
  for i = 1, #MEMBERS do
    local member = MEMBERS[i]
    add(member[1], meaning(read(job_desc, member[3] or member[1]), member[2]))
  end
  return list
end

-- The advisor's time_min, which it gives only where a policy says so: never over the user's own, always below the limit.
local function set_time_min(job_desc, minutes)
  local own, limit = meaning(read(job_desc, "time_min"), U32), meaning(read(job_desc, "time_limit"), U32)
  if minutes > 0 and (own == nil or own == 0) and limit ~= nil and minutes < limit then
    job_desc.time_min = minutes
  end
end

-- The token goes beside what is there. One that a submission brings along, from a job that is submitted again, goes away
-- even where there is no new one. A modification's admin_comment replaces the job's, so there it is left alone unless the
-- request sets it.
local function set_token(core, op, job_desc, id)
  local old = meaning(read(job_desc, "admin_comment"), TEXT)
  local wanted = op == "submit" and (old ~= nil or id ~= "") or op == "modify" and old ~= nil and id ~= ""
  if not wanted then
    return
  end
  local new = core.comment(old, id)
  if type(new) == "string" and new ~= old then
    job_desc.admin_comment = new
  end
end

local function tried(...)
  local ok, problem = pcall(...)
  if not ok then
    complain(problem)
  end
end

local core_loaded, core = pcall(require, "gpuwaste_core")
if not core_loaded or type(core) ~= "table" then
  complain("gpuwaste_core.so cannot be loaded, jobs accepted without advice: is it in package.cpath, built for this Lua?")
  complain(core)
  core = nil
elseif core.version ~= VERSION then
  complain("gpuwaste_core.so is of another release, jobs accepted without advice: install both files from one release of gpuwaste")
  core = nil
end

local function decide(op, job_desc, job_rec, uid)
  local action, id, code, minutes, message = core.ask(op, uid, collect(job_desc, job_rec))
  if action == nil then
    return SUCCESS
  end
  if type(id) ~= "string" or type(code) ~= "number" or type(minutes) ~= "number" or type(message) ~= "string" then
    error("gpuwaste_core.so returned values of unexpected types: install both files from one release of gpuwaste", 0)
  end
  tried(set_token, core, op, job_desc, id)
  if op == "submit" then
    tried(set_time_min, job_desc, minutes)
  end
  if message ~= "" then
    _G.slurm.log_user("%s", message) -- where that fails the job passes: nobody is rejected without being told why
  end
  if action ~= "reject" then
    return SUCCESS
  end
  if code >= FIRST_CODE and code <= LAST_CODE then
    return code
  end
  return POLICY
end

local function guarded(op, job_desc, job_rec, uid)
  if core == nil then
    return SUCCESS
  end
  local ok, result = pcall(decide, op, job_desc, job_rec, uid)
  if ok and type(result) == "number" then
    return result
  end
  complain(result)
  return SUCCESS
end

function M.submit(job_desc, _, submit_uid)
  return guarded("submit", job_desc, nil, submit_uid)
end

function M.modify(job_desc, job_rec, _, submit_uid)
  return guarded("modify", job_desc, job_rec, submit_uid)
end

return M
