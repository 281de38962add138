/*
 * Stands in for slurmctld: loads the plugin, fills a job_desc_msg_t and calls it, so that a sanitizer sees all that the
 * plugin does. Commands on standard input, one answer line each; bytes in hexadecimal, "-" for none.
 *
 *	set MEMBER HEX|NUMBER    script PATH    argv HEX    env HEX    message HEX    reset    submit UID    modify UID
 */
#include <dlfcn.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../c/job_fields.h"
#include "../c/request.h"

#define LONGEST_COMMAND (1 << 20)
#define MOST_ARGUMENTS 16
#define VISIBLE __attribute__((visibility("default")))

#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(26, 5, 0)
#define JOB_ID job.step_id.job_id
#else
#define JOB_ID job.job_id
#endif

typedef int (*submit_function)(job_desc_msg_t *, uint32_t, char **);
typedef int (*modify_function)(job_desc_msg_t *, void *, uint32_t, char **);

static job_desc_msg_t job;
static char *arguments[MOST_ARGUMENTS], *environment[MOST_ARGUMENTS];
static char *message;

/* slurmctld's own, kept apart from malloc by a head of 16 bytes: what is freed by another's free is found at once. */
VISIBLE char *slurm_xstrdup(const char *text)
{
	char *block;

	if (!text)
		return NULL;
	block = malloc(16 + strlen(text) + 1);
	if (!block)
		abort();
	memcpy(block, "slurm memory....", 16);
	return strcpy(block + 16, text);
}

VISIBLE void slurm_xfree(void **item)
{
	char *block = *item ? (char *)*item - 16 : NULL;

	if (block && memcmp(block, "slurm memory....", 16))
		abort();
	free(block);
	*item = NULL;
}

static void log_line(const char *format, va_list values)
{
	vfprintf(stderr, format, values);
	fputc('\n', stderr);
}

VISIBLE void slurm_info(const char *format, ...)
{
	va_list values;

	va_start(values, format);
	log_line(format, values);
	va_end(values);
}

VISIBLE void slurm_error(const char *format, ...)
{
	va_list values;

	va_start(values, format);
	log_line(format, values);
	va_end(values);
}

static void die(const char *why)
{
	fprintf(stderr, "slurmctld: %s\n", why);
	exit(2);
}

/* Return bytes that slurm_xfree frees. */
static char *from_hex(const char *hex)
{
	size_t length = strlen(hex) / 2;
	char *bytes;
	char *text;
	unsigned one;

	if (!strcmp(hex, "-"))
		return NULL;
	bytes = malloc(length + 1);
	if (!bytes)
		die("out of memory");
	for (size_t i = 0; i < length; i++) {
		if (sscanf(hex + 2 * i, "%2x", &one) != 1)
			die("bad hexadecimal");
		bytes[i] = (char)one;
	}
	bytes[length] = 0;
	text = slurm_xstrdup(bytes);
	free(bytes);
	return text;
}

static void put_hex(const char *name, const char *text)
{
	printf(" %s=", name);
	if (!text)
		putchar('-');
	for (; text && *text; text++)
		printf("%02x", (unsigned char)*text);
}

/* As slurm_init_job_desc_msg leaves it: no texts, and each number its own width's NO_VAL. */
static void reset(void)
{
#define FREE(member) slurm_xfree((void **)&job.member);
#define UNSET(member) job.member = sizeof(job.member) == 2 ? (__typeof__(job.member))NO_VAL16 : (__typeof__(job.member))NO_VAL;
	GW_JOB_TEXTS(FREE)
	FREE(script)
	FREE(submit_line)
	FREE(work_dir)
	FREE(job_id_str)
	for (uint32_t i = 0; i < job.argc; i++)
		slurm_xfree((void **)&arguments[i]);
	for (uint32_t i = 0; i < job.env_size; i++)
		slurm_xfree((void **)&environment[i]);
	slurm_xfree((void **)&message);
	memset(&job, 0, sizeof(job));
	GW_JOB_NUMBERS(UNSET)
	UNSET(time_limit)
	UNSET(group_id)
	JOB_ID = NO_VAL;
	job.pn_min_memory = NO_VAL64;
}

static void set_text(char **member, const char *hex)
{
	slurm_xfree((void **)member);
	*member = from_hex(hex);
}

static bool set_number(const char *name, const char *value)
{
	uint64_t number = strtoull(value, NULL, 10);

	if (!strcmp(name, "job_id")) {
		JOB_ID = (uint32_t)number;
		return true;
	}
#define NUMBER(member) \
	if (!strcmp(name, #member)) { \
		job.member = (__typeof__(job.member))number; \
		return true; \
	}
	GW_JOB_NUMBERS(NUMBER)
	NUMBER(time_limit)
	NUMBER(group_id)
	NUMBER(pn_min_memory)
	NUMBER(begin_time)
	NUMBER(deadline)
	return false;
}

static void set(const char *name, const char *value)
{
#define MATCH(member) \
	if (!strcmp(name, #member)) { \
		set_text(&job.member, value); \
		return; \
	}
	GW_JOB_TEXTS(MATCH)
	MATCH(script)
	MATCH(submit_line)
	MATCH(work_dir)
	MATCH(job_id_str)
	if (!set_number(name, value))
		die("no such member");
}

static void read_script(const char *path)
{
	FILE *file = fopen(path, "rb");
	char *bytes;
	long size;

	if (!file || fseek(file, 0, SEEK_END) || (size = ftell(file)) < 0)
		die("no such file");
	rewind(file);
	bytes = calloc((size_t)size + 1, 1);
	if (!bytes || fread(bytes, 1, (size_t)size, file) != (size_t)size)
		die("the file cannot be read");
	fclose(file);
	slurm_xfree((void **)&job.script);
	job.script = slurm_xstrdup(bytes);
	free(bytes);
}

static void add_argument(const char *hex)
{
	if (job.argc == MOST_ARGUMENTS)
		die("too many arguments");
	arguments[job.argc++] = from_hex(hex);
	job.argv = arguments;
}

static void add_variable(const char *hex)
{
	if (job.env_size == MOST_ARGUMENTS)
		die("too many variables");
	environment[job.env_size++] = from_hex(hex);
	job.environment = environment;
}

static void print_result(int code)
{
	printf("%d time_min=%" PRIu32, code, job.time_min);
	put_hex("admin_comment", job.admin_comment);
	put_hex("message", message);
	putchar('\n');
}

/* slurmctld gives every member a function of its own release; a release of 3 arguments ignores the fourth. */
static void run(void *plugin, char *line)
{
	const char *word[3] = {"", "", ""};
	char *rest = line;
	uint32_t uid;

	for (size_t i = 0; i < 3 && rest; i++)
		word[i] = strsep(&rest, " \n");
	uid = (uint32_t)strtoul(word[1], NULL, 10);
	if (!strcmp(word[0], "submit")) {
		print_result(((submit_function)dlsym(plugin, "job_submit"))(&job, uid, &message));
	} else if (!strcmp(word[0], "modify")) {
		print_result(((modify_function)dlsym(plugin, "job_modify"))(&job, NULL, uid, &message));
	} else {
		if (!strcmp(word[0], "set"))
			set(word[1], word[2]);
		else if (!strcmp(word[0], "script"))
			read_script(word[1]);
		else if (!strcmp(word[0], "argv"))
			add_argument(word[1]);
		else if (!strcmp(word[0], "env"))
			add_variable(word[1]);
		else if (!strcmp(word[0], "message"))
			set_text(&message, word[1]);
		else
			reset();
		puts("ok");
	}
	fflush(stdout);
}

int main(int count, char **values)
{
	void *plugin = count == 2 ? dlopen(values[1], RTLD_NOW | RTLD_LOCAL) : NULL;
	char *line = malloc(LONGEST_COMMAND);

	if (!plugin || !line)
		die(count == 2 ? dlerror() : "slurmctld PLUGIN");
	if (((int (*)(void))dlsym(plugin, "init"))())
		die("init failed");
	reset();
	while (fgets(line, LONGEST_COMMAND, stdin))
		run(plugin, line);
	free(line);
	reset();
	((int (*)(void))dlsym(plugin, "fini"))();
	/* The plugin stays loaded, so that a leak report can name its functions. */
	return 0;
}
