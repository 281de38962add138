/*
 * The uid of advisor_user, looked up by a thread of its own: a directory service may take minutes, and slurmctld holds
 * its locks while a submission asks. The plugins are linked with nodelete, so that a thread that hangs keeps its code.
 */
#include <errno.h>
#include <pthread.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "internal.h"

#define PASSWD_BYTES 16384
#define STACK_BYTES (1 << 20) /* modules of the name service are not ours to measure */

struct gw_user {
	pthread_mutex_t lock;   /* held for copies, never for a lookup */
	pthread_cond_t changed;
	gw_log log;
	char name[GW_USER_BYTES];
	uid_t uid;
	bool known;             /* uid is that of name */
	bool running;           /* a thread looks a name up */
	bool again;             /* it was asked for anew meanwhile */
	unsigned holders;       /* the client, and the thread */
};

gw_user *gw_user_open(gw_log log)
{
	gw_user *user = calloc(1, sizeof(*user));
	pthread_condattr_t monotonic;

	if (!user)
		return NULL;
	pthread_mutex_init(&user->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&user->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
	user->log = log;
	user->holders = 1;
	return user;
}

/* Let go of it with the lock held; the last holder frees it. */
static void let_go(gw_user *user)
{
	bool last = !--user->holders;

	pthread_mutex_unlock(&user->lock);
	if (!last)
		return;
	pthread_cond_destroy(&user->changed);
	pthread_mutex_destroy(&user->lock);
	free(user);
}

void gw_user_close(gw_user *user)
{
	if (!user)
		return;
	pthread_mutex_lock(&user->lock);
	user->log = NULL;
	let_go(user);
}

static bool look_up(const char *name, uid_t *uid)
{
	char buffer[PASSWD_BYTES];
	struct passwd entry, *found = NULL;

	if (getpwnam_r(name, &entry, buffer, sizeof(buffer), &found) || !found)
		return false;
	*uid = found->pw_uid;
	return true;
}

static void *look_up_names(void *argument)
{
	gw_user *user = argument;
	char name[GW_USER_BYTES];
	gw_log log;
	uid_t uid = 0;
	bool found;

	pthread_mutex_lock(&user->lock);
	do {
		user->again = false;
		memcpy(name, user->name, sizeof(name));
		pthread_mutex_unlock(&user->lock);
		found = look_up(name, &uid);
		pthread_mutex_lock(&user->lock);
		log = user->log;
		if (strcmp(name, user->name))
			continue;
		user->known = found;
		user->uid = uid;
		if (!found)
			gw_say(log, "gpuwaste: no user %s (advisor_user): until it exists, only an advisor that runs as root is accepted",
			    name);
	} while (user->again && user->log);
	user->running = false;
	pthread_cond_broadcast(&user->changed);
	let_go(user);
	return NULL;
}

/* Start the thread with the lock held. Signals are slurmctld's own affair: the thread takes none. */
static void start(gw_user *user)
{
	pthread_attr_t attributes;
	sigset_t all, before;
	pthread_t thread;

	sigfillset(&all);
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	user->running = !pthread_create(&thread, &attributes, look_up_names, user);
	user->holders += user->running;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
}

void gw_user_want(gw_user *user, const char *name)
{
	pthread_mutex_lock(&user->lock);
	if (strcmp(user->name, name)) {
		snprintf(user->name, sizeof(user->name), "%s", name);
		user->known = false;
	}
	if (user->running)
		user->again = true;
	else
		start(user);
	pthread_mutex_unlock(&user->lock);
}

void gw_user_wait(gw_user *user, int64_t wait_ms)
{
	struct timespec until;
	bool late = false;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += (time_t)(wait_ms / 1000);
	until.tv_nsec += (long)(wait_ms % 1000) * 1000000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_sec++;
		until.tv_nsec -= 1000000000;
	}
	pthread_mutex_lock(&user->lock);
	while (user->running && !late)
		late = pthread_cond_timedwait(&user->changed, &user->lock, &until) == ETIMEDOUT;
	if (user->running)
		gw_say(user->log, "gpuwaste: looking up user %s (advisor_user) takes long; jobs accepted without advice until then",
		    user->name);
	pthread_mutex_unlock(&user->lock);
}

bool gw_user_uid(gw_user *user, const char *name, uid_t *uid)
{
	bool known;

	pthread_mutex_lock(&user->lock);
	known = user->known && !strcmp(user->name, name);
	*uid = known ? user->uid : 0;
	pthread_mutex_unlock(&user->lock);
	return known;
}
