/*
 * gpuwaste_core: the C half of gpuwaste.lua. It hands the members that the Lua side read to the shared client of
 * plugins/job_submit/common, which asks the advisor: the same frames, breaker, kill switch and counters as the C plugin.
 *
 * One client serves the whole process. Slurm loads the script anew whenever it was edited, in a new Lua state; this
 * library stays in memory (-z nodelete), so the breaker and the counters live as long as slurmctld does.
 *
 * Builds with the headers of Lua 5.1 to 5.4; links no Lua library, slurmctld's job_submit/lua has loaded the right one.
 */
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lauxlib.h>
#include <lua.h>

#include "../common/gw_client.h"

#define EXPORT __attribute__((visibility("default")))
#define CORE_VERSION 1 /* the same as VERSION in gpuwaste.lua */
#define MAX_NUMBER 9007199254740992.0 /* 2^53: what a double holds exactly */

extern void slurm_info(const char *format, ...) __attribute__((weak)); /* NULL outside slurmctld */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static gw_client *client;
static gw_frame frame; /* guarded by lock */

static const char *const action_names[] = {
	[GW_PASS] = "pass", [GW_ANNOTATE] = "annotate", [GW_WARN] = "warn", [GW_REJECT] = "reject"};

static void say(const char *line)
{
	if (slurm_info)
		slurm_info("%s", line);
	else
		fprintf(stderr, "%s\n", line);
}

/* Take Slurm's release from job_submit_lua.so, whose plugin_version is that of the build; stop at it. */
static int find_release(struct dl_phdr_info *info, size_t size, void *release)
{
	const char *name = strrchr(info->dlpi_name, '/');
	(void) size;
	if (!name || strcmp(name, "/job_submit_lua.so"))
		return 0;
	void *plugin = dlopen(info->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
	if (!plugin)
		return 1;
	const uint32_t *version = dlsym(plugin, "plugin_version");
	if (version)
		snprintf(release, 16, "%02u.%02u.%u", *version >> 16 & 255, *version >> 8 & 255, *version & 255);
	dlclose(plugin);
	return 1;
}

static void open_client(void)
{
	char release[16] = "";
	dl_iterate_phdr(find_release, release);
	pthread_mutex_lock(&lock);
	if (!client)
		client = gw_client_open(NULL, "lua", release, say);
	pthread_mutex_unlock(&lock);
}

/* Add one member: a name of ours, and a value whose type says how it travels. No call here can raise a Lua error. */
static void put(lua_State *L, const char *name, int value)
{
	size_t length;
	switch (lua_type(L, value)) {
	case LUA_TNUMBER: {
		lua_Number number = lua_tonumber(L, value);
		if (number >= 0 && number <= MAX_NUMBER)
			gw_put_number(&frame, name, (uint64_t) number);
		break;
	}
	case LUA_TSTRING: {
		const char *text = lua_tolstring(L, value, &length);
		if (!strcmp(name, "script"))
			gw_put_script_bytes(&frame, text, length);
		else
			gw_put_bytes(&frame, name, text, length);
		break;
	}
	case LUA_TBOOLEAN:
		if (lua_toboolean(L, value))
			gw_put_true(&frame, name);
		break;
	default:
		break;
	}
}

/* Put the members of the list at `index`: name, value, name, value, ... up to the first nil. */
static void put_all(lua_State *L, int index)
{
	for (int i = 1;; i += 2) {
		lua_rawgeti(L, index, i);
		lua_rawgeti(L, index, i + 1);
		int more = lua_type(L, -2) == LUA_TSTRING;
		if (more)
			put(L, lua_tolstring(L, -2, NULL), lua_gettop(L));
		lua_pop(L, 2);
		if (!more)
			return;
	}
}

/*
 * ask(op, uid, {name, value, ...}): action, id, code, minutes of time_min, message; nothing where the kill switch is
 * there. Where no reply was taken the action is "pass" and the id "". A "script" must be the last member.
 */
static int ask(lua_State *L)
{
	gw_reply reply = {.action = GW_PASS};
	char message[GW_MESSAGE_BYTES];
	gw_start start;
	const char *op = luaL_checkstring(L, 1);
	lua_Number uid = luaL_checknumber(L, 2);

	luaL_checktype(L, 3, LUA_TTABLE);
	luaL_checkstack(L, 8, "gpuwaste");
	if (!client || !(uid >= 0 && uid <= UINT32_MAX))
		return 0;
	pthread_mutex_lock(&lock);
	start = gw_begin(client, &frame, op, (uint32_t) uid);
	if (start == GW_GO) {
		put_all(L, 3);
		gw_ask(client, &frame, &reply);
	}
	pthread_mutex_unlock(&lock);
	if (start == GW_KILLED)
		return 0;
	size_t length = gw_message(&reply, message);
	lua_pushstring(L, action_names[reply.action]);
	lua_pushstring(L, reply.id);
	lua_pushnumber(L, reply.code);
	lua_pushnumber(L, reply.time_min);
	lua_pushlstring(L, message, length);
	return 5;
}

/* comment(old, id): the admin_comment to write; nothing where memory is out. */
static int comment(lua_State *L)
{
	const char *old = luaL_optstring(L, 1, NULL);
	const char *id = luaL_checkstring(L, 2);
	size_t size = gw_comment(old, id, NULL, 0);
	char *text = size ? malloc(size) : NULL;
	if (!text)
		return 0;
	gw_comment(old, id, text, size);
	lua_pushstring(L, text);
	free(text);
	return 1;
}

static void set_total(lua_State *L, const char *name, uint64_t value)
{
	lua_pushnumber(L, (lua_Number) value);
	lua_setfield(L, -2, name);
}

/* totals(): the counters since slurmctld's start, by name. */
static int totals(lua_State *L)
{
	gw_totals now = {0};
	if (client)
		gw_read_totals(client, &now);
	lua_createtable(L, 0, 9);
	set_total(L, "asked", now.asked);
	set_total(L, "answered", now.answered);
	set_total(L, "missed", now.missed);
	set_total(L, "refused", now.refused);
	set_total(L, "skipped", now.skipped);
	set_total(L, "opened", now.opened);
	set_total(L, "killed", now.killed);
	set_total(L, "stale", now.stale);
	set_total(L, "oversize", now.oversize);
	return 1;
}

static void set_function(lua_State *L, const char *name, lua_CFunction function)
{
	lua_pushcclosure(L, function, 0);
	lua_setfield(L, -2, name);
}

EXPORT int luaopen_gpuwaste_core(lua_State *L)
{
	open_client();
	lua_createtable(L, 0, 4);
	lua_pushnumber(L, CORE_VERSION);
	lua_setfield(L, -2, "version");
	set_function(L, "ask", ask);
	set_function(L, "comment", comment);
	set_function(L, "totals", totals);
	return 1;
}
