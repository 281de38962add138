/*
 * The members of job_desc_msg_t that are sent: name of the member, which is also its name in the request. All of them
 * exist in every release from 22.05 to 26.05.
 */
#ifndef GW_JOB_FIELDS_H
#define GW_JOB_FIELDS_H

#define GW_JOB_TEXTS(X) \
	X(name) \
	X(account) \
	X(partition) \
	X(qos) \
	X(tres_per_job) \
	X(tres_per_node) \
	X(tres_per_socket) \
	X(tres_per_task) \
	X(cpus_per_tres) \
	X(mem_per_tres) \
	X(features) \
	X(comment) \
	X(admin_comment) \
	X(reservation) \
	X(dependency) \
	X(array_inx)

/* Other texts that hold what a user gave on the command line: looked through for --test-only, and not sent. */
#define GW_JOB_OTHER_TEXTS(X) \
	X(script) \
	X(acctg_freq) \
	X(batch_features) \
	X(burst_buffer) \
	X(cluster_features) \
	X(clusters) \
	X(container) \
	X(cpu_bind) \
	X(exc_nodes) \
	X(extra) \
	X(licenses) \
	X(mail_user) \
	X(mcs_label) \
	X(mem_bind) \
	X(network) \
	X(prefer) \
	X(req_nodes) \
	X(std_err) \
	X(std_in) \
	X(std_out) \
	X(tres_bind) \
	X(tres_freq) \
	X(wckey) \
	X(work_dir)

/* 16 and 32 bits wide; NO_VAL and INFINITE of their width are left out. */
#define GW_JOB_NUMBERS(X) \
	X(user_id) \
	X(time_min) \
	X(min_nodes) \
	X(max_nodes) \
	X(min_cpus) \
	X(max_cpus) \
	X(num_tasks) \
	X(cpus_per_task) \
	X(ntasks_per_node) \
	X(pn_min_cpus) \
	X(sockets_per_node) \
	X(het_job_offset) \
	X(shared)

#endif
