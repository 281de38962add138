/*
 * Fuzzes the reply parser: `fuzz-reply CASES SEED FILE...` changes the files (replies of the advisor, JSON alone) in
 * ways drawn from SEED and reads each result, under a sanitizer. A reply that is taken must keep the parser's promises.
 * Built with -DGW_LIBFUZZER it is a target for libFuzzer instead.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../common/internal.h"

#define MOST_SEEDS 64
#define MOST_BYTES (GW_MAX_REPLY + 64)

static void die(const char *why)
{
	fprintf(stderr, "fuzz-reply: %s\n", why);
	abort();
}

static void check_line(const char *line)
{
	size_t length = strnlen(line, GW_LINE_BYTES);

	if (length == GW_LINE_BYTES || !gw_utf8_valid(line, length))
		die("a line without an end, or not UTF-8");
	for (size_t i = 0; i < length; i++)
		if ((unsigned char)line[i] < 0x20 || line[i] == 0x7f ||
		    ((unsigned char)line[i] == 0xc2 && (unsigned char)line[i + 1] < 0xa0))
			die("a control character");
}

static void check_taken(const gw_reply *reply)
{
	char text[GW_MESSAGE_BYTES];

	if (reply->action > GW_REJECT || reply->lines > GW_MAX_LINES || reply->code > UINT16_MAX || reply->as_of < 0)
		die("a member out of its range");
	for (unsigned i = 0; i < reply->lines; i++)
		check_line(reply->msg[i]);
	if (*reply->id && (strnlen(reply->id, GW_ID + 1) != GW_ID ||
			   strspn(reply->id, "0123456789abcdefghijklmnopqrstuvwxyz") != GW_ID))
		die("an id that is none");
	if (gw_message(reply, text) != strlen(text))
		die("a message of another length");
}

/* Read one case from memory of exactly its size, so that a byte read behind it is found. */
static bool try(const char *bytes, size_t length)
{
	char *exact = malloc(length ? length : 1);
	gw_reply reply;
	bool taken;

	if (!exact)
		die("out of memory");
	memcpy(exact, bytes, length);
	taken = gw_reply_parse(exact, length, &reply);
	if (taken)
		check_taken(&reply);
	else if (reply.action != GW_PASS || *reply.id || reply.lines || reply.code || reply.time_min)
		die("a refused reply that says something");
	free(exact);
	return taken;
}

#ifdef GW_LIBFUZZER
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	try((const char *)data, size);
	return 0;
}
#else
static char seeds[MOST_SEEDS][MOST_BYTES];
static size_t lengths[MOST_SEEDS];
static uint64_t state;

/* xorshift64: the same cases for the same seed, on every machine. */
static size_t draw(size_t below)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (size_t)(state % below);
}

static void insert(char *bytes, size_t *length, const char *text, size_t size)
{
	size_t at = draw(*length + 1);

	if (*length + size > MOST_BYTES)
		return;
	memmove(bytes + at + size, bytes + at, *length - at);
	memcpy(bytes + at, text, size);
	*length += size;
}

static void cut_out(char *bytes, size_t *length)
{
	size_t at = draw(*length), size = 1 + draw(*length - at);

	memmove(bytes + at, bytes + at + size, *length - at - size);
	*length -= size;
}

static void change(char *bytes, size_t *length)
{
	static const char *const words[] = {"\\u0000", "\\ud800", "\\udc00", "\\ud83d\\ude00", "\\", "\"", "{", "}", "[", "]",
					    ",", ":", "null", "1e9", "-1", "99999999999999999999", "\xff", "\xc2\x85",
					    "\xed\xa0\x80", "\x1b[2J", "\"msg\":[", "\"action\":\"reject\"", "\"v\":1", " "};
	const char *word = words[draw(sizeof(words) / sizeof(words[0]))];
	char byte = (char)draw(256), piece[MOST_BYTES];
	size_t from, size;

	switch (draw(*length ? 6 : 2)) {
	case 0:
		insert(bytes, length, word, strlen(word));
		return;
	case 1:
		insert(bytes, length, &byte, 1);
		return;
	case 2:
		bytes[draw(*length)] = byte;
		return;
	case 3:
		cut_out(bytes, length);
		return;
	case 4: /* a piece of itself, elsewhere */
		from = draw(*length);
		size = 1 + draw(*length - from);
		memcpy(piece, bytes + from, size);
		insert(bytes, length, piece, size);
		return;
	default:
		*length = draw(*length + 1);
	}
}

static void read_seed(const char *path, size_t index)
{
	FILE *file = fopen(path, "rb");

	if (!file)
		die("no such seed");
	lengths[index] = fread(seeds[index], 1, MOST_BYTES, file);
	fclose(file);
	if (!try(seeds[index], lengths[index]))
		die("a seed that is refused");
}

int main(int count, char **values)
{
	size_t cases = count > 3 ? strtoul(values[1], NULL, 10) : 0, many = count > 3 ? (size_t)count - 3 : 0, taken = 0;

	if (!many || many > MOST_SEEDS)
		die("fuzz-reply CASES SEED FILE...");
	state = strtoull(values[2], NULL, 10) | 1;
	for (size_t i = 0; i < many; i++)
		read_seed(values[3 + i], i);
	for (size_t i = 0; i < cases; i++) {
		size_t seed = draw(many), changes = 1 + draw(4), length = lengths[seed];
		char bytes[MOST_BYTES];

		memcpy(bytes, seeds[seed], length);
		while (changes--)
			change(bytes, &length);
		taken += try(bytes, length);
	}
	printf("cases=%zu taken=%zu\n", cases, taken);
	return 0;
}
#endif
