/*
 * Reads a reply: one JSON object with the members that encode_reply (advice/submit_frames.py) writes, each once, and nothing
 * else. Whoever writes to the socket decides what a user's terminal shows, so everything is checked.
 */
#include <string.h>

#include "internal.h"

typedef struct cursor {
	const char *at, *end;
} cursor;

enum { SEEN_V = 1, SEEN_ID = 2, SEEN_ACTION = 4, SEEN_CODE = 8, SEEN_MSG = 16, SEEN_AS_OF = 32, SEEN_TIME_MIN = 64 };

#define LONGEST_WORD 32 /* of names, actions and ids */
#define MOST_TIME_MIN 5256000 /* minutes: ten years */

static void skip_blanks(cursor *in)
{
	while (in->at < in->end && (*in->at == ' ' || *in->at == '\t' || *in->at == '\n' || *in->at == '\r'))
		in->at++;
}

/* Take this character, with blanks before it. */
static bool take(cursor *in, char c)
{
	skip_blanks(in);
	if (in->at >= in->end || *in->at != c)
		return false;
	in->at++;
	return true;
}

static bool next_is(cursor *in, char c)
{
	skip_blanks(in);
	return in->at < in->end && *in->at == c;
}

static bool take_hex(cursor *in, uint32_t *value)
{
	*value = 0;
	if (in->end - in->at < 4)
		return false;
	for (int i = 0; i < 4; i++) {
		char c = *in->at++;

		*value <<= 4;
		if (c >= '0' && c <= '9')
			*value |= (uint32_t)(c - '0');
		else if (c >= 'a' && c <= 'f')
			*value |= (uint32_t)(c - 'a' + 10);
		else if (c >= 'A' && c <= 'F')
			*value |= (uint32_t)(c - 'A' + 10);
		else
			return false;
	}
	return true;
}

/* Take what follows "\u": a character, or the two halves of one. */
static bool take_unicode(cursor *in, uint32_t *value)
{
	uint32_t low;

	if (!take_hex(in, value) || (*value >= 0xdc00 && *value <= 0xdfff))
		return false;
	if (*value < 0xd800 || *value > 0xdbff)
		return true;
	if (in->end - in->at < 2 || in->at[0] != '\\' || in->at[1] != 'u')
		return false;
	in->at += 2;
	if (!take_hex(in, &low) || low < 0xdc00 || low > 0xdfff)
		return false;
	*value = 0x10000 + ((*value - 0xd800) << 10) + (low - 0xdc00);
	return true;
}

static bool take_escape(cursor *in, uint32_t *value)
{
	static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
	const char *found;

	if (in->at >= in->end)
		return false;
	if (*in->at == 'u') {
		in->at++;
		return take_unicode(in, value);
	}
	found = *in->at ? strchr(names, *in->at) : NULL;
	if (!found)
		return false;
	in->at++;
	*value = (uint32_t)values[found - names];
	return true;
}

static size_t encode(uint32_t value, char out[4])
{
	if (value < 0x80) {
		out[0] = (char)value;
		return 1;
	}
	if (value < 0x800) {
		out[0] = (char)(0xc0 | value >> 6);
		out[1] = (char)(0x80 | (value & 63));
		return 2;
	}
	if (value < 0x10000) {
		out[0] = (char)(0xe0 | value >> 12);
		out[1] = (char)(0x80 | (value >> 6 & 63));
		out[2] = (char)(0x80 | (value & 63));
		return 3;
	}
	out[0] = (char)(0xf0 | value >> 18);
	out[1] = (char)(0x80 | (value >> 12 & 63));
	out[2] = (char)(0x80 | (value >> 6 & 63));
	out[3] = (char)(0x80 | (value & 63));
	return 4;
}

/*
 * Take a string of at most size - 1 bytes, as UTF-8 with an end. Control characters become blanks, so that a line
 * stays a line and no terminal is steered: those of ASCII, and U+0080 to U+009F.
 */
static bool take_string(cursor *in, char *out, size_t size)
{
	size_t used = 0;

	if (!take(in, '"'))
		return false;
	for (; in->at < in->end && *in->at != '"';) {
		uint32_t value = (unsigned char)*in->at++;
		char bytes[4] = {(char)value};
		size_t length = 1;

		if (value < 0x20)
			return false;
		if (value == '\\') {
			if (!take_escape(in, &value))
				return false;
			length = encode(value < 0x20 || (value >= 0x7f && value < 0xa0) ? ' ' : value, bytes);
		}
		if (used + length >= size)
			return false;
		memcpy(out + used, bytes, length);
		used += length;
	}
	out[used] = 0;
	return take(in, '"') && gw_utf8_valid(out, used);
}

/* Blank what stands unescaped: DEL, and the two bytes of U+0080 to U+009F. */
static void blank_controls(char *text)
{
	unsigned char *at = (unsigned char *)text;

	for (; *at; at++) {
		if (*at == 0x7f)
			*at = ' ';
		else if (*at == 0xc2 && at[1] < 0xa0)
			at[0] = at[1] = ' ';
	}
}

static size_t characters(const char *text)
{
	size_t count = 0;

	for (; *text; text++)
		count += ((unsigned char)*text & 0xc0) != 0x80;
	return count;
}

/* Take an integer in 0..most, as JSON writes it: no sign, no leading zero, no fraction. */
static bool take_integer(cursor *in, int64_t most, int64_t *value)
{
	const char *from;

	skip_blanks(in);
	from = in->at;
	*value = 0;
	while (in->at < in->end && *in->at >= '0' && *in->at <= '9') {
		*value = *value * 10 + (*in->at++ - '0');
		if (*value > most)
			return false;
	}
	return in->at > from && (*from != '0' || in->at == from + 1);
}

static bool take_version(cursor *in)
{
	int64_t value;

	return take_integer(in, GW_VERSION, &value) && value == GW_VERSION;
}

/* An id of another form than a token's is no id: nothing goes into admin_comment. */
static bool take_id(cursor *in, char id[GW_ID + 1])
{
	char text[LONGEST_WORD + 1];

	if (!take_string(in, text, sizeof(text)))
		return false;
	if (strspn(text, "0123456789abcdefghijklmnopqrstuvwxyz") == GW_ID && !text[GW_ID])
		memcpy(id, text, GW_ID + 1);
	return true;
}

static bool take_action(cursor *in, gw_action *action)
{
	static const char *const names[] = {"pass", "annotate", "warn", "reject"};
	char text[LONGEST_WORD + 1];

	if (!take_string(in, text, sizeof(text)))
		return false;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(names[i], text)) {
			*action = (gw_action)i;
			return true;
		}
	return false;
}

static bool take_code(cursor *in, uint32_t *code)
{
	int64_t value;

	if (!take_integer(in, UINT16_MAX, &value))
		return false;
	*code = (uint32_t)value;
	return true;
}

static bool take_time_min(cursor *in, uint32_t *minutes)
{
	int64_t value;

	if (!take_integer(in, MOST_TIME_MIN, &value))
		return false;
	*minutes = (uint32_t)value;
	return true;
}

static bool take_lines(cursor *in, gw_reply *reply)
{
	if (!take(in, '['))
		return false;
	if (take(in, ']'))
		return true;
	do {
		char *line = reply->msg[reply->lines];

		if (reply->lines == GW_MAX_LINES || !take_string(in, line, GW_LINE_BYTES))
			return false;
		blank_controls(line);
		if (characters(line) > GW_LINE_CHARACTERS)
			return false;
		reply->lines++;
	} while (take(in, ','));
	return take(in, ']');
}

static unsigned member_of(const char *name)
{
	static const char *const names[] = {"v", "id", "action", "code", "msg", "as_of", "time_min"};

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(names[i], name))
			return 1u << i;
	return 0;
}

static bool take_value(cursor *in, unsigned member, gw_reply *reply)
{
	switch (member) {
	case SEEN_V:
		return take_version(in);
	case SEEN_ID:
		return take_id(in, reply->id);
	case SEEN_ACTION:
		return take_action(in, &reply->action);
	case SEEN_CODE:
		return take_code(in, &reply->code);
	case SEEN_MSG:
		return take_lines(in, reply);
	case SEEN_AS_OF:
		return take_integer(in, INT64_C(1) << 40, &reply->as_of);
	case SEEN_TIME_MIN:
		return take_time_min(in, &reply->time_min);
	default:
		return false;
	}
}

static bool take_reply(cursor *in, gw_reply *reply)
{
	unsigned seen = 0;

	if (!take(in, '{'))
		return false;
	do {
		char name[LONGEST_WORD + 1];
		unsigned member;

		if (!next_is(in, '"') || !take_string(in, name, sizeof(name)) || !take(in, ':'))
			return false;
		member = member_of(name);
		if (!member || seen & member || !take_value(in, member, reply))
			return false;
		seen |= member;
	} while (take(in, ','));
	if (!take(in, '}'))
		return false;
	skip_blanks(in);
	return in->at == in->end && (seen | SEEN_TIME_MIN | SEEN_AS_OF) == 2 * SEEN_TIME_MIN - 1;
}

void gw_reply_clear(gw_reply *reply)
{
	reply->action = GW_PASS;
	reply->code = 0;
	reply->time_min = 0;
	reply->as_of = 0;
	reply->lines = 0;
	reply->id[0] = 0;
}

bool gw_reply_parse(const char *json, size_t length, gw_reply *reply)
{
	cursor in = {json, json + length};

	gw_reply_clear(reply);
	if (take_reply(&in, reply))
		return true;
	gw_reply_clear(reply);
	return false;
}
