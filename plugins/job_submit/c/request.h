/* What of a job_desc_msg_t is asked about, and what of an answer is written back. */
#ifndef GW_REQUEST_H
#define GW_REQUEST_H

#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <slurm/slurm_version.h>

#include "../common/gw_client.h"

/*
 * Slurm's own allocator and log, which no public header but spank.h declares; slurmctld resolves them at load. What
 * job_desc_msg_t holds is freed by slurmctld with slurm_xfree, so only these may make it.
 */
extern char *slurm_xstrdup(const char *text);
extern void slurm_xfree(void **item);
extern void slurm_info(const char *format, ...) __attribute__((format(printf, 1, 2)));
extern void slurm_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Add the members of "job" for a submission or, with `modify`, for what a modification asks to change. */
void gw_put_job(gw_frame *frame, const job_desc_msg_t *job, bool modify);

/* Write ";gw=<id>" beside what admin_comment holds; with "" only take away what looks like a token. */
void gw_set_token(job_desc_msg_t *job, const char *id);

/* Take over a minimum time limit that cannot make the job fail. */
void gw_set_time_min(job_desc_msg_t *job, uint32_t minutes);

/* Add a message to those of other plugins; `err_msg` may be NULL, where a release takes none. */
void gw_add_message(char **err_msg, const gw_reply *reply);

/* What the plugin returns: 0, or the ESLURM number of the refusal. */
int gw_return_code(const gw_reply *reply);

#endif
