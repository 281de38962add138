#include <stdlib.h>
#include <string.h>

#include "job_fields.h"
#include "request.h"

#define ESLURM_FIRST 2000 /* slurmctld's errors in slurm_errno.h; others mean something else to its callers */
#define ESLURM_LAST 2999

#define TEST_ONLY "--test-only"

/* The number of a modified job; in the releases between these two nobody has looked yet, and the compiler will say. */
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(26, 5, 0)
#define GW_JOB_ID(job) ((job)->step_id.job_id)
#else
#define GW_JOB_ID(job) ((job)->job_id)
#endif

/* Add a number unless its own width's NO_VAL or INFINITE says that it is not set. */
static void put_set(gw_frame *frame, const char *name, uint64_t value, size_t width)
{
	if (width == sizeof(uint16_t) && (value == NO_VAL16 || value == INFINITE16))
		return;
	if (width == sizeof(uint32_t) && (value == NO_VAL || value == INFINITE))
		return;
	gw_put_number(frame, name, value);
}

static void put_time_limit(gw_frame *frame, uint32_t minutes)
{
	if (minutes == INFINITE)
		gw_put_word(frame, "time_limit", "infinite");
	else
		put_set(frame, "time_limit", minutes, sizeof(minutes));
}

static void put_memory(gw_frame *frame, uint64_t memory)
{
	if (memory == NO_VAL64 || memory == INFINITE64)
		return;
	if (memory & MEM_PER_CPU)
		gw_put_number(frame, "mem_per_cpu_mb", memory & ~MEM_PER_CPU);
	else
		gw_put_number(frame, "mem_per_node_mb", memory);
}

static void put_begin_time(gw_frame *frame, time_t begin)
{
	if (begin > 0 && begin != (time_t)NO_VAL)
		gw_put_number(frame, "begin_time", (uint64_t)begin);
}

/*
 * The job of a modification: scontrol gives it as text, such as 12, 12_[1-3] or 12+1, older programs as a number. The
 * text goes along where it says more than the number. slurmctld calls once for each task or component of it.
 */
static void put_job_id(gw_frame *frame, const job_desc_msg_t *job)
{
	const char *text = job->job_id_str;
	unsigned long id;
	char *end;

	if (!text || *text < '0' || *text > '9') {
		put_set(frame, "job_id", GW_JOB_ID(job), sizeof(GW_JOB_ID(job)));
		return;
	}
	id = strtoul(text, &end, 10);
	gw_put_number(frame, "job_id", id);
	if (*end)
		gw_put_text(frame, "job_id_str", text);
}

/* Count the blank-separated words of `text` that are the option. */
static unsigned count_option(const char *text)
{
	unsigned found = 0;
	const char *at = text;

	while ((at = strstr(at, TEST_ONLY))) {
		char next = at[sizeof(TEST_ONLY) - 1];

		found += (at == text || at[-1] == ' ') && (!next || next == ' ');
		at += sizeof(TEST_ONLY) - 1;
	}
	return found;
}

static unsigned count_in_array(char **texts, uint32_t count)
{
	unsigned found = 0;

	for (uint32_t i = 0; texts && i < count; i++)
		if (texts[i])
			found += count_option(texts[i]);
	return found;
}

/* Whether a value that the user gave to another option holds the word: the command line does not keep its quotes. */
static bool is_in_values(const job_desc_msg_t *job)
{
	unsigned found = count_in_array(job->environment, job->env_size);

#define COUNT_IN(member) found += job->member ? count_option(job->member) : 0;
	GW_JOB_TEXTS(COUNT_IN)
	GW_JOB_OTHER_TEXTS(COUNT_IN)
#undef COUNT_IN
	return found > 0;
}

/*
 * Whether the command line says --test-only. slurmctld tells job_submit nothing of it: the same descriptor comes with
 * the request to test and with the request to queue. So this is the user's word: the option stands in the line that
 * the user's command sends along, and neither among the script's own arguments nor in another option's value. An
 * abbreviation, or #SBATCH --test-only, is not seen; and a user's own client can claim it.
 */
static bool is_test_only(const job_desc_msg_t *job)
{
	unsigned mine = job->submit_line ? count_option(job->submit_line) : 0;

	return mine && mine > count_in_array(job->argv, job->argc) && !is_in_values(job);
}

void gw_put_job(gw_frame *frame, const job_desc_msg_t *job, bool modify)
{
#define PUT_TEXT(member) gw_put_text(frame, #member, job->member);
#define PUT_NUMBER(member) put_set(frame, #member, job->member, sizeof(job->member));
	GW_JOB_TEXTS(PUT_TEXT)
	GW_JOB_NUMBERS(PUT_NUMBER)
#undef PUT_TEXT
#undef PUT_NUMBER
	put_time_limit(frame, job->time_limit);
	put_memory(frame, job->pn_min_memory);
	put_begin_time(frame, job->begin_time);
	if (modify)
		put_job_id(frame, job);
	else
		put_set(frame, "group_id", job->group_id, sizeof(job->group_id));
	if (!modify && is_test_only(job))
		gw_put_true(frame, "test_only");
	gw_put_script(frame, job->script);
}

void gw_set_token(job_desc_msg_t *job, const char *id)
{
	char local[512], *text = local;
	size_t size = gw_comment(job->admin_comment, id, NULL, 0);

	if (!job->admin_comment && !*id)
		return;
	if (size > sizeof(local) && !(text = malloc(size)))
		return;
	gw_comment(job->admin_comment, id, text, size);
	if (!job->admin_comment || strcmp(job->admin_comment, text)) {
		slurm_xfree((void **)&job->admin_comment);
		job->admin_comment = slurm_xstrdup(text);
	}
	if (text != local)
		free(text);
}

void gw_set_time_min(job_desc_msg_t *job, uint32_t minutes)
{
	bool has_own = job->time_min != NO_VAL && job->time_min != 0;

	/*
	 * slurmctld refuses a job whose time_min exceeds its limit or its deadline. Without a limit of its own the job
	 * gets the partition's, which is not known here.
	 */
	if (!minutes || has_own || job->deadline || job->time_limit == NO_VAL || job->time_limit == 0)
		return;
	if (job->time_limit == INFINITE || minutes < job->time_limit)
		job->time_min = minutes;
}

void gw_add_message(char **err_msg, const gw_reply *reply)
{
	char text[GW_MESSAGE_BYTES], *both;
	size_t length = gw_message(reply, text), old;

	if (!err_msg || !length)
		return;
	if (!*err_msg || !**err_msg) {
		slurm_xfree((void **)err_msg);
		*err_msg = slurm_xstrdup(text);
		return;
	}
	/* Another plugin of JobSubmitPlugins, or an earlier task of the same modification, has spoken already. */
	old = strlen(*err_msg);
	both = malloc(old + 1 + length + 1);
	if (!both)
		return;
	memcpy(both, *err_msg, old);
	both[old] = '\n';
	memcpy(both + old + 1, text, length + 1);
	slurm_xfree((void **)err_msg);
	*err_msg = slurm_xstrdup(both);
	free(both);
}

int gw_return_code(const gw_reply *reply)
{
	if (reply->action != GW_REJECT)
		return SLURM_SUCCESS;
	if (reply->code >= ESLURM_FIRST && reply->code <= ESLURM_LAST)
		return (int)reply->code;
	return ESLURM_ACCOUNTING_POLICY;
}
