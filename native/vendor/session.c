/* The session of a simulated vendor library, and what its devices do. */
#include "vendor.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define CELL_NS 166666667ll /* over how long a device's percentage is a mean */

sim_config vendor_config;
static char dir[SIM_PATH];
static sim_shared *shared;
static unsigned init_count;
static struct stat config_seen;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static sim_span span[SIM_SEGMENTS]; /* under the lock */

static void sleep_ns(int64_t ns)
{
    struct timespec t = {ns / 1000000000, ns % 1000000000};
    nanosleep(&t, NULL);
}

static int refresh_config(void)
{
    static sim_config next; /* too large for a caller's stack; the lock is held */
    char path[SIM_PATH + 16], error[SIM_PATH + 128];
    struct stat st;
    snprintf(path, sizeof path, "%s/devices.conf", dir);
    if (stat(path, &st)) return -1;
    if (st.st_ino == config_seen.st_ino && st.st_mtim.tv_sec == config_seen.st_mtim.tv_sec &&
        st.st_mtim.tv_nsec == config_seen.st_mtim.tv_nsec)
        return 0;
    if (sim_config_read(dir, &next, error, sizeof error)) {
        fprintf(stderr, "simulated library of %s GPUs: %s\n", vendor.name, error);
        return -1;
    }
    vendor_config = next;
    config_seen = st;
    return 0;
}

static void wait_latency(const char *uuid, const char *function)
{
    int64_t start = sim_mono_ns();
    for (;;) {
        int64_t wait = (int64_t)sim_fault_delay_ms(uuid, function) * 1000000;
        if (!wait) wait = (int64_t)vendor_config.latency_us * 1000;
        wait -= sim_mono_ns() - start;
        if (wait <= 0) return;
        pthread_mutex_unlock(&lock);
        sleep_ns(wait < 50000000 ? wait : 50000000);
        pthread_mutex_lock(&lock);
        sim_faults_refresh(dir);
    }
}

static vendor_result first_open(void)
{
    const char *named = getenv("GPUWASTE_SIM_DIR");
    if (!named || !*named) return VENDOR_NO_DRIVER;
    snprintf(dir, sizeof dir, "%s", named);
    memset(&config_seen, 0, sizeof config_seen);
    sim_faults_refresh(dir);
    if (sim_fault_driver_gone() || refresh_config()) return VENDOR_NO_DRIVER;
    shared = sim_state_open(dir);
    return shared ? VENDOR_OK : VENDOR_NO_DRIVER;
}

vendor_result vendor_open(const char *function)
{
    pthread_mutex_lock(&lock);
    vendor_result result = init_count ? VENDOR_OK : first_open();
    if (result == VENDOR_OK) {
        init_count++;
        wait_latency(NULL, function);
    }
    pthread_mutex_unlock(&lock);
    return result;
}

vendor_result vendor_close(void)
{
    pthread_mutex_lock(&lock);
    vendor_result result = init_count ? VENDOR_OK : VENDOR_NOT_INIT;
    if (init_count && !--init_count) {
        sim_state_close(shared);
        shared = NULL;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

static uint32_t list(vendor_device *out)
{
    uint32_t n = 0;
    for (unsigned i = 0; i < vendor_config.gpu_count; i++) {
        const sim_gpu *gpu = &vendor_config.gpu[i];
        if (!sim_is(gpu, vendor.name) || sim_fault_device(gpu->uuid, "gone")) continue;
        int cut = vendor.lists_parts && gpu->mig_enabled;
        if (!cut && n < VENDOR_MAX_DEVICES) out[n++] = (vendor_device){gpu, NULL};
        for (unsigned k = 0; cut && k < gpu->mig_count && n < VENDOR_MAX_DEVICES; k++)
            out[n++] = (vendor_device){gpu, &gpu->mig[k]};
    }
    return n;
}

uint32_t vendor_count(void)
{
    vendor_device devices[VENDOR_MAX_DEVICES];
    return list(devices);
}

static vendor_result begin(const char *function, uint32_t index, vendor_device *device, unsigned long long *code)
{
    vendor_device devices[VENDOR_MAX_DEVICES];
    if (!init_count) return VENDOR_NOT_INIT;
    sim_faults_refresh(dir);
    uint32_t n = list(devices);
    if (device && index >= n) return VENDOR_INVALID;
    const char *uuid = device ? devices[index].gpu->uuid : NULL;
    wait_latency(uuid, function);
    if (!init_count) return VENDOR_NOT_INIT;
    if (sim_fault_driver_gone()) return VENDOR_NO_DRIVER;
    refresh_config(); /* a broken file keeps the last good layout */
    n = list(devices);
    if (device && index >= n) return VENDOR_INVALID;
    if (device) *device = devices[index];
    if (device && sim_fault_device(device->gpu->uuid, "lost")) return VENDOR_NOT_FOUND;
    *code = sim_fault_error(device ? device->gpu->uuid : NULL, function);
    return *code ? VENDOR_FAULT : VENDOR_OK;
}

vendor_result vendor_enter(const char *function, uint32_t index, vendor_device *device, unsigned long long *code)
{
    pthread_mutex_lock(&lock);
    vendor_result result = begin(function, index, device, code);
    if (result != VENDOR_OK) pthread_mutex_unlock(&lock);
    return result;
}

void vendor_leave(void)
{
    pthread_mutex_unlock(&lock);
}

/* Tell whether a span runs on the device; what uses a whole GPU runs on each part of it. */
static int runs_on(const sim_span *s, const vendor_device *device)
{
    return !device->part || s->gi == device->part->gi || s->gi == SIM_NO_INSTANCE;
}

double vendor_mean_pct(const vendor_device *device, int64_t t0_ns, int64_t t1_ns)
{
    size_t n = sim_spans(shared, device->gpu->minor, sim_mono_ns(), t0_ns, span), kept = 0;
    for (size_t i = 0; i < n; i++)
        if (runs_on(&span[i], device)) span[kept++] = span[i];
    return sim_mean_util(span, kept, t0_ns, t1_ns, SIM_NO_INSTANCE);
}

unsigned vendor_busy_pct(const vendor_device *device)
{
    int64_t cell = sim_mono_ns() / CELL_NS - 1;
    return (unsigned)(vendor_mean_pct(device, cell * CELL_NS, (cell + 1) * CELL_NS) + 0.5);
}

uint64_t vendor_used_b(const vendor_device *device)
{
    int64_t now = sim_mono_ns();
    size_t n = sim_spans(shared, device->gpu->minor, now, now, span);
    uint64_t mib = 0;
    for (size_t i = 0; i < n; i++) {
        int spread = device->part && span[i].gi == SIM_NO_INSTANCE; /* evenly over the parts */
        if (span[i].live && runs_on(&span[i], device)) mib += span[i].mem_mib / (spread ? device->gpu->mig_count : 1);
    }
    uint64_t used = mib << 20, total = vendor_total_b(device);
    return used < total ? used : total;
}

uint64_t vendor_total_b(const vendor_device *device)
{
    return (uint64_t)(device->part ? device->part->memory_mib : device->gpu->memory_mib) << 20;
}

unsigned vendor_power_w(const vendor_device *device)
{
    const sim_gpu *gpu = device->gpu;
    int64_t now = sim_mono_ns();
    size_t n = sim_spans(shared, gpu->minor, now, now - 1, span);
    unsigned mw = gpu->idle_mw;
    for (size_t i = 0; i < n; i++)
        if (span[i].t1_ns == now && span[i].power_mw > gpu->idle_mw) mw += span[i].power_mw - gpu->idle_mw;
    return (mw > gpu->power_limit_mw ? gpu->power_limit_mw : mw) / 1000;
}

uint64_t vendor_energy_uj(const vendor_device *device, int64_t now_ns)
{
    return sim_energy_mj(shared, device->gpu->minor, device->gpu->idle_mw, now_ns) * 1000;
}

static void note(vendor_process *out, unsigned room, unsigned *n, const sim_span *s, uint32_t index)
{
    unsigned at = 0;
    while (at < *n && at < room && out[at].pid != (uint32_t)s->pid) at++;
    if (at >= room) {
        ++*n;
        return;
    }
    if (at == *n) out[(*n)++] = (vendor_process){.pid = (uint32_t)s->pid};
    out[at].vram_b += (uint64_t)s->mem_mib << 20;
    out[at].devices |= 1ull << index;
}

unsigned vendor_processes(vendor_process *out, unsigned room)
{
    vendor_device devices[VENDOR_MAX_DEVICES];
    uint32_t count = list(devices);
    unsigned found = 0;
    int64_t now = sim_mono_ns();
    for (uint32_t i = 0; i < count; i++) {
        size_t n = sim_spans(shared, devices[i].gpu->minor, now, now, span);
        for (size_t k = 0; k < n; k++) {
            if (!span[k].live || span[k].flags & SIM_NO_PROCESS) continue;
            if (!runs_on(&span[k], &devices[i])) continue;
            note(out, room, &found, &span[k], i);
        }
    }
    return found;
}

int vendor_devices_of(uint32_t pid, uint32_t *out, uint32_t room)
{
    static vendor_process found[SIM_SEGMENTS];
    unsigned n = vendor_processes(found, SIM_SEGMENTS), at = 0;
    int count = 0;
    while (at < n && found[at].pid != pid) at++;
    if (at == n) return -1;
    for (uint32_t i = 0; i < VENDOR_MAX_DEVICES; i++) {
        if (!(found[at].devices >> i & 1)) continue;
        if (out && (uint32_t)count < room) out[count] = i;
        count++;
    }
    return count;
}
