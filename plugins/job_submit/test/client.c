/*
 * Drives the client library from a test: commands on standard input, one answer line each; log lines go to standard
 * error. Bytes are written in hexadecimal, "-" for none.
 *
 *	open PATH                      settings PATH                totals
 *	text NAME HEX                  number NAME VALUE            true NAME
 *	script PATH                    clear                        ask [UID]
 *	parse HEX                      comment HEX ID               threads COUNT ASKS
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../common/internal.h"

#define MOST_MEMBERS 64
#define LONGEST_COMMAND (1 << 20)

typedef struct member {
	char kind;
	char name[64];
	char *bytes;
	size_t length;
	uint64_t value;
} member;

static member members[MOST_MEMBERS];
static size_t member_count;
static gw_client *client;

static void log_line(const char *line)
{
	fprintf(stderr, "%s\n", line);
}

/*
 * The name service: the system's, behind one that hangs for GW_HUNG_USER until somebody writes to the pipe GW_HUNG. The
 * linker prefers this to libc's.
 */
int getpwnam_r(const char *name, struct passwd *entry, char *buffer, size_t size, struct passwd **found)
{
	typedef int lookup(const char *, struct passwd *, char *, size_t, struct passwd **);
	const char *hung = getenv("GW_HUNG_USER");
	lookup *real;
	char one;

	if (hung && !strcmp(hung, name)) {
		int pipe = open(getenv("GW_HUNG"), O_RDONLY);

		if (pipe < 0 || read(pipe, &one, 1) < 0)
			fprintf(stderr, "client: no pipe to hang on\n");
	}
	*(void **)&real = dlsym(RTLD_NEXT, "getpwnam_r");
	return real(name, entry, buffer, size, found);
}

static void die(const char *why)
{
	fprintf(stderr, "client: %s\n", why);
	exit(2);
}

static char *from_hex(const char *hex, size_t *length)
{
	char *bytes;
	unsigned one;

	*length = strcmp(hex, "-") ? strlen(hex) / 2 : 0;
	bytes = malloc(*length + 1);
	if (!bytes)
		die("out of memory");
	for (size_t i = 0; i < *length; i++) {
		if (sscanf(hex + 2 * i, "%2x", &one) != 1)
			die("bad hexadecimal");
		bytes[i] = (char)one;
	}
	bytes[*length] = 0;
	return bytes;
}

static void put_hex(const char *bytes, size_t length)
{
	if (!length)
		putchar('-');
	for (size_t i = 0; i < length; i++)
		printf("%02x", (unsigned char)bytes[i]);
}

static char *from_file(const char *path, size_t *length)
{
	FILE *file = fopen(path, "rb");
	char *bytes;
	long size;

	if (!file || fseek(file, 0, SEEK_END) || (size = ftell(file)) < 0)
		die("no such file");
	rewind(file);
	bytes = malloc((size_t)size + 1);
	if (!bytes || fread(bytes, 1, (size_t)size, file) != (size_t)size)
		die("the file cannot be read");
	fclose(file);
	bytes[size] = 0;
	*length = (size_t)size;
	return bytes;
}

static member *add(char kind, const char *name)
{
	member *one = &members[member_count++];

	if (member_count > MOST_MEMBERS)
		die("too many members");
	one->kind = kind;
	snprintf(one->name, sizeof(one->name), "%s", name);
	return one;
}

static void clear(void)
{
	while (member_count)
		free(members[--member_count].bytes);
	memset(members, 0, sizeof(members));
}

static void put_members(gw_frame *frame)
{
	for (size_t i = 0; i < member_count; i++) {
		member *one = &members[i];

		if (one->kind == 't')
			gw_put_text(frame, one->name, one->bytes);
		else if (one->kind == 'n')
			gw_put_number(frame, one->name, one->value);
		else if (one->kind == 'b')
			gw_put_true(frame, one->name);
		else
			gw_put_script_bytes(frame, one->bytes, one->length);
	}
}

static gw_start ask(uint32_t uid, gw_reply *reply, bool *taken)
{
	gw_frame frame;
	gw_start start = gw_begin(client, &frame, "submit", uid);

	*taken = false;
	gw_reply_clear(reply);
	if (start != GW_GO)
		return start;
	put_members(&frame);
	*taken = gw_ask(client, &frame, reply);
	return start;
}

static void print_reply(const gw_reply *reply)
{
	static const char *const actions[] = {"pass", "annotate", "warn", "reject"};
	char text[GW_MESSAGE_BYTES];

	printf("%s %" PRIu32 " %s %" PRId64 " %" PRIu32 " ", actions[reply->action], reply->code,
	       *reply->id ? reply->id : "-", reply->as_of, reply->time_min);
	put_hex(text, gw_message(reply, text));
	putchar('\n');
}

static void do_ask(const char *uid)
{
	static const char *const starts[] = {"go", "skipped", "killed"};
	gw_reply reply;
	bool taken;
	gw_start start = ask((uint32_t)strtoul(uid, NULL, 10), &reply, &taken);

	printf("%s %s ", starts[start], taken ? "taken" : "none");
	print_reply(&reply);
}

static void *ask_many(void *argument)
{
	size_t asks = *(size_t *)argument;
	gw_reply reply;
	bool taken;

	for (size_t i = 0; i < asks; i++)
		ask((uint32_t)i, &reply, &taken);
	return NULL;
}

static void do_totals(void)
{
	gw_totals totals;

	gw_read_totals(client, &totals);
	printf("asked=%" PRIu64 " answered=%" PRIu64 " missed=%" PRIu64 " refused=%" PRIu64 " skipped=%" PRIu64, totals.asked,
	       totals.answered, totals.missed, totals.refused, totals.skipped);
	printf(" opened=%" PRIu64 " killed=%" PRIu64 " stale=%" PRIu64 " oversize=%" PRIu64 "\n", totals.opened, totals.killed,
	       totals.stale, totals.oversize);
}

static void do_threads(const char *count, const char *asks)
{
	pthread_t threads[64];
	size_t many = strtoul(count, NULL, 10), each = strtoul(asks, NULL, 10);

	if (many > sizeof(threads) / sizeof(threads[0]))
		die("too many threads");
	for (size_t i = 0; i < many; i++)
		if (pthread_create(&threads[i], NULL, ask_many, &each))
			die("no thread");
	for (size_t i = 0; i < many; i++)
		pthread_join(threads[i], NULL);
	do_totals();
}

static void do_settings(const char *path)
{
	gw_settings at;

	gw_config_read(path, &at, log_line);
	printf("deadline_us=%lld breaker_misses=%lld breaker_first_ms=%lld ", (long long)at.deadline_us,
	       (long long)at.breaker_misses, (long long)at.breaker_first_ms);
	printf("breaker_max_ms=%lld stale_s=%lld script_bytes=%lld ", (long long)at.breaker_max_ms,
	       (long long)at.stale_s, (long long)at.script_bytes);
	printf("kill_switch=%s advisor_user=%s socket=%s\n", at.kill_switch, at.advisor_user, at.socket);
}

static void do_parse(const char *hex)
{
	size_t length;
	char *json = from_hex(hex, &length);
	gw_reply reply;

	printf("%s ", gw_reply_parse(json, length, &reply) ? "taken" : "refused");
	print_reply(&reply);
	free(json);
}

static void do_comment(const char *hex, const char *id)
{
	size_t length, size;
	char *old = from_hex(hex, &length), *text;

	id = strcmp(id, "-") ? id : "";
	size = gw_comment(length ? old : NULL, id, NULL, 0);
	text = malloc(size);
	if (!text || gw_comment(length ? old : NULL, id, text, size) != size)
		die("gw_comment differs from itself");
	put_hex(text, size - 1);
	putchar('\n');
	free(text);
	free(old);
}

static void do_member(const char *kind, const char *name, const char *value)
{
	member *one = add(*kind == 't' && kind[1] == 'r' ? 'b' : *kind, name);

	if (one->kind == 't')
		one->bytes = from_hex(value, &one->length);
	else if (one->kind == 'n')
		one->value = strtoull(value, NULL, 10);
	else if (one->kind == 's')
		one->bytes = from_file(name, &one->length);
	puts("ok");
}

static void do_open(const char *path)
{
	gw_client_close(client);
	client = gw_client_open(path, "c", "22.05.8", log_line);
	puts(client ? "ok" : "out of memory");
}

static void run(char *line)
{
	const char *word[3] = {"", "", ""};
	char *rest = line;

	for (size_t i = 0; i < 3 && rest; i++)
		word[i] = strsep(&rest, " \n");
	if (!strcmp(word[0], "open"))
		do_open(word[1]);
	else if (!strcmp(word[0], "settings"))
		do_settings(word[1]);
	else if (!strcmp(word[0], "parse"))
		do_parse(word[1]);
	else if (!strcmp(word[0], "comment"))
		do_comment(word[1], word[2]);
	else if (!strcmp(word[0], "totals"))
		do_totals();
	else if (!strcmp(word[0], "ask"))
		do_ask(word[1]);
	else if (!strcmp(word[0], "threads"))
		do_threads(word[1], word[2]);
	else if (!strcmp(word[0], "clear"))
		clear(), puts("ok");
	else
		do_member(word[0], word[1], word[2]);
	fflush(stdout);
}

int main(void)
{
	char *line = malloc(LONGEST_COMMAND);

	while (line && fgets(line, LONGEST_COMMAND, stdin))
		run(line);
	free(line);
	clear();
	gw_client_close(client);
	return 0;
}
