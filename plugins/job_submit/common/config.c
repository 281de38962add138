/*
 * Reads [plugin] and [advisor] socket of gpuwaste.toml and of its drop-ins, gpuwaste.toml.d by name: KEY = INTEGER or
 * "TEXT", one a line. The programs read the whole files with a real TOML reader and refuse what is wrong; here a wrong
 * line leaves the value before it and one log line.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "internal.h"

#define LONGEST_FILE (1 << 20)
#define LONGEST_LINE 2048
#define MOST_DROP_INS 64 /* as core/config_files.py allows */

typedef struct number_key {
	const char *name;
	size_t offset;
	int64_t usual, least, most;
} number_key;

typedef struct text_key {
	const char *section;
	const char *name;
	size_t offset, size;
	const char *usual;
} text_key;

#define NUMBER(name, usual, least, most) {#name, offsetof(gw_settings, name), usual, least, most}
#define TEXT(section, name, usual) {section, #name, offsetof(gw_settings, name), sizeof(((gw_settings *)0)->name), usual}

/* The defaults are those of PluginConfig and AdvisorConfig; a test compares them. */
static const number_key numbers[] = {
	NUMBER(deadline_us, 5000, 100, 10000000),
	NUMBER(breaker_misses, 3, 1, 1000000),
	NUMBER(breaker_first_ms, 1000, 1, 86400000),
	NUMBER(breaker_max_ms, 30000, 1, 86400000),
	NUMBER(stale_s, 7200, 1, 1000000000),
	NUMBER(script_bytes, 32768, 0, GW_MAX_REQUEST),
};

static const text_key texts[] = {
	TEXT("plugin", kill_switch, "/etc/gpuwaste/disable"),
	TEXT("plugin", advisor_user, "gpuwaste"),
	TEXT("advisor", socket, "/run/gpuwaste/advisor.sock"),
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Where the reader stands, and what it has to say. */
typedef struct reader {
	const char *path;
	gw_settings *settings;
	gw_log log;
	char section[32];
	unsigned line;
	unsigned odd; /* lines that cannot be parsed; only the first is named */
} reader;

static void say_odd(reader *at, const char *what)
{
	if (!at->odd++)
		gw_say(at->log, "gpuwaste: %s:%u: %s; using the default", at->path, at->line, what);
}

static void set_text(gw_settings *settings, const text_key *key, const char *value)
{
	snprintf((char *)settings + key->offset, key->size, "%s", value);
}

static void set_number(gw_settings *settings, const number_key *key, int64_t value)
{
	memcpy((char *)settings + key->offset, &value, sizeof(value));
}

static void set_defaults(gw_settings *settings)
{
	memset(settings, 0, sizeof(*settings));
	for (size_t i = 0; i < COUNT(numbers); i++)
		set_number(settings, &numbers[i], numbers[i].usual);
	for (size_t i = 0; i < COUNT(texts); i++)
		set_text(settings, &texts[i], texts[i].usual);
}

static char *trimmed(char *text)
{
	char *end;

	while (isspace((unsigned char)*text))
		text++;
	end = text + strlen(text);
	while (end > text && isspace((unsigned char)end[-1]))
		*--end = 0;
	return text;
}

/* True where nothing but blanks and a comment is left. */
static bool is_rest(const char *text)
{
	while (isspace((unsigned char)*text))
		text++;
	return !*text || *text == '#';
}

/* Read an integer as TOML writes it: digits, perhaps with underscores between them. */
static bool read_number(const char *text, int64_t *value)
{
	char digits[24];
	size_t used = 0;
	char last = '_';

	for (; isdigit((unsigned char)*text) || *text == '_'; last = *text++) {
		if (*text == '_' && last == '_')
			return false;
		if (*text != '_' && used + 1 < sizeof(digits))
			digits[used++] = *text;
	}
	digits[used] = 0;
	if (!used || last == '_' || used > 18 || !is_rest(text))
		return false;
	*value = strtoll(digits, NULL, 10);
	return true;
}

/* Read "TEXT" or 'TEXT' in place; a text with a backslash or a control character is not read. */
static char *read_text(char *text)
{
	char quote = *text, *end;

	if (quote != '"' && quote != '\'')
		return NULL;
	for (end = ++text; *end && *end != quote; end++)
		if (*end == '\\' || iscntrl((unsigned char)*end))
			return NULL;
	if (!*end || !is_rest(end + 1))
		return NULL;
	*end = 0;
	return text;
}

static void take_number(reader *at, const number_key *key, const char *text)
{
	int64_t value;

	if (!read_number(text, &value))
		say_odd(at, "expected a whole number");
	else if (value < key->least || value > key->most)
		say_odd(at, "number out of range");
	else
		set_number(at->settings, key, value);
}

static void take_text(reader *at, const text_key *key, char *text)
{
	char *value = read_text(text);

	if (!value || !*value)
		say_odd(at, "expected a \"text\" without backslashes");
	else if (strlen(value) >= key->size)
		say_odd(at, "text too long");
	else
		set_text(at->settings, key, value);
}

static void take_pair(reader *at, const char *name, char *value)
{
	bool plugin = !strcmp(at->section, "plugin");

	for (size_t i = 0; plugin && i < COUNT(numbers); i++)
		if (!strcmp(numbers[i].name, name)) {
			take_number(at, &numbers[i], value);
			return;
		}
	for (size_t i = 0; i < COUNT(texts); i++)
		if (!strcmp(texts[i].section, at->section) && !strcmp(texts[i].name, name)) {
			take_text(at, &texts[i], value);
			return;
		}
	if (plugin)
		say_odd(at, "not a key of [plugin]");
}

/* Take "[name]"; other sections are the programs' own, and so is what their lines look like. */
static void take_section(reader *at, const char *line)
{
	const char *end = strchr(line, ']');
	size_t length = end ? (size_t)(end - line - 1) : 0;

	if (!end || !is_rest(end + 1) || length >= sizeof(at->section)) {
		at->section[0] = 0;
		return;
	}
	memcpy(at->section, line + 1, length);
	at->section[length] = 0;
}

static void take_line(reader *at, char *line)
{
	char *text = trimmed(line), *equals;

	if (*text == '[') {
		take_section(at, text);
		return;
	}
	if (!*text || *text == '#')
		return;
	equals = strchr(text, '=');
	if (equals) {
		*equals = 0;
		take_pair(at, trimmed(text), trimmed(equals + 1));
	} else if (!strcmp(at->section, "plugin")) {
		say_odd(at, "expected KEY = VALUE");
	}
}

static void take_stream(reader *at, FILE *file)
{
	char line[LONGEST_LINE];
	bool whole = true;

	while (fgets(line, sizeof(line), file)) {
		bool begins = whole;

		whole = strchr(line, '\n') || feof(file);
		at->line += begins;
		if (begins && whole)
			take_line(at, line);
		else if (begins && !strcmp(at->section, "plugin"))
			say_odd(at, "line too long");
	}
}

/* Open what is a plain file of sane size, without waiting for a pipe's other end; errno says why not. */
static FILE *open_plain(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat now;
	FILE *file;

	if (fd < 0)
		return NULL;
	if (fstat(fd, &now) || !S_ISREG(now.st_mode) || now.st_size > LONGEST_FILE) {
		close(fd);
		errno = EINVAL;
		return NULL;
	}
	file = fdopen(fd, "r");
	if (!file)
		close(fd);
	return file;
}

/* Read one file over the settings; an odd line leaves what was set before. */
static void take_file(const char *path, gw_settings *settings, gw_log log, const char *instead)
{
	reader at = {.path = path, .settings = settings, .log = log};
	FILE *file = open_plain(path);
	char reason[128];

	if (file) {
		take_stream(&at, file);
		fclose(file);
	} else {
		gw_say(log, "gpuwaste: %s: %s; using the %s", path,
		    errno == EINVAL ? "not a regular file of at most 1 MiB" : strerror_r(errno, reason, sizeof(reason)),
		    instead);
	}
	if (at.odd > 1)
		gw_say(log, "gpuwaste: %s: %u more lines cannot be parsed", path, at.odd - 1);
}

static int by_bytes(const void *one, const void *other)
{
	return strcmp(*(char *const *)one, *(char *const *)other);
}

static bool is_drop_in(const char *name)
{
	size_t length = strlen(name);

	return *name != '.' && length > 5 && !strcmp(name + length - 5, ".toml");
}

/* Write PATH.d/NAME, PATH.d where there is no name. False where it does not fit. */
static bool drop_in_path(char out[GW_PATH_BYTES], const char *path, const char *name)
{
	int length = snprintf(out, GW_PATH_BYTES, "%s.d%s%s", path, *name ? "/" : "", name);

	return length >= 0 && length < GW_PATH_BYTES;
}

/* The names of PATH.d in the order of their bytes, to be freed one by one; returns how many. */
static size_t drop_ins(const char *path, char *names[MOST_DROP_INS], gw_log log)
{
	char folder[GW_PATH_BYTES];
	struct dirent *entry;
	size_t found = 0;
	DIR *open_folder = drop_in_path(folder, path, "") ? opendir(folder) : NULL;

	if (!open_folder)
		return 0;
	while ((entry = readdir(open_folder))) {
		if (!is_drop_in(entry->d_name))
			continue;
		if (found == MOST_DROP_INS) {
			gw_say(log, "gpuwaste: %s: over %d files; not all of them are read", folder, MOST_DROP_INS);
			break;
		}
		names[found] = strdup(entry->d_name);
		if (!names[found])
			break;
		found++;
	}
	closedir(open_folder);
	qsort(names, found, sizeof(*names), by_bytes);
	return found;
}

void gw_config_read(const char *path, gw_settings *settings, gw_log log)
{
	char *names[MOST_DROP_INS], file[GW_PATH_BYTES];
	size_t count = drop_ins(path, names, log);

	set_defaults(settings);
	take_file(path, settings, log, "defaults");
	for (size_t i = 0; i < count; i++) {
		if (drop_in_path(file, path, names[i]))
			take_file(file, settings, log, "other files");
		free(names[i]);
	}
	if (settings->breaker_max_ms < settings->breaker_first_ms)
		settings->breaker_max_ms = settings->breaker_first_ms;
}

static gw_file look(const char *path)
{
	gw_file file = {0};
	struct stat now;

	if (stat(path, &now))
		return file;
	file.there = true;
	file.device = now.st_dev;
	file.inode = now.st_ino;
	file.size = now.st_size;
	file.changed_ns = (int64_t)now.st_mtim.tv_sec * 1000000000 + now.st_mtim.tv_nsec;
	return file;
}

/* A number that differs where a drop-in was added, removed, renamed or changed; 0 for none. */
static uint64_t look_at_drop_ins(const char *path)
{
	char *names[MOST_DROP_INS], name[GW_PATH_BYTES], text[GW_PATH_BYTES + 128];
	size_t count = drop_ins(path, names, NULL);
	uint64_t all = 0;

	for (size_t i = 0; i < count; i++) {
		if (drop_in_path(name, path, names[i])) {
			gw_file file = look(name);
			int length = snprintf(text, sizeof(text), "%s %d %llu %llu %lld %lld", name, file.there,
			    (unsigned long long)file.device, (unsigned long long)file.inode, (long long)file.size,
			    (long long)file.changed_ns);

			all = all * 1099511628211u + gw_hash(text, (size_t)length);
		}
		free(names[i]);
	}
	return all;
}

gw_file gw_config_look(const char *path)
{
	gw_file file = look(path);

	file.drop_ins = look_at_drop_ins(path);
	return file;
}

bool gw_file_same(const gw_file *one, const gw_file *other)
{
	return one->there == other->there && one->device == other->device && one->inode == other->inode &&
	       one->size == other->size && one->changed_ns == other->changed_ns && one->drop_ins == other->drop_ins;
}
