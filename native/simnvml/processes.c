/* Who holds a context on a GPU, in the three generations of the struct, and the accounting that PCP reads. */
#include "sim.h"

#include <string.h>

static sim_span span[SIM_SEGMENTS]; /* under the session's lock */

static int in_instance(const sim_span *s, const sim_mig *mig)
{
    return !mig || (s->gi == mig->gi && s->ci == mig->ci);
}

/* Fill at most room entries and return how many there are. */
static unsigned collect(const sim_target *t, nvmlProcessInfo_t *out, unsigned room)
{
    int64_t now = sim_mono_ns();
    size_t n = sim_spans(sim.shared, t->gpu->minor, now, now, span);
    unsigned found = 0;
    for (size_t i = 0; i < n; i++) {
        if (!span[i].live || span[i].flags & SIM_NO_PROCESS || !in_instance(&span[i], t->mig)) continue;
        if (found < room)
            out[found] = (nvmlProcessInfo_t){.pid = (unsigned)span[i].pid,
                .usedGpuMemory = (unsigned long long)span[i].mem_mib << 20, .gpuInstanceId = span[i].gi,
                .computeInstanceId = span[i].ci};
        found++;
    }
    return found;
}

/* The protocol of all process lists: too small an array is answered with the size that is needed. */
static nvmlReturn_t list(const char *function, nvmlDevice_t device, unsigned int *count, void *infos, int v1)
{
    static nvmlProcessInfo_t found[SIM_SEGMENTS];
    sim_target t;
    if (!count || (*count && !infos)) return NVML_ERROR_INVALID_ARGUMENT;
    nvmlReturn_t r = sim_enter_device(function, device, &t);
    if (r != NVML_SUCCESS) return r;
    unsigned room = *count, n = collect(&t, found, SIM_SEGMENTS);
    *count = n;
    if (n > room) return sim_leave(NVML_ERROR_INSUFFICIENT_SIZE);
    for (unsigned i = 0; i < n; i++) {
        if (v1) ((nvmlProcessInfo_v1_t *)infos)[i] = (nvmlProcessInfo_v1_t){found[i].pid, found[i].usedGpuMemory};
        else ((nvmlProcessInfo_t *)infos)[i] = found[i];
    }
    return sim_leave(NVML_SUCCESS);
}

/* What one process adds to the duty cycle of a cell. */
static unsigned cell_util_of(unsigned pid, size_t n, int64_t cell)
{
    static sim_span own[SIM_SEGMENTS]; /* under the session's lock */
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if ((unsigned)span[i].pid == pid) own[kept++] = span[i];
    double mean = sim_mean_util(own, kept, cell * SIM_CELL_NS, (cell + 1) * SIM_CELL_NS, SIM_NO_INSTANCE);
    return (unsigned)(mean + 0.5);
}

/* One sample of each process that NVML lists, of the newest complete cell; the driver has none with MIG. */
nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device, nvmlProcessUtilizationSample_t *samples,
                                             unsigned int *count, unsigned long long last_seen_us)
{
    static nvmlProcessInfo_t listed[SIM_SEGMENTS];
    sim_target t;
    if (!count) return NVML_ERROR_INVALID_ARGUMENT;
    nvmlReturn_t r = sim_enter_device(__func__, device, &t);
    if (r != NVML_SUCCESS) return r;
    if (t.mig || t.gpu->mig_enabled) return sim_leave(NVML_ERROR_NOT_SUPPORTED);
    unsigned room = samples ? *count : 0, found = collect(&t, listed, SIM_SEGMENTS);
    int64_t now = sim_mono_ns(), cell = now / SIM_CELL_NS - 1;
    unsigned long long at_us = (unsigned long long)((cell + 1) * SIM_CELL_NS + sim_utc_offset_ns(sim.shared)) / 1000;
    if (!found || at_us <= last_seen_us) return sim_leave(NVML_ERROR_NOT_FOUND);
    *count = found;
    if (found > room) return sim_leave(NVML_ERROR_INSUFFICIENT_SIZE);
    size_t n = sim_spans(sim.shared, t.gpu->minor, now, cell * SIM_CELL_NS, span);
    for (unsigned i = 0; i < found; i++)
        samples[i] = (nvmlProcessUtilizationSample_t){.pid = listed[i].pid, .timeStamp = at_us,
            .smUtil = cell_util_of(listed[i].pid, n, cell)};
    return sim_leave(NVML_SUCCESS);
}

/* No load program draws or runs under MPS. */
static nvmlReturn_t empty(const char *function, nvmlDevice_t device, unsigned int *count)
{
    sim_target t;
    if (!count) return NVML_ERROR_INVALID_ARGUMENT;
    nvmlReturn_t r = sim_enter_device(function, device, &t);
    if (r != NVML_SUCCESS) return r;
    *count = 0;
    return sim_leave(r);
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t d, unsigned int *count, nvmlProcessInfo_t *infos)
{
    return list(__func__, d, count, infos, 0);
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v2(nvmlDevice_t d, unsigned int *count, nvmlProcessInfo_v2_t *infos)
{
    return list(__func__, d, count, infos, 0);
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t d, unsigned int *count, nvmlProcessInfo_v1_t *infos)
{
    return list(__func__, d, count, infos, 1);
}

#define EMPTY_LIST(name, type)                                                                                         \
    nvmlReturn_t name(nvmlDevice_t d, unsigned int *count, type *infos)                                                \
    {                                                                                                                  \
        (void)infos;                                                                                                   \
        return empty(__func__, d, count);                                                                              \
    }

EMPTY_LIST(nvmlDeviceGetGraphicsRunningProcesses_v3, nvmlProcessInfo_t)
EMPTY_LIST(nvmlDeviceGetGraphicsRunningProcesses_v2, nvmlProcessInfo_v2_t)
EMPTY_LIST(nvmlDeviceGetGraphicsRunningProcesses, nvmlProcessInfo_v1_t)
EMPTY_LIST(nvmlDeviceGetMPSComputeRunningProcesses_v3, nvmlProcessInfo_t)
EMPTY_LIST(nvmlDeviceGetMPSComputeRunningProcesses_v2, nvmlProcessInfo_v2_t)
EMPTY_LIST(nvmlDeviceGetMPSComputeRunningProcesses, nvmlProcessInfo_v1_t)

nvmlReturn_t nvmlDeviceGetAccountingMode(nvmlDevice_t device, nvmlEnableState_t *mode)
{
    sim_target t;
    if (!mode) return NVML_ERROR_INVALID_ARGUMENT;
    nvmlReturn_t r = sim_enter_device(__func__, device, &t);
    if (r != NVML_SUCCESS) return r;
    *mode = NVML_FEATURE_DISABLED;
    return sim_leave(r);
}

/* The driver's settings belong to its administrator: a monitoring program may ask, and is refused. */
static nvmlReturn_t refused(const char *function, nvmlDevice_t device)
{
    sim_target t;
    nvmlReturn_t r = sim_enter_device(function, device, &t);
    return r != NVML_SUCCESS ? r : sim_leave(NVML_ERROR_NO_PERMISSION);
}

nvmlReturn_t nvmlDeviceSetAccountingMode(nvmlDevice_t device, nvmlEnableState_t mode)
{
    (void)mode;
    return refused(__func__, device);
}

nvmlReturn_t nvmlDeviceSetPersistenceMode(nvmlDevice_t device, nvmlEnableState_t mode)
{
    (void)mode;
    return refused(__func__, device);
}

nvmlReturn_t nvmlDeviceGetAccountingPids(nvmlDevice_t device, unsigned int *count, unsigned int *pids)
{
    (void)pids;
    return empty(__func__, device, count);
}

nvmlReturn_t nvmlDeviceGetAccountingStats(nvmlDevice_t device, unsigned int pid, nvmlAccountingStats_t *stats)
{
    sim_target t;
    (void)pid;
    if (!stats) return NVML_ERROR_INVALID_ARGUMENT;
    nvmlReturn_t r = sim_enter_device(__func__, device, &t);
    return r != NVML_SUCCESS ? r : sim_leave(NVML_ERROR_NOT_FOUND);
}

/* Data-centre boards have no fan. */
nvmlReturn_t nvmlDeviceGetFanSpeed(nvmlDevice_t device, unsigned int *speed)
{
    sim_target t;
    if (!speed) return NVML_ERROR_INVALID_ARGUMENT;
    nvmlReturn_t r = sim_enter_device(__func__, device, &t);
    return r != NVML_SUCCESS ? r : sim_leave(NVML_ERROR_NOT_SUPPORTED);
}

nvmlReturn_t nvmlDeviceGetFanSpeed_v2(nvmlDevice_t device, unsigned int fan, unsigned int *speed)
{
    (void)fan;
    return nvmlDeviceGetFanSpeed(device, speed);
}
