/* The moving side of a simulated node: who uses which GPU since when, in DIR/activity.bin, mapped by every program.
 *
 * Each change of a load program's activity is one segment in its GPU's ring. Nothing locks: a segment is published
 * by its generation word last, so a writer that is killed or stopped half-way leaves a slot that readers skip. A
 * writer beats while it runs; a segment left open by a dead or stopped process ends at its last beat. */
#ifndef SIM_STATE_H
#define SIM_STATE_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "sim_config.h"

#define SIM_STATE_MAGIC 0x3130304d49535747ull
#define SIM_STATE_VERSION 2u
#define SIM_SEGMENTS 512
#define SIM_BEAT_NS 100000000ll   /* how often a running load program beats */
#define SIM_STALE_NS 2000000000ll /* a beat this old means that the process does not run, whatever /proc says */
#define SIM_NO_PROCESS 1u         /* flag: the activity belongs to no listed process */

typedef struct {
    _Atomic uint64_t generation; /* 0: not valid; else 1 + the position in the ring's history */
    int64_t t0_ns;               /* CLOCK_MONOTONIC */
    _Atomic int64_t t1_ns;       /* 0 while the segment is open */
    _Atomic int64_t beat_ns;
    _Atomic int32_t frozen; /* a reader saw the process stopped: nothing counts after the beat, whatever comes later */
    uint64_t start_ticks; /* field 22 of /proc/PID/stat: tells a process from a later one of the same pid */
    int32_t pid;
    uint32_t gi, ci; /* SIM_NO_INSTANCE for a whole GPU */
    uint32_t flags;
    uint32_t mem_mib, power_mw; /* power of the whole board in this activity */
    float util_pct;             /* duty cycle, 0..100 */
    float sm_ratio;             /* share of the SMs busy, 0..1 */
} sim_segment;

typedef struct {
    _Atomic uint64_t head;              /* segments ever opened */
    _Atomic uint64_t evicted_energy_uj; /* energy above idle of segments that left the ring */
    _Atomic uint64_t reported_energy_uj; /* the counter never runs backwards */
    sim_segment segment[SIM_SEGMENTS];
} sim_ring;

typedef struct {
    uint64_t magic;
    uint32_t version, segments;
    int64_t created_ns;            /* CLOCK_MONOTONIC of the file's creation */
    _Atomic int64_t utc_offset_ns; /* CLOCK_REALTIME - CLOCK_MONOTONIC, kept still so that timestamps do not jitter */
    sim_ring ring[SIM_MAX_GPUS];   /* by minor number */
} sim_shared;

/* A segment as a reader sees it now: closed, or cut at the moment up to which it is known to have run. */
typedef struct {
    int64_t t0_ns, t1_ns;
    int live; /* the process exists (perhaps stopped) and the segment is open */
    int pid;
    uint32_t gi, ci, flags, mem_mib, power_mw;
    float util_pct, sm_ratio;
} sim_span;

typedef enum { SIM_PROCESS_DEAD, SIM_PROCESS_STOPPED, SIM_PROCESS_RUNNING } sim_process_state;

/* Map DIR/activity.bin, created when absent. Return NULL with errno set. */
sim_shared *sim_state_open(const char *dir);
void sim_state_close(sim_shared *shared);

int64_t sim_mono_ns(void);
/* Return the still offset; it follows the wall clock only over steps of 50 ms and more. */
int64_t sim_utc_offset_ns(sim_shared *shared);

uint64_t sim_start_ticks(pid_t pid);
sim_process_state sim_process(pid_t pid, uint64_t start_ticks);

/* Publish a copy of values as an open segment of the GPU; return it, to beat and to close. */
sim_segment *sim_segment_open(sim_shared *shared, unsigned minor, unsigned idle_mw, const sim_segment *values);

/* Collect the spans of a GPU that reach past since_ns. Return how many. */
size_t sim_spans(sim_shared *shared, unsigned minor, int64_t now_ns, int64_t since_ns, sim_span *out);

/* Means over [t0, t1) of what spans say; gi filters unless it is SIM_NO_INSTANCE. */
double sim_mean_util(const sim_span *span, size_t n, int64_t t0_ns, int64_t t1_ns, uint32_t gi);
double sim_mean_sm(const sim_span *span, size_t n, int64_t t0_ns, int64_t t1_ns, uint32_t gi);

/* Energy since the file's creation in mJ: idle power plus what the spans add. */
uint64_t sim_energy_mj(sim_shared *shared, unsigned minor, unsigned idle_mw, int64_t now_ns);

#endif
