/* The session of a simulated AMD library, and what its devices do. */
#include "sim_amd.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define CELL_NS 166666667ll /* over how long a device's percentage is a mean */

sim_config amd_config;
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
        fprintf(stderr, "simulated AMD library: %s\n", error);
        return -1;
    }
    amd_config = next;
    if (!amd_config.amdsmi) amd_config.amdsmi = 26;
    if (!amd_config.amdsmi_major) amd_config.amdsmi_major = 7;
    config_seen = st;
    return 0;
}

static void wait_latency(const char *uuid, const char *function)
{
    int64_t start = sim_mono_ns();
    for (;;) {
        int64_t wait = (int64_t)sim_fault_delay_ms(uuid, function) * 1000000;
        if (!wait) wait = (int64_t)amd_config.latency_us * 1000;
        wait -= sim_mono_ns() - start;
        if (wait <= 0) return;
        pthread_mutex_unlock(&lock);
        sleep_ns(wait < 50000000 ? wait : 50000000);
        pthread_mutex_lock(&lock);
        sim_faults_refresh(dir);
    }
}

static amd_result first_open(void)
{
    const char *named = getenv("GPUWASTE_SIM_DIR");
    if (!named || !*named) return AMD_NO_DRIVER;
    snprintf(dir, sizeof dir, "%s", named);
    memset(&config_seen, 0, sizeof config_seen);
    sim_faults_refresh(dir);
    if (sim_fault_driver_gone() || refresh_config()) return AMD_NO_DRIVER;
    shared = sim_state_open(dir);
    return shared ? AMD_OK : AMD_NO_DRIVER;
}

amd_result amd_open(const char *function)
{
    pthread_mutex_lock(&lock);
    amd_result result = init_count ? AMD_OK : first_open();
    if (result == AMD_OK) {
        init_count++;
        wait_latency(NULL, function);
    }
    pthread_mutex_unlock(&lock);
    return result;
}

amd_result amd_close(void)
{
    pthread_mutex_lock(&lock);
    amd_result result = init_count ? AMD_OK : AMD_NOT_INIT;
    if (init_count && !--init_count) {
        sim_state_close(shared);
        shared = NULL;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

static uint32_t list(amd_device *out)
{
    uint32_t n = 0;
    for (unsigned i = 0; i < amd_config.gpu_count; i++) {
        const sim_gpu *gpu = &amd_config.gpu[i];
        if (!sim_is(gpu, "amd") || sim_fault_device(gpu->uuid, "gone")) continue;
        if (!gpu->mig_enabled && n < AMD_MAX_DEVICES) out[n++] = (amd_device){gpu, NULL};
        for (unsigned k = 0; gpu->mig_enabled && k < gpu->mig_count && n < AMD_MAX_DEVICES; k++)
            out[n++] = (amd_device){gpu, &gpu->mig[k]};
    }
    return n;
}

uint32_t amd_count(void)
{
    amd_device devices[AMD_MAX_DEVICES];
    return list(devices);
}

static amd_result begin(const char *function, uint32_t index, amd_device *device, unsigned long long *code)
{
    amd_device devices[AMD_MAX_DEVICES];
    if (!init_count) return AMD_NOT_INIT;
    sim_faults_refresh(dir);
    uint32_t n = list(devices);
    if (device && index >= n) return AMD_INVALID;
    const char *uuid = device ? devices[index].gpu->uuid : NULL;
    wait_latency(uuid, function);
    if (!init_count) return AMD_NOT_INIT;
    if (sim_fault_driver_gone()) return AMD_NO_DRIVER;
    refresh_config(); /* a broken file keeps the last good layout */
    n = list(devices);
    if (device && index >= n) return AMD_INVALID;
    if (device) *device = devices[index];
    if (device && sim_fault_device(device->gpu->uuid, "lost")) return AMD_NOT_FOUND;
    *code = sim_fault_error(device ? device->gpu->uuid : NULL, function);
    return *code ? AMD_FAULT : AMD_OK;
}

amd_result amd_enter(const char *function, uint32_t index, amd_device *device, unsigned long long *code)
{
    pthread_mutex_lock(&lock);
    amd_result result = begin(function, index, device, code);
    if (result != AMD_OK) pthread_mutex_unlock(&lock);
    return result;
}

void amd_leave(void)
{
    pthread_mutex_unlock(&lock);
}

static uint32_t instance(const amd_device *device)
{
    return device->part ? device->part->gi : SIM_NO_INSTANCE;
}

unsigned amd_busy_pct(const amd_device *device)
{
    int64_t now = sim_mono_ns(), cell = now / CELL_NS - 1;
    size_t n = sim_spans(shared, device->gpu->minor, now, cell * CELL_NS, span);
    return (unsigned)(sim_mean_util(span, n, cell * CELL_NS, (cell + 1) * CELL_NS, instance(device)) + 0.5);
}

uint64_t amd_used_b(const amd_device *device)
{
    int64_t now = sim_mono_ns();
    size_t n = sim_spans(shared, device->gpu->minor, now, now, span);
    uint64_t mib = 0;
    for (size_t i = 0; i < n; i++)
        if (span[i].live && (!device->part || span[i].gi == device->part->gi)) mib += span[i].mem_mib;
    uint64_t used = mib << 20, total = amd_total_b(device);
    return used < total ? used : total;
}

uint64_t amd_total_b(const amd_device *device)
{
    return (uint64_t)(device->part ? device->part->memory_mib : device->gpu->memory_mib) << 20;
}

unsigned amd_power_w(const amd_device *device)
{
    const sim_gpu *gpu = device->gpu;
    int64_t now = sim_mono_ns();
    size_t n = sim_spans(shared, gpu->minor, now, now - 1, span);
    unsigned mw = gpu->idle_mw;
    for (size_t i = 0; i < n; i++)
        if (span[i].t1_ns == now && span[i].power_mw > gpu->idle_mw) mw += span[i].power_mw - gpu->idle_mw;
    return (mw > gpu->power_limit_mw ? gpu->power_limit_mw : mw) / 1000;
}

uint64_t amd_energy_uj(const amd_device *device)
{
    return sim_energy_mj(shared, device->gpu->minor, device->gpu->idle_mw, sim_mono_ns()) * 1000;
}

static void note(amd_process *out, unsigned room, unsigned *n, const sim_span *s, uint32_t index)
{
    unsigned at = 0;
    while (at < *n && at < room && out[at].pid != (uint32_t)s->pid) at++;
    if (at >= room) {
        ++*n;
        return;
    }
    if (at == *n) out[(*n)++] = (amd_process){.pid = (uint32_t)s->pid};
    out[at].vram_b += (uint64_t)s->mem_mib << 20;
    out[at].devices |= 1ull << index;
}

unsigned amd_processes(amd_process *out, unsigned room)
{
    amd_device devices[AMD_MAX_DEVICES];
    uint32_t count = list(devices);
    unsigned found = 0;
    int64_t now = sim_mono_ns();
    for (uint32_t i = 0; i < count; i++) {
        size_t n = sim_spans(shared, devices[i].gpu->minor, now, now, span);
        for (size_t k = 0; k < n; k++) {
            if (!span[k].live || span[k].flags & SIM_NO_PROCESS) continue;
            if (devices[i].part && span[k].gi != devices[i].part->gi) continue;
            note(out, room, &found, &span[k], i);
        }
    }
    return found;
}

int amd_devices_of(uint32_t pid, uint32_t *out, uint32_t room)
{
    static amd_process found[SIM_SEGMENTS];
    unsigned n = amd_processes(found, SIM_SEGMENTS), at = 0;
    int count = 0;
    while (at < n && found[at].pid != pid) at++;
    if (at == n) return -1;
    for (uint32_t i = 0; i < AMD_MAX_DEVICES; i++) {
        if (!(found[at].devices >> i & 1)) continue;
        if (out && (uint32_t)count < room) out[count] = i;
        count++;
    }
    return count;
}

uint64_t amd_bdf(const amd_device *device)
{
    unsigned domain = 0, bus = 0, slot = 0, function = 0;
    sscanf(device->gpu->pci, "%x:%x:%x.%x", &domain, &bus, &slot, &function);
    uint64_t partition = device->part ? device->part->gi : 0;
    return (uint64_t)domain << 32 | partition << 28 | (uint64_t)bus << 8 | (uint64_t)slot << 3 | function;
}

const char *amd_mode(const amd_device *device)
{
    return device->part ? "CPX" : "SPX";
}
