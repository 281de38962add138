/*
 * gw_client: how a submit plugin asks the advisor, the same for the C plugin and the Lua shim.
 *
 * One request:
 *
 *	gw_frame frame;                     // 64 KiB, on the stack of the thread
 *	gw_reply reply;
 *	if (gw_begin(client, &frame, "submit", uid) == GW_GO) {
 *		gw_put_text(&frame, "name", job->name);
 *		gw_put_number(&frame, "min_nodes", job->min_nodes);
 *		gw_put_script(&frame, job->script);         // last
 *		gw_ask(client, &frame, &reply);
 *	}
 *
 * Everything here may be called by many threads at once. No caller allocates memory between open and close, and no lock
 * is held while the advisor is asked. Whatever goes wrong, reply.action is GW_PASS. The name service is asked by a
 * thread of the client's own, which may outlive it: link with -z nodelete what is loaded and unloaded.
 */
#ifndef GW_CLIENT_H
#define GW_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GW_VERSION 1                  /* of the frames; the same as VERSION in advice/submit_frames.py */
#define GW_HEADER 6                   /* u32 length, u16 version, network byte order */
#define GW_MAX_REQUEST (64 * 1024)    /* bytes of a request's JSON */
#define GW_MAX_REPLY (2 * 1024)       /* bytes of a reply's JSON */
#define GW_MAX_TEXT 1024              /* bytes of a text, the script apart */
#define GW_MAX_LINES 3
#define GW_LINE_CHARACTERS 160
#define GW_LINE_BYTES (GW_LINE_CHARACTERS * 4 + 1)
#define GW_MESSAGE_BYTES (GW_MAX_LINES * GW_LINE_BYTES)
#define GW_ID 16                      /* characters of a verdict's id, [0-9a-z] */

typedef struct gw_client gw_client;

typedef enum { GW_PASS, GW_ANNOTATE, GW_WARN, GW_REJECT } gw_action;

typedef enum {
	GW_GO,      /* ask; gw_ask (or gw_drop) must follow */
	GW_SKIPPED, /* the breaker is open: the job is accepted without advice */
	GW_KILLED,  /* the kill switch is there: touch nothing */
} gw_start;

/* A request in the making. The members are the library's own. */
typedef struct gw_frame {
	size_t used;           /* bytes in text, header included */
	size_t script_bytes;   /* [plugin] script_bytes */
	uint64_t probe;        /* what the breaker gave on admission */
	bool first;            /* no member stands in the open object yet */
	bool cut;              /* the script did not fit */
	char text[GW_HEADER + GW_MAX_REQUEST];
} gw_frame;

/* An answer. */
typedef struct gw_reply {
	gw_action action;
	uint32_t code;         /* ESLURM number of a rejection, 0: the plugin's own choice */
	uint32_t time_min;     /* minutes, 0: leave it */
	int64_t as_of;         /* UTC second up to which the advisor knows the history */
	unsigned lines;
	char id[GW_ID + 1];    /* "" where no verdict was given */
	char msg[GW_MAX_LINES][GW_LINE_BYTES];
} gw_reply;

/* Totals since the client was opened. */
typedef struct gw_totals {
	uint64_t asked;    /* requests that went out, or tried to */
	uint64_t answered; /* replies that were taken */
	uint64_t missed;   /* no listener, or no complete reply before the deadline */
	uint64_t refused;  /* malformed replies, and peers that are not the advisor */
	uint64_t skipped;  /* not asked: breaker open */
	uint64_t opened;   /* the breaker's openings */
	uint64_t killed;   /* not asked: kill switch */
	uint64_t stale;    /* replies on too old a history, taken for pass */
	uint64_t oversize; /* requests whose script was cut below script_bytes to fit in a frame */
} gw_totals;

/* Takes one line without its end. May be called by any thread that calls gw_begin or gw_ask, and while opening. */
typedef void (*gw_log)(const char *line);

/*
 * Open a client. `path` is gpuwaste.toml (its drop-ins are in PATH.d); NULL: $GPUWASTE_CONFIG, else /etc/gpuwaste/gpuwaste.toml. A file that cannot
 * be read gives the defaults and one line in the log. `via` is "c" or "lua", `slurm` the release ("22.05.8").
 * Returns NULL only where memory is out.
 */
gw_client *gw_client_open(const char *path, const char *via, const char *slurm, gw_log log);

/* Close it; no thread may be using it. NULL is allowed. */
void gw_client_close(gw_client *client);

/* Begin a request: kill switch, breaker, head of the frame, an open "job". `op` is "submit" or "modify". */
gw_start gw_begin(gw_client *client, gw_frame *frame, const char *op, uint32_t uid);

/*
 * Add a member to "job". A NULL text is left out; a text is cut at GW_MAX_TEXT bytes, at a character's edge; what is
 * not UTF-8, or would be longer escaped than in base64, travels as {"b64": "..."}. `name` is plain ASCII.
 */
void gw_put_text(gw_frame *frame, const char *name, const char *text);
void gw_put_bytes(gw_frame *frame, const char *name, const char *text, size_t length);
void gw_put_number(gw_frame *frame, const char *name, uint64_t value);
void gw_put_word(gw_frame *frame, const char *name, const char *word); /* a literal of ours, such as "infinite" */
void gw_put_true(gw_frame *frame, const char *name);

/* Add script_bytes, script_hash and the script's head, which takes what the frame has left: call it last. */
void gw_put_script(gw_frame *frame, const char *script);
void gw_put_script_bytes(gw_frame *frame, const char *script, size_t length);

/* Close the frame, ask, fill `reply`. True where a reply was taken (a stale one has its id and GW_PASS). */
bool gw_ask(gw_client *client, gw_frame *frame, gw_reply *reply);

/* Give up a request that was begun. */
void gw_drop(gw_client *client, gw_frame *frame);

/* Join the lines by "\n"; returns the length, 0 where there is nothing to say or the action is silent. */
size_t gw_message(const gw_reply *reply, char out[GW_MESSAGE_BYTES]);

/*
 * The admin_comment to write: `old` (may be NULL) without any gw= token, then ";gw=<id>" (id "": none is added).
 * Returns the bytes needed with the end; writes nothing where `size` is less.
 */
size_t gw_comment(const char *old, const char *id, char *out, size_t size);

void gw_read_totals(const gw_client *client, gw_totals *totals);

#endif
