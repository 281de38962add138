/* Submits held batch jobs through libslurm as fast as slurmctld answers, and prints how long each submission took.
 *
 * A sbatch process costs more than the RPC that it makes; here one process makes many. Output: the microseconds of the
 * whole run, then one line for each job in the order of its worker.
 */
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SCRIPT_MAX 65536

typedef struct {
    long count, workers, every_ms;
    const char *name;
    char script[SCRIPT_MAX];
} plan_t;

static const char usage[] =
    "usage: gpuwaste-submit [option]... < SCRIPT submits held jobs and prints microseconds\n"
    "  --count N      jobs of each worker (1)\n"
    "  --workers N    processes that submit at once (1)\n"
    "  --every-ms MS  time from one submission of a worker to its next; 0: at once (0)\n"
    "  --name NAME    name of the jobs (bench)\n";

static long now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000L + t.tv_nsec / 1000;
}

static int submit(const plan_t *plan)
{
    static char *environment[] = {"PATH=/usr/bin:/bin", NULL};
    job_desc_msg_t job;
    submit_response_msg_t *answer = NULL;
    slurm_init_job_desc_msg(&job);
    job.name = (char *)plan->name;
    job.script = (char *)plan->script;
    job.work_dir = "/tmp";
    job.std_out = "/dev/null";
    job.environment = environment;
    job.env_size = 1;
    job.user_id = getuid();
    job.group_id = getgid();
    job.time_limit = 60;
    job.num_tasks = 1;
    job.min_nodes = 1;
    job.max_nodes = 1;
    job.cpus_per_task = 4;
    job.tres_per_node = "gres:gpu:4";
    job.priority = 0; /* held: it stays in memory and costs no node anything */
    if (slurm_submit_batch_job(&job, &answer) != SLURM_SUCCESS) return errno ? errno : -1;
    slurm_free_submit_response_response_msg(answer);
    return 0;
}

static void work(const plan_t *plan, long *took_us)
{
    long due = now_us();
    for (long i = 0; i < plan->count; i++) {
        for (long left; (left = due - now_us()) > 0;) usleep((useconds_t)(left < 500000 ? left : 500000));
        long began = now_us();
        int failed = submit(plan);
        if (failed) {
            fprintf(stderr, "gpuwaste-submit: job %ld: %s\n", i, slurm_strerror(failed));
            _exit(1);
        }
        took_us[i] = now_us() - began;
        due += plan->every_ms * 1000;
    }
    _exit(0);
}

static long positive(const char *text, const char *what, long low)
{
    char *end;
    long value = strtol(text, &end, 10);
    if (end == text || *end || value < low || value > 1000000) {
        fprintf(stderr, "gpuwaste-submit: %s: '%s' is not a number from %ld to 1000000\n", what, text, low);
        exit(2);
    }
    return value;
}

static void parse(int argc, char **argv, plan_t *plan)
{
    static const struct option options[] = {{"count", 1, 0, 'c'}, {"workers", 1, 0, 'w'}, {"every-ms", 1, 0, 'e'},
                                            {"name", 1, 0, 'n'},  {"help", 0, 0, 'h'},    {0, 0, 0, 0}};
    for (int o; (o = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch (o) {
        case 'c': plan->count = positive(optarg, "--count", 1); break;
        case 'w': plan->workers = positive(optarg, "--workers", 1); break;
        case 'e': plan->every_ms = positive(optarg, "--every-ms", 0); break;
        case 'n': plan->name = optarg; break;
        case 'h': fputs(usage, stdout); exit(0);
        default: fputs(usage, stderr); exit(2);
        }
    }
    size_t read = fread(plan->script, 1, SCRIPT_MAX - 1, stdin);
    plan->script[read] = 0;
    if (!read) strcpy(plan->script, "#!/bin/sh\n");
}

int main(int argc, char **argv)
{
    static plan_t plan = {.count = 1, .workers = 1, .every_ms = 0, .name = "bench"};
    parse(argc, argv, &plan);
    slurm_init(NULL);
    size_t jobs = (size_t)(plan.count * plan.workers);
    long *took_us = mmap(NULL, jobs * sizeof(long), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (took_us == MAP_FAILED) {
        perror("gpuwaste-submit: mmap");
        return 1;
    }
    long began = now_us();
    for (long w = 0; w < plan.workers; w++) {
        pid_t pid = fork();
        if (pid < 0) {
            perror("gpuwaste-submit: fork");
            return 1;
        }
        if (pid == 0) work(&plan, took_us + w * plan.count);
    }
    int failed = 0;
    for (int status; wait(&status) > 0;) failed |= status;
    if (failed) return 1;
    printf("%ld\n", now_us() - began);
    for (size_t i = 0; i < jobs; i++) printf("%ld\n", took_us[i]);
    return 0;
}
