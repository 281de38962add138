/*
 * job_submit/gpuwaste: asks the advisor about each job before slurmctld queues it.
 *
 * It is built against the public headers of one exact release, since the layout of job_desc_msg_t differs between
 * releases; plugin_version makes every other slurmctld refuse it. slurmctld holds its locks while these functions run,
 * and from 23.02 on runs several at once.
 */
#include <inttypes.h>
#include <stdio.h>

#include "request.h"

#if SLURM_VERSION_NUMBER < SLURM_VERSION_NUM(22, 5, 0)
#error "job_submit/gpuwaste needs Slurm 22.05 or later"
#endif

#define VISIBLE __attribute__((visibility("default")))

/* slurmctld's own record of a job: not in the public headers, and not looked into here. */
typedef struct job_record job_record_t;

VISIBLE const char plugin_name[] = "gpuwaste submit advice";
VISIBLE const char plugin_type[] = "job_submit/gpuwaste";
VISIBLE const uint32_t plugin_version = SLURM_VERSION_NUMBER;

VISIBLE int init(void);
VISIBLE int fini(void);
VISIBLE int job_submit(job_desc_msg_t *job, uint32_t submit_uid, char **err_msg);

static gw_client *client;

static void log_line(const char *line)
{
	slurm_info("%s", line);
}

VISIBLE int init(void)
{
	char release[32];

	snprintf(release, sizeof(release), "%d.%02d.%d", SLURM_VERSION_MAJOR(SLURM_VERSION_NUMBER),
		 SLURM_VERSION_MINOR(SLURM_VERSION_NUMBER), SLURM_VERSION_MICRO(SLURM_VERSION_NUMBER));
	client = gw_client_open(NULL, "c", release, log_line);
	if (!client)
		slurm_error("gpuwaste: out of memory: all jobs accepted without advice");
	/* Success even so: a plugin that does not load keeps slurmctld from starting. */
	return SLURM_SUCCESS;
}

VISIBLE int fini(void)
{
	gw_totals totals;

	if (client) {
		gw_read_totals(client, &totals);
		slurm_info("gpuwaste: %" PRIu64 " requests, %" PRIu64 " answered, %" PRIu64 " missed, %" PRIu64 " refused",
			   totals.asked, totals.answered, totals.missed, totals.refused);
	}
	gw_client_close(client);
	client = NULL;
	return SLURM_SUCCESS;
}

static gw_start ask(job_desc_msg_t *job, uint32_t uid, bool modify, gw_reply *reply)
{
	gw_frame frame;
	gw_start start = gw_begin(client, &frame, modify ? "modify" : "submit", uid);

	if (start != GW_GO)
		return start;
	gw_put_job(&frame, job, modify);
	gw_ask(client, &frame, reply);
	return start;
}

VISIBLE int job_submit(job_desc_msg_t *job, uint32_t submit_uid, char **err_msg)
{
	gw_reply reply = {.action = GW_PASS};

	if (!client || ask(job, submit_uid, false, &reply) == GW_KILLED)
		return SLURM_SUCCESS;
	/*
	 * Slurm lets only administrators set admin_comment. A token that one of them brings along, from a job that they submit
	 * again, would join this job's end to another job's verdict: it goes, whether there is a new one or not.
	 */
	gw_set_token(job, reply.id);
	gw_set_time_min(job, reply.time_min);
	gw_add_message(err_msg, &reply);
	return gw_return_code(&reply);
}

/*
 * A modification's admin_comment replaces what the job has, token and all, and the record that holds it cannot be read
 * here. So it is left alone, unless the request sets it: then the verdict on this modification is its token.
 */
static int modify(job_desc_msg_t *job, uint32_t submit_uid, char **err_msg)
{
	gw_reply reply = {.action = GW_PASS};

	if (!client || ask(job, submit_uid, true, &reply) == GW_KILLED)
		return SLURM_SUCCESS;
	if (job->admin_comment && *reply.id)
		gw_set_token(job, reply.id);
	gw_add_message(err_msg, &reply);
	return gw_return_code(&reply);
}

/* 23.02 gave modifications a message for the user. */
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(23, 2, 0)
VISIBLE int job_modify(job_desc_msg_t *job, job_record_t *record, uint32_t submit_uid, char **err_msg);

VISIBLE int job_modify(job_desc_msg_t *job, job_record_t *record, uint32_t submit_uid, char **err_msg)
{
	(void)record;
	return modify(job, submit_uid, err_msg);
}
#else
VISIBLE int job_modify(job_desc_msg_t *job, job_record_t *record, uint32_t submit_uid);

VISIBLE int job_modify(job_desc_msg_t *job, job_record_t *record, uint32_t submit_uid)
{
	(void)record;
	return modify(job, submit_uid, NULL);
}
#endif
