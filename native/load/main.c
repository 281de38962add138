/* Plays each GPU's phases in sequence on the steady clock; a job suspended by Slurm goes on where it stopped. */
#include "load.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t stopping, continued;
static sim_shared *shared;
static load_gpu gpus[SIM_MAX_GPUS];
static unsigned gpu_count;
static uint64_t own_ticks;

static void on_signal(int signal_number)
{
    if (signal_number == SIGCONT) continued = 1;
    else stopping = 1;
}

static void catch_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGCONT, &action, NULL);
}

/* Publish the GPU's current activity from the moment at_ns on. */
static void open_segment(load_gpu *g, int64_t at_ns)
{
    sim_segment values = {.t0_ns = at_ns, .start_ticks = own_ticks, .pid = (int32_t)getpid(), .flags = g->flags,
        .gi = g->mig ? g->mig->gi : SIM_NO_INSTANCE, .ci = g->mig ? g->mig->ci : SIM_NO_INSTANCE,
        .mem_mib = (uint32_t)g->current.mem_mib, .power_mw = (uint32_t)g->current.power_w * 1000,
        .util_pct = (float)g->current.util_pct, .sm_ratio = (float)g->current.sm_ratio};
    g->segment = sim_segment_open(shared, g->gpu->minor, g->gpu->idle_mw, &values);
    if (!g->segment) load_die("no room for the activity of GPU %s", g->gpu->uuid);
}

static void close_segment(load_gpu *g, int64_t at_ns)
{
    if (g->segment) atomic_store(&g->segment->t1_ns, at_ns);
    g->segment = NULL;
}

/* Fill in what the phase left open. */
static load_phase resolved(const load_gpu *g, load_phase p)
{
    if (p.mem_mib < 0) p.mem_mib = g->next_phase ? g->current.mem_mib : 512; /* a process keeps what it holds */
    if (p.sm_ratio < 0) p.sm_ratio = p.util_pct / 100;
    if (p.power_w < 0) {
        double idle = g->gpu->idle_mw / 1000.0, limit = g->gpu->power_limit_mw / 1000.0;
        p.power_w = (int)(idle + 0.9 * (limit - idle) * p.util_pct / 100);
    }
    return p;
}

/* Go to the next phase; after the last one the GPU idles with its memory still held, as a live process does. */
static void next_phase(load_gpu *g, int64_t at_ns)
{
    int64_t offset = sim_utc_offset_ns(shared);
    const char *event = g->next_phase ? "phase" : "start";
    if (g->next_phase < g->plan->count) {
        load_phase p = g->plan->phase[g->next_phase];
        g->current = resolved(g, p);
        g->deadline_ns = at_ns + (int64_t)(p.seconds * 1e9);
    } else {
        load_phase idle = {.util_pct = 0, .mem_mib = g->current.mem_mib, .power_w = -1, .sm_ratio = 0};
        g->current = resolved(g, idle);
        g->deadline_ns = INT64_MAX;
    }
    g->next_phase++;
    close_segment(g, at_ns);
    open_segment(g, at_ns);
    load_log(event, g, at_ns, offset);
}

static int finished(const load_gpu *g)
{
    return g->next_phase > g->plan->count;
}

/* After a stop: end the activity at the last beat, begin it again now, and move the phase's end by the pause. */
static void resume(int64_t *last_beat_ns, int64_t *until_ns)
{
    int64_t now = sim_mono_ns(), pause = now - *last_beat_ns;
    int64_t offset = gpu_count ? sim_utc_offset_ns(shared) : 0;
    for (unsigned i = 0; i < gpu_count; i++) {
        load_gpu *g = &gpus[i];
        if (!g->segment) continue;
        close_segment(g, *last_beat_ns);
        load_log("suspend", g, *last_beat_ns, offset);
        open_segment(g, now);
        load_log("resume", g, now, offset);
        if (g->deadline_ns != INT64_MAX) g->deadline_ns += pause;
    }
    *until_ns += pause;
    *last_beat_ns = now;
}

/* One turn: beat, and begin the phases that are due. Return when to wake next. */
static int64_t turn(int64_t now_ns, int64_t until_ns, int *running)
{
    int64_t wake = now_ns + SIM_BEAT_NS;
    *running = now_ns < until_ns;
    for (unsigned i = 0; i < gpu_count; i++) {
        load_gpu *g = &gpus[i];
        if (!g->plan) continue;
        while (g->deadline_ns <= now_ns) next_phase(g, g->deadline_ns);
        atomic_store(&g->segment->beat_ns, now_ns);
        if (g->deadline_ns < wake) wake = g->deadline_ns;
        *running |= !finished(g);
    }
    return until_ns > now_ns && until_ns < wake ? until_ns : wake;
}

static void play(double for_seconds)
{
    int64_t start = sim_mono_ns(), beat = start, until = start + (int64_t)(for_seconds * 1e9);
    for (unsigned i = 0; i < gpu_count; i++)
        if (gpus[i].plan) next_phase(&gpus[i], start);
    for (int running = 1; running && !stopping;) {
        int64_t now = sim_mono_ns(); /* read before the flag: a stop in between leaves a time from before it */
        if (continued) {
            continued = 0;
            resume(&beat, &until);
            continue;
        }
        beat = now;
        int64_t wait = turn(beat, until, &running) - sim_mono_ns();
        if (wait > 0 && running) nanosleep(&(struct timespec){wait / 1000000000, wait % 1000000000}, NULL);
    }
    if (continued) resume(&beat, &until); /* continued only to be ended, as scancel does */
    int64_t end = sim_mono_ns(), offset = gpu_count ? sim_utc_offset_ns(shared) : 0;
    for (unsigned i = 0; i < gpu_count; i++) {
        if (!gpus[i].segment) continue;
        close_segment(&gpus[i], end);
        load_log("end", &gpus[i], end, offset);
    }
}

static void assign_plans(const load_options *o)
{
    for (unsigned i = 0; i < gpu_count; i++) {
        gpus[i].plan = o->has_own[i] ? &o->own[i] : &o->common;
        if (!gpus[i].plan->count) gpus[i].plan = NULL; /* stays untouched */
        for (unsigned k = 0; k < o->hidden_count; k++)
            if (o->hidden[k] == i) gpus[i].flags |= SIM_NO_PROCESS;
    }
}

static void open_node(const load_options *o)
{
    static sim_config config;
    char error[SIM_PATH + 128];
    const char *dir = getenv("GPUWASTE_SIM_DIR");
    int wanted = o->common.count || (o->gpus && strcmp(o->gpus, "none"));
    if ((!dir || !*dir) && !wanted) return; /* a job on a node without GPUs */
    if (!dir || !*dir) load_die("GPUWASTE_SIM_DIR is not set: it names the simulated node's state directory");
    if (sim_config_read(dir, &config, error, sizeof error)) load_die("%s", error);
    shared = sim_state_open(dir);
    if (!shared) load_die("%s/activity.bin: %s", dir, strerror(errno));
    gpu_count = load_targets(dir, &config, o->gpus, gpus);
    if (wanted && !gpu_count) load_die("this job was given no GPU: set GPUWASTE_SIM_MINORS or use --gpus");
}

int main(int argc, char **argv)
{
    static load_options options;
    load_parse(argc, argv, &options);
    own_ticks = sim_start_ticks(getpid());
    open_node(&options);
    assign_plans(&options);
    load_log_open(options.log_file);
    catch_signals();
    load_hold_memory(options.host_mem_mib);
    load_burn_cpu(options.cpu_fraction);
    play(options.for_seconds);
    return 0;
}
