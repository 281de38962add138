/* The client: settings that follow the file, the kill switch, the breaker, the totals, and what is said in the log. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "internal.h"

#define DEFAULT_PATH "/etc/gpuwaste/gpuwaste.toml"
#define LOOK_EVERY_MS 1000      /* how often the file is looked at, at most */
#define USER_EVERY_MS 60000     /* how often a user that does not exist is asked for again */
#define USER_WAIT_MS 1000       /* how long opening waits for the name service; nothing else does */
#define NAMED_EVERY_MS 60000    /* how often the log names a refused reply, or an opened breaker, at most */

typedef enum {
	ASKED, ANSWERED, MISSED, REFUSED, SKIPPED, OPENED, KILLED, STALE, OVERSIZE, TOTALS
} total;

struct gw_client {
	char path[GW_PATH_BYTES];
	char via[16];
	char slurm[32];
	gw_log log;
	pthread_mutex_t lock;    /* of `settings`: held for a copy, never for a call */
	gw_settings settings;
	atomic_flag reading;     /* one thread at a time looks after the file */
	gw_file file;            /* as last read; of the thread that is reading */
	gw_user *user;
	uint64_t user_ms;        /* when the user was asked for; of the thread that is reading */
	atomic_uint_least64_t look_ms; /* when the file is looked at next */
	atomic_uint_least64_t name_ms; /* when a refused reply is named next */
	atomic_uint_least64_t open_ms; /* when an opened breaker is named next */
	atomic_bool open_named;        /* the last opening was named, so its end is too */
	gw_breaker breaker;
	atomic_uint_least64_t totals[TOTALS];
};

static uint64_t now_ms(void)
{
	return gw_now_ns() / 1000000;
}

static void count(gw_client *client, total which)
{
	atomic_fetch_add_explicit(&client->totals[which], 1, memory_order_relaxed);
}

static uint64_t total_of(const gw_client *client, total which)
{
	return atomic_load_explicit(&client->totals[which], memory_order_relaxed);
}

void gw_read_totals(const gw_client *client, gw_totals *totals)
{
	totals->asked = total_of(client, ASKED);
	totals->answered = total_of(client, ANSWERED);
	totals->missed = total_of(client, MISSED);
	totals->refused = total_of(client, REFUSED);
	totals->skipped = total_of(client, SKIPPED);
	totals->opened = total_of(client, OPENED);
	totals->killed = total_of(client, KILLED);
	totals->stale = total_of(client, STALE);
	totals->oversize = total_of(client, OVERSIZE);
}

/* Have advisor_user looked up, without waiting. */
static void want_user(gw_client *client, const char *name, uint64_t now)
{
	client->user_ms = now;
	gw_user_want(client->user, name);
}

/* Read the file anew; nothing is locked but the copy at the end. */
static void reload(gw_client *client, const gw_file *file, uint64_t now)
{
	gw_settings fresh;

	gw_config_read(client->path, &fresh, client->log);
	client->file = *file;
	want_user(client, fresh.advisor_user, now);
	pthread_mutex_lock(&client->lock);
	client->settings = fresh;
	pthread_mutex_unlock(&client->lock);
}

/* Follow the file: one thread looks, at most once a second, while the others go on with what is known. */
static void follow(gw_client *client, uint64_t now)
{
	gw_file file;
	uid_t uid;

	if (now < atomic_load(&client->look_ms) || atomic_flag_test_and_set(&client->reading))
		return;
	atomic_store(&client->look_ms, now + LOOK_EVERY_MS);
	file = gw_config_look(client->path);
	if (!gw_file_same(&file, &client->file))
		reload(client, &file, now);
	else if (now - client->user_ms >= USER_EVERY_MS &&
		 !gw_user_uid(client->user, client->settings.advisor_user, &uid))
		want_user(client, client->settings.advisor_user, now);
	atomic_flag_clear(&client->reading);
}

static void copy_settings(gw_client *client, gw_settings *settings)
{
	pthread_mutex_lock(&client->lock);
	*settings = client->settings;
	pthread_mutex_unlock(&client->lock);
	settings->advisor_known = gw_user_uid(client->user, settings->advisor_user, &settings->advisor_uid);
}

static const char *path_of(const char *path)
{
	const char *named = path ? path : getenv("GPUWASTE_CONFIG");

	return named && *named ? named : DEFAULT_PATH;
}

gw_client *gw_client_open(const char *path, const char *via, const char *slurm, gw_log log)
{
	gw_client *client = calloc(1, sizeof(*client));
	gw_file file;

	if (!client)
		return NULL;
	client->user = gw_user_open(log);
	if (!client->user) {
		free(client);
		return NULL;
	}
	snprintf(client->path, sizeof(client->path), "%s", path_of(path));
	snprintf(client->via, sizeof(client->via), "%s", via);
	snprintf(client->slurm, sizeof(client->slurm), "%s", slurm);
	client->log = log;
	pthread_mutex_init(&client->lock, NULL);
	atomic_flag_clear(&client->reading);
	gw_breaker_start(&client->breaker);
	for (int i = 0; i < TOTALS; i++)
		atomic_init(&client->totals[i], 0);
	atomic_init(&client->look_ms, 0);
	atomic_init(&client->name_ms, 0);
	atomic_init(&client->open_ms, 0);
	atomic_init(&client->open_named, false);
	/* Looked at before it is read: a change in between is seen at the next look. */
	file = gw_config_look(client->path);
	reload(client, &file, now_ms());
	gw_user_wait(client->user, USER_WAIT_MS);
	return client;
}

void gw_client_close(gw_client *client)
{
	if (!client)
		return;
	gw_user_close(client->user);
	pthread_mutex_destroy(&client->lock);
	free(client);
}

gw_start gw_begin(gw_client *client, gw_frame *frame, const char *op, uint32_t uid)
{
	gw_settings settings;
	gw_head head = {.op = op, .via = client->via, .slurm = client->slurm, .uid = uid};
	uint64_t now = now_ms();

	follow(client, now);
	copy_settings(client, &settings);
	if (!access(settings.kill_switch, F_OK)) {
		count(client, KILLED);
		return GW_KILLED;
	}
	frame->probe = gw_breaker_admit(&client->breaker, now, &settings);
	if (frame->probe == GW_REFUSED) {
		count(client, SKIPPED);
		return GW_SKIPPED;
	}
	count(client, ASKED);
	head.deadline_us = settings.deadline_us;
	gw_read_totals(client, &head.totals);
	gw_frame_begin(frame, &head, (size_t)settings.script_bytes);
	return GW_GO;
}

/* True once a period, for whoever comes first. */
static bool is_due(atomic_uint_least64_t *next_ms, uint64_t now)
{
	uint_least64_t due = atomic_load(next_ms);

	return now >= due && atomic_compare_exchange_strong(next_ms, &due, now + NAMED_EVERY_MS);
}

static void miss(gw_client *client, const gw_frame *frame, const gw_settings *settings, const char *why)
{
	uint64_t now = now_ms();

	if (!gw_breaker_missed(&client->breaker, frame->probe, now, settings))
		return;
	count(client, OPENED);
	/* An advisor that answers some and misses others opens it again and again: the totals tell how often. */
	if (!is_due(&client->open_ms, now))
		return;
	atomic_store(&client->open_named, true);
	gw_say(client->log, "gpuwaste: advisor at %s: %s; jobs accepted without advice, retry in %lld ms", settings->socket,
	    why, (long long)settings->breaker_first_ms);
}

/* A refused reply is a fault that somebody must look at, so the log names it, but not once for each job. */
static void name_refused(gw_client *client, const gw_settings *settings, const char *why)
{
	if (is_due(&client->name_ms, now_ms()))
		gw_say(client->log, "gpuwaste: advisor at %s: rejected: %s; job accepted without advice", settings->socket, why);
}

static bool is_stale(const gw_reply *reply, const gw_settings *settings)
{
	return (int64_t)time(NULL) - reply->as_of > settings->stale_s;
}

/* What is said on an old history is not said; the id stays, so that the verdict is joined with its outcome. */
static void take_back(gw_reply *reply)
{
	reply->action = GW_PASS;
	reply->code = 0;
	reply->time_min = 0;
	reply->lines = 0;
}

static void answered(gw_client *client, gw_reply *reply, const gw_settings *settings)
{
	count(client, ANSWERED);
	if (gw_breaker_answered(&client->breaker) && atomic_exchange(&client->open_named, false))
		gw_say(client->log, "gpuwaste: advisor at %s answers again", settings->socket);
	if (!is_stale(reply, settings))
		return;
	count(client, STALE);
	take_back(reply);
}

bool gw_ask(gw_client *client, gw_frame *frame, gw_reply *reply)
{
	gw_settings settings;
	char body[GW_MAX_REPLY];
	size_t length = 0;
	const char *why = "";
	gw_result result;

	gw_reply_clear(reply);
	gw_frame_end(frame);
	if (frame->cut)
		count(client, OVERSIZE);
	copy_settings(client, &settings);
	result = gw_exchange(&settings, frame->text, frame->used, body, &length, &why);
	if (result == GW_DONE && !gw_reply_parse(body, length, reply)) {
		result = GW_BAD;
		why = "the reply is not valid in this version";
	}
	if (result == GW_DONE) {
		answered(client, reply, &settings);
		return true;
	}
	count(client, result == GW_MISS ? MISSED : REFUSED);
	if (result == GW_BAD)
		name_refused(client, &settings, why);
	miss(client, frame, &settings, why);
	return false;
}

void gw_drop(gw_client *client, gw_frame *frame)
{
	/* Nothing is known of the advisor: a probe that was given up leaves the breaker open for its period. */
	(void)client;
	frame->used = 0;
}
