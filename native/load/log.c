/* The program's own account of what it did, which tests hold against what the product says. */
#include "load.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int fd = -1;

void load_log_open(const char *file)
{
    char path[SIM_PATH + 128], host[64] = "node";
    const char *dir = getenv("GPUWASTE_SIM_LOG"), *node = getenv("SLURMD_NODENAME");
    if (!file && (!dir || !*dir)) return;
    if (!node) {
        gethostname(host, sizeof host - 1);
        node = host;
    }
    if (!file) {
        snprintf(path, sizeof path, "%s/%s-%d-%llu.jsonl", dir, node, (int)getpid(),
                 (unsigned long long)sim_start_ticks(getpid()));
        file = path;
    }
    fd = open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (fd < 0) load_die("cannot write the log %s", file);
}

/* A variable that is not a number is written as null. */
static const char *number_or_null(const char *name, const char *absent, char *buffer, size_t size)
{
    const char *value = getenv(name);
    char *end;
    if (!value || !*value) return absent;
    long number = strtol(value, &end, 10);
    if (*end) return absent;
    snprintf(buffer, size, "%ld", number);
    return buffer;
}

/* CPU time of the process with all its threads, as the kernel counts it. */
static double own_cpu_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

void load_log(const char *event, const load_gpu *gpu, int64_t mono_ns, int64_t utc_offset_ns)
{
    char line[1024], job[24], restart[24], step[24], host[64] = "node";
    const char *node = getenv("SLURMD_NODENAME");
    if (fd < 0) return;
    if (!node) {
        gethostname(host, sizeof host - 1);
        node = host;
    }
    const load_phase *p = &gpu->current;
    int n = snprintf(line, sizeof line,
        "{\"t_utc\": %.6f, \"mono\": %.6f, \"pid\": %d, \"job_id\": %s, \"restart\": %s, \"step\": %s, \"node\": \"%s\","
        " \"minor\": %u, \"uuid\": \"%s\", \"mig_uuid\": \"%s\", \"util\": %g, \"mem_mib\": %d, \"power_w\": %d,"
        " \"sm_ratio\": %g, \"listed\": %s, \"cpu_s\": %.3f, \"event\": \"%s\"}\n",
        (double)(mono_ns + utc_offset_ns) / 1e9, (double)mono_ns / 1e9, (int)getpid(),
        number_or_null("SLURM_JOB_ID", "null", job, sizeof job),
        number_or_null("SLURM_RESTART_COUNT", "0", restart, sizeof restart),
        number_or_null("SLURM_STEP_ID", "null", step, sizeof step), node, gpu->gpu->minor, gpu->gpu->uuid,
        gpu->mig ? gpu->mig->uuid : "", p->util_pct, p->mem_mib, p->power_w, p->sm_ratio,
        gpu->flags & SIM_NO_PROCESS ? "false" : "true", own_cpu_s(), event);
    if (n <= 0 || (size_t)n >= sizeof line || write(fd, line, (size_t)n) != n)
        fprintf(stderr, "gpuwaste-load: the log could not be written\n");
}
