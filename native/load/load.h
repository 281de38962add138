/* gpuwaste-load: plays a job's use of its GPUs on a simulated node, and logs what it did. */
#ifndef LOAD_H
#define LOAD_H

#include "sim_config.h"
#include "sim_state.h"

#define MAX_PHASES 64

typedef struct {
    double seconds, util_pct;
    int mem_mib, power_w; /* -1: derived from the GPU */
    double sm_ratio;      /* -1: the duty cycle's share */
} load_phase;

typedef struct {
    unsigned count;
    load_phase phase[MAX_PHASES];
} load_plan;

typedef struct {
    const char *gpus, *log_file;
    load_plan common;                /* --phase, for every GPU of the job ... */
    load_plan own[SIM_MAX_GPUS];     /* ... unless --per-gpu names its position */
    int has_own[SIM_MAX_GPUS];
    unsigned hidden[SIM_MAX_GPUS], hidden_count; /* positions whose process NVML does not list */
    double cpu_fraction, for_seconds;
    long host_mem_mib;
} load_options;

/* One GPU or MIG device of the job, and where it stands in its plan. */
typedef struct {
    const sim_gpu *gpu;
    const sim_mig *mig;
    const load_plan *plan;
    unsigned position, next_phase, flags;
    int64_t deadline_ns; /* end of the current phase */
    load_phase current;
    sim_segment *segment;
} load_gpu;

/* Print one line on standard error and exit with 2. */
void load_die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

void load_parse(int argc, char **argv, load_options *options);

/* Fill gpus with the devices that the job was given, in the job's order. Return how many. */
unsigned load_targets(const char *dir, const sim_config *config, const char *list, load_gpu *gpus);

/* The log: one JSON line a change, each a single write at the end of the file. */
void load_log_open(const char *file);
void load_log(const char *event, const load_gpu *gpu, int64_t mono_ns, int64_t utc_offset_ns);

void load_hold_memory(long mib);
void load_burn_cpu(double fraction);

#endif
