/*
 * Writes a request: the head, members of "job", the end. Each member is written whole or not at all, and every frame
 * has an end: GW_MAX_REQUEST bounds the JSON, and the room for the closing braces is never given away.
 */
#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "internal.h"

#define TAIL 2                               /* the braces that close "job" and the request */
#define HASHED_BYTES (UINT64_C(8) << 20)     /* a longer script is not hashed: slurmctld waits meanwhile */
#define SHORTEST_SCRIPT 256                  /* a head shorter than this says nothing */

static size_t room(const gw_frame *frame)
{
	return sizeof(frame->text) - TAIL - frame->used;
}

static void append(gw_frame *frame, const char *text, size_t length)
{
	memcpy(frame->text + frame->used, text, length);
	frame->used += length;
}

/* Write the comma, the name and the colon; false where they and `value` bytes do not fit. */
static bool open_member(gw_frame *frame, const char *name, size_t value)
{
	size_t length = strlen(name);

	if (length + value + 4 > room(frame))
		return false;
	if (!frame->first)
		append(frame, ",", 1);
	frame->first = false;
	append(frame, "\"", 1);
	append(frame, name, length);
	append(frame, "\":", 2);
	return true;
}

/* What a byte becomes more of, escaped: \u00XX has six bytes, \n two. A table, since scripts are long. */
static const uint8_t extra[256] = {
	[0 ... 0x1f] = 5, ['\t'] = 1, ['\n'] = 1, ['\r'] = 1, ['"'] = 1, ['\\'] = 1,
};

static size_t escaped_size(const char *text, size_t length)
{
	size_t size = length;

	for (size_t i = 0; i < length; i++)
		size += extra[(unsigned char)text[i]];
	return size;
}

static void append_escape(gw_frame *frame, unsigned char c)
{
	static const char hex[] = "0123456789abcdef";
	char six[] = {'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]};
	char two[] = {'\\', (char)c};

	if (extra[c] == sizeof(six) - 1) {
		append(frame, six, sizeof(six));
		return;
	}
	if (c == '\n')
		two[1] = 'n';
	else if (c == '\t')
		two[1] = 't';
	else if (c == '\r')
		two[1] = 'r';
	append(frame, two, sizeof(two));
}

static void append_escaped(gw_frame *frame, const char *text, size_t length)
{
	size_t from = 0;

	append(frame, "\"", 1);
	for (size_t at = 0; at < length; at++) {
		if (!extra[(unsigned char)text[at]])
			continue;
		append(frame, text + from, at - from);
		append_escape(frame, (unsigned char)text[at]);
		from = at + 1;
	}
	append(frame, text + from, length - from);
	append(frame, "\"", 1);
}

/* Add a text whole, in the shorter of its two forms; false where it does not fit. */
static bool put_whole(gw_frame *frame, const char *name, const char *text, size_t length)
{
	static const char open[] = "{\"b64\":\"", shut[] = "\"}";
	size_t encoded = 4 * ((length + 2) / 3) + sizeof(open) - 1 + sizeof(shut) - 1;
	size_t escaped = escaped_size(text, length) + 2;

	if (escaped <= encoded && gw_utf8_valid(text, length)) {
		if (!open_member(frame, name, escaped))
			return false;
		append_escaped(frame, text, length);
		return true;
	}
	if (!open_member(frame, name, encoded))
		return false;
	append(frame, open, sizeof(open) - 1);
	frame->used += gw_base64(text, length, frame->text + frame->used);
	append(frame, shut, sizeof(shut) - 1);
	return true;
}

void gw_put_bytes(gw_frame *frame, const char *name, const char *text, size_t length)
{
	if (text)
		put_whole(frame, name, text, gw_utf8_cut(text, length, GW_MAX_TEXT));
}

void gw_put_text(gw_frame *frame, const char *name, const char *text)
{
	if (text)
		gw_put_bytes(frame, name, text, strnlen(text, GW_MAX_TEXT + 1));
}

static void put_literal(gw_frame *frame, const char *name, const char *literal)
{
	if (open_member(frame, name, strlen(literal)))
		append(frame, literal, strlen(literal));
}

void gw_put_number(gw_frame *frame, const char *name, uint64_t value)
{
	char digits[24];

	snprintf(digits, sizeof(digits), "%" PRIu64, value);
	put_literal(frame, name, digits);
}

void gw_put_word(gw_frame *frame, const char *name, const char *word)
{
	gw_put_text(frame, name, word);
}

void gw_put_true(gw_frame *frame, const char *name)
{
	put_literal(frame, name, "true");
}

void gw_put_script_bytes(gw_frame *frame, const char *script, size_t length)
{
	size_t head;
	char hash[17];

	if (!script)
		return;
	gw_put_number(frame, "script_bytes", length);
	if (length <= HASHED_BYTES) {
		snprintf(hash, sizeof(hash), "%016" PRIx64, gw_hash(script, length));
		gw_put_text(frame, "script_hash", hash);
	}
	head = gw_utf8_cut(script, length, frame->script_bytes);
	while (head && !put_whole(frame, "script", script, head)) {
		frame->cut = true;
		head = head < SHORTEST_SCRIPT ? 0 : gw_utf8_cut(script, length, head / 8 * 7);
	}
}

void gw_put_script(gw_frame *frame, const char *script)
{
	if (script)
		gw_put_script_bytes(frame, script, strlen(script));
}

static void put_counters(gw_frame *frame, const gw_totals *totals)
{
	gw_put_number(frame, "asked", totals->asked);
	gw_put_number(frame, "answered", totals->answered);
	gw_put_number(frame, "missed", totals->missed);
	gw_put_number(frame, "refused", totals->refused);
	gw_put_number(frame, "skipped", totals->skipped);
	gw_put_number(frame, "opened", totals->opened);
	gw_put_number(frame, "killed", totals->killed);
	gw_put_number(frame, "stale", totals->stale);
	gw_put_number(frame, "oversize", totals->oversize);
}

static void open_object(gw_frame *frame, const char *name)
{
	if (open_member(frame, name, 1))
		append(frame, "{", 1);
	frame->first = true;
}

void gw_frame_begin(gw_frame *frame, const gw_head *head, size_t script_bytes)
{
	frame->used = GW_HEADER;
	frame->script_bytes = script_bytes;
	frame->first = true;
	frame->cut = false;
	append(frame, "{", 1);
	gw_put_text(frame, "op", head->op);
	gw_put_text(frame, "via", head->via);
	gw_put_text(frame, "slurm", head->slurm);
	gw_put_number(frame, "deadline_us", (uint64_t)head->deadline_us);
	gw_put_number(frame, "uid", head->uid);
	open_object(frame, "counters");
	put_counters(frame, &head->totals);
	append(frame, "}", 1);
	open_object(frame, "job");
}

void gw_frame_end(gw_frame *frame)
{
	uint32_t length;
	uint16_t version = htons(GW_VERSION);

	append(frame, "}}", TAIL);
	length = htonl((uint32_t)(frame->used - GW_HEADER));
	memcpy(frame->text, &length, sizeof(length));
	memcpy(frame->text + sizeof(length), &version, sizeof(version));
}
