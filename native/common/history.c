/* Reads the rings: spans, means and energy. */
#include "sim_state.h"

#include <string.h>

/* Say up to when an open segment is known to have run. */
static int64_t open_end(sim_segment *s, int64_t beat_ns, int64_t now_ns, int *live)
{
    sim_process_state state = sim_process(s->pid, s->start_ticks);
    *live = state != SIM_PROCESS_DEAD;
    /* Between SIGCONT and the writer's next step the process runs and the segment still spans the stop. */
    if (state == SIM_PROCESS_STOPPED) atomic_store(&s->frozen, 1);
    if (state == SIM_PROCESS_RUNNING && !atomic_load(&s->frozen) && now_ns - beat_ns < SIM_STALE_NS) return now_ns;
    return beat_ns;
}

size_t sim_spans(sim_shared *shared, unsigned minor, int64_t now_ns, int64_t since_ns, sim_span *out)
{
    sim_ring *ring = &shared->ring[minor];
    uint64_t head = atomic_load(&ring->head);
    size_t used = head < SIM_SEGMENTS ? (size_t)head : SIM_SEGMENTS, n = 0;
    for (size_t i = 0; i < used; i++) {
        sim_segment *s = &ring->segment[i];
        uint64_t generation = atomic_load(&s->generation);
        if (!generation) continue;
        sim_segment copy;
        memcpy(&copy, s, sizeof copy);
        if (atomic_load(&s->generation) != generation) continue; /* replaced while it was copied */
        int64_t t1 = atomic_load(&copy.t1_ns);
        int live = 0;
        if (t1 && t1 <= since_ns) continue;
        if (!t1) t1 = open_end(s, atomic_load(&copy.beat_ns), now_ns, &live);
        if (t1 <= since_ns && !live) continue;
        out[n++] = (sim_span){.t0_ns = copy.t0_ns, .t1_ns = t1, .live = live, .pid = copy.pid, .gi = copy.gi,
            .ci = copy.ci, .flags = copy.flags, .mem_mib = copy.mem_mib, .power_mw = copy.power_mw,
            .util_pct = copy.util_pct, .sm_ratio = copy.sm_ratio};
    }
    return n;
}

static int64_t overlap_ns(const sim_span *s, int64_t t0_ns, int64_t t1_ns)
{
    int64_t from = s->t0_ns > t0_ns ? s->t0_ns : t0_ns, to = s->t1_ns < t1_ns ? s->t1_ns : t1_ns;
    return to > from ? to - from : 0;
}

static int counts(const sim_span *s, uint32_t gi)
{
    return gi == SIM_NO_INSTANCE || s->gi == gi;
}

double sim_mean_util(const sim_span *span, size_t n, int64_t t0_ns, int64_t t1_ns, uint32_t gi)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        if (counts(&span[i], gi)) sum += (double)span[i].util_pct * (double)overlap_ns(&span[i], t0_ns, t1_ns);
    double mean = t1_ns > t0_ns ? sum / (double)(t1_ns - t0_ns) : 0;
    return mean > 100 ? 100 : mean; /* several processes share one duty cycle */
}

double sim_mean_sm(const sim_span *span, size_t n, int64_t t0_ns, int64_t t1_ns, uint32_t gi)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        if (counts(&span[i], gi)) sum += (double)span[i].sm_ratio * (double)overlap_ns(&span[i], t0_ns, t1_ns);
    double mean = t1_ns > t0_ns ? sum / (double)(t1_ns - t0_ns) : 0;
    return mean > 1 ? 1 : mean;
}

uint64_t sim_energy_mj(sim_shared *shared, unsigned minor, unsigned idle_mw, int64_t now_ns)
{
    static _Thread_local sim_span span[SIM_SEGMENTS];
    sim_ring *ring = &shared->ring[minor];
    size_t n = sim_spans(shared, minor, now_ns, shared->created_ns, span);
    double uj = (double)atomic_load(&ring->evicted_energy_uj);
    uj += (double)idle_mw * (double)(now_ns - shared->created_ns) * 1e-6;
    for (size_t i = 0; i < n; i++)
        if (span[i].power_mw > idle_mw)
            uj += (double)(span[i].power_mw - idle_mw) * (double)(span[i].t1_ns - span[i].t0_ns) * 1e-6;
    uint64_t now_uj = (uint64_t)uj, seen = atomic_load(&ring->reported_energy_uj);
    while (seen < now_uj && !atomic_compare_exchange_weak(&ring->reported_energy_uj, &seen, now_uj)) {
    }
    return (seen > now_uj ? seen : now_uj) / 1000;
}
