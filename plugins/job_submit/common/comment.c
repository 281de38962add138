/* The texts that a plugin hands to slurmctld: admin_comment with its token, and the message for the user. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "internal.h"

static const char prefix[] = "gw=";
static const char refusal[] = "gpuwaste: this site's policy refuses the job; the reason was not given";

#define TOKEN (sizeof(prefix) - 1 + GW_ID) /* bytes of "gw=<id>" */

static bool is_word(char one)
{
	return isalnum((unsigned char)one) || one == '_';
}

/*
 * Whether a token is here, up to what belongs to no word: a semicolon, a blank, a line break, the end. That is more than
 * token_of (slurm/formats/printed_run.py) finds, so that no other reader finds one that was brought along.
 */
static bool is_token(const char *at)
{
	const char *id = at + sizeof(prefix) - 1;

	if (strncmp(at, prefix, sizeof(prefix) - 1))
		return false;
	return strspn(id, "0123456789abcdefghijklmnopqrstuvwxyz") == GW_ID && !is_word(id[GW_ID]);
}

typedef struct writer {
	char *out; /* NULL: only count */
	size_t used;
} writer;

static void put(writer *to, const char *text, size_t length)
{
	if (to->out)
		memcpy(to->out + to->used, text, length);
	to->used += length;
}

static void put_without_tokens(writer *to, const char *old)
{
	const char *at = old;

	while (is_token(at))
		at += TOKEN + (at[TOKEN] == ';');
	while (*at) {
		if (*at == ';' && is_token(at + 1))
			at += 1 + TOKEN;
		else if (at > old && !is_word(at[-1]) && is_token(at))
			at += TOKEN;
		else
			put(to, at++, 1);
	}
}

static size_t write_comment(const char *old, const char *id, char *out)
{
	writer to = {out, 0};

	if (old)
		put_without_tokens(&to, old);
	if (*id) {
		put(&to, ";gw=", 4);
		put(&to, id, strlen(id));
	}
	put(&to, "", 1);
	return to.used;
}

size_t gw_comment(const char *old, const char *id, char *out, size_t size)
{
	size_t needed = write_comment(old, id, NULL);

	if (out && needed <= size)
		write_comment(old, id, out);
	return needed;
}

size_t gw_message(const gw_reply *reply, char out[GW_MESSAGE_BYTES])
{
	size_t used = 0;

	out[0] = 0;
	if (reply->action != GW_WARN && reply->action != GW_REJECT)
		return 0;
	if (!reply->lines && reply->action == GW_REJECT)
		return (size_t)snprintf(out, GW_MESSAGE_BYTES, "%s", refusal);
	for (unsigned i = 0; i < reply->lines; i++) {
		size_t length = strlen(reply->msg[i]);

		if (i)
			out[used++] = '\n';
		memcpy(out + used, reply->msg[i], length + 1);
		used += length;
	}
	return used;
}
