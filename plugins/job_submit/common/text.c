/* Bytes: UTF-8, base64 and a hash. */
#include <string.h>

#include "internal.h"

#define HIGH_BITS UINT64_C(0x8080808080808080)

static size_t ascii_span(const unsigned char *text, size_t length)
{
	size_t at = 0;
	uint64_t word;

	for (; at + sizeof(word) <= length; at += sizeof(word)) {
		memcpy(&word, text + at, sizeof(word));
		if (word & HIGH_BITS)
			break;
	}
	while (at < length && text[at] < 0x80)
		at++;
	return at;
}

/* The bytes of the character that starts here, 0 where there is none: overlong forms and surrogates are none. */
static size_t character(const unsigned char *text, size_t length)
{
	unsigned char low = 0x80, high = 0xbf;
	size_t size;

	if (text[0] >= 0xc2 && text[0] <= 0xdf)
		size = 2;
	else if (text[0] >= 0xe0 && text[0] <= 0xef)
		size = 3;
	else if (text[0] >= 0xf0 && text[0] <= 0xf4)
		size = 4;
	else
		return 0;
	if (text[0] == 0xe0)
		low = 0xa0;
	else if (text[0] == 0xed)
		high = 0x9f;
	else if (text[0] == 0xf0)
		low = 0x90;
	else if (text[0] == 0xf4)
		high = 0x8f;
	if (size > length || text[1] < low || text[1] > high)
		return 0;
	for (size_t i = 2; i < size; i++)
		if ((text[i] & 0xc0) != 0x80)
			return 0;
	return size;
}

bool gw_utf8_valid(const char *text, size_t length)
{
	const unsigned char *bytes = (const unsigned char *)text;
	size_t at = 0, size;

	while ((at += ascii_span(bytes + at, length - at)) < length) {
		size = character(bytes + at, length - at);
		if (!size)
			return false;
		at += size;
	}
	return true;
}

size_t gw_utf8_cut(const char *text, size_t length, size_t limit)
{
	size_t cut = limit;

	if (length <= limit)
		return length;
	while (cut && limit - cut < 3 && ((unsigned char)text[cut] & 0xc0) == 0x80)
		cut--;
	return cut;
}

size_t gw_base64(const char *bytes, size_t length, char *out)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const unsigned char *in = (const unsigned char *)bytes;
	size_t used = 0;

	for (size_t at = 0; at < length; at += 3) {
		size_t left = length - at;
		uint32_t group = (uint32_t)in[at] << 16;

		if (left > 1)
			group |= (uint32_t)in[at + 1] << 8;
		if (left > 2)
			group |= in[at + 2];
		out[used++] = digits[group >> 18];
		out[used++] = digits[group >> 12 & 63];
		out[used++] = left > 1 ? digits[group >> 6 & 63] : '=';
		out[used++] = left > 2 ? digits[group & 63] : '=';
	}
	return used;
}

uint64_t gw_hash(const char *bytes, size_t length)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < length; i++)
		hash = (hash ^ (unsigned char)bytes[i]) * UINT64_C(0x100000001b3);
	return hash;
}
