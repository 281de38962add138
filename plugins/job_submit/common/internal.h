/* What the client's files share with each other and with the tests; a plugin includes gw_client.h alone. */
#ifndef GW_INTERNAL_H
#define GW_INTERNAL_H

#include <stdatomic.h>
#include <sys/types.h>

#include "gw_client.h"

#define GW_PATH_BYTES 1024
#define GW_SOCKET_BYTES 108 /* sun_path */
#define GW_USER_BYTES 64
#define GW_LOG_BYTES 512

/* One line of the log, cut at GW_LOG_BYTES; nothing where there is no log. */
__attribute__((format(printf, 2, 3))) void gw_say(gw_log log, const char *format, ...);

/* [plugin] and [advisor] socket of gpuwaste.toml and its drop-ins; PluginConfig in core/advice_config.py says what each key is. */
typedef struct gw_settings {
	int64_t deadline_us;
	int64_t breaker_misses;
	int64_t breaker_first_ms;
	int64_t breaker_max_ms;
	int64_t stale_s;
	int64_t script_bytes;
	char kill_switch[GW_PATH_BYTES];
	char socket[GW_SOCKET_BYTES];
	char advisor_user[GW_USER_BYTES];
	uid_t advisor_uid;
	bool advisor_known; /* the user exists; else only root may answer */
} gw_settings;

/* Which files were read: another one, or a changed one, differs in this. */
typedef struct gw_file {
	bool there;
	dev_t device;
	ino_t inode;
	off_t size;
	int64_t changed_ns;
	uint64_t drop_ins;
} gw_file;

/* Who advisor_user is. One thread of its own asks the name service, which no caller of these waits for. */
typedef struct gw_user gw_user;

gw_user *gw_user_open(gw_log log); /* NULL: memory is out */
void gw_user_close(gw_user *user); /* NULL is allowed */
/* Have this name looked up, anew if it is the one already; returns at once. */
void gw_user_want(gw_user *user, const char *name);
/* Wait for the lookup that was begun, at most so long; says in the log where it goes on. */
void gw_user_wait(gw_user *user, int64_t wait_ms);
/* True where the name is known, with its uid; of a lookup that goes on the answer before it holds. */
bool gw_user_uid(gw_user *user, const char *name, uid_t *uid);

/* Fill the settings with the defaults, then with what the files say; who advisor_user is stays open. */
void gw_config_read(const char *path, gw_settings *settings, gw_log log);
/* Say what stands at the path, and in its folder of drop-ins, now. */
gw_file gw_config_look(const char *path);
bool gw_file_same(const gw_file *one, const gw_file *other);

/* Opens after some misses in a row; then lets one caller through in each period, which doubles while they miss. */
typedef struct gw_breaker {
	atomic_uint misses;        /* in a row */
	atomic_uint_least64_t until_ms; /* 0: closed; else the time of the next probe, CLOCK_MONOTONIC */
	atomic_uint_least64_t wait_ms;  /* the period now */
} gw_breaker;

#define GW_NO_PROBE 0
#define GW_REFUSED UINT64_MAX

void gw_breaker_start(gw_breaker *breaker);
/* GW_REFUSED: do not ask; GW_NO_PROBE: closed; else the probe's token for gw_breaker_missed. */
uint64_t gw_breaker_admit(gw_breaker *breaker, uint64_t now_ms, const gw_settings *settings);
/* True where this answer closed it. */
bool gw_breaker_answered(gw_breaker *breaker);
/* True where this miss opened it. */
bool gw_breaker_missed(gw_breaker *breaker, uint64_t probe, uint64_t now_ms, const gw_settings *settings);

typedef enum { GW_DONE, GW_MISS, GW_BAD } gw_result;

/*
 * Send the frame to the advisor's socket and read one reply frame's JSON into `body`. GW_MISS: nobody there, or not in
 * time; GW_BAD: a peer of another user, or a frame that is none. `why` is a literal for the log.
 */
gw_result gw_exchange(const gw_settings *settings, const char *frame, size_t length, char body[GW_MAX_REPLY],
		      size_t *body_length, const char **why);

/* Read a reply's JSON. False, and a reply that says pass, for anything that encode_reply does not write. */
bool gw_reply_parse(const char *json, size_t length, gw_reply *reply);
void gw_reply_clear(gw_reply *reply);

/* The start of a frame up to the open "job", and its end with the header. */
typedef struct gw_head {
	const char *op;
	const char *via;
	const char *slurm;
	int64_t deadline_us;
	uint32_t uid;
	gw_totals totals;
} gw_head;

void gw_frame_begin(gw_frame *frame, const gw_head *head, size_t script_bytes);
void gw_frame_end(gw_frame *frame);

bool gw_utf8_valid(const char *text, size_t length);
/* The greatest length up to `limit` that does not split a character of UTF-8. */
size_t gw_utf8_cut(const char *text, size_t length, size_t limit);
/* Write base64 without an end; returns its length, 4 for each 3 bytes begun. */
size_t gw_base64(const char *bytes, size_t length, char *out);
uint64_t gw_hash(const char *bytes, size_t length); /* FNV-1a, 64 bits */

uint64_t gw_now_ns(void); /* CLOCK_MONOTONIC */

#endif
