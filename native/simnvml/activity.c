/* What a GPU does: utilization, samples, memory, power, energy, processes. */
#include "sim.h"

#include <stdlib.h>
#include <string.h>

#define SAMPLE_BUFFER 120 /* the driver keeps about 20 s */

static sim_span span[SIM_SEGMENTS]; /* under the session's lock */

static unsigned rounded(double value)
{
    return (unsigned)(value + 0.5);
}

/* The duty cycle counts for whole GPUs alone: with MIG neither the parent nor an instance has one. */
static int has_duty_cycle(const sim_target *t)
{
    return !t->mig && !t->gpu->mig_enabled;
}

static unsigned cell_util(size_t n, int64_t cell)
{
    return rounded(sim_mean_util(span, n, cell * SIM_CELL_NS, (cell + 1) * SIM_CELL_NS, SIM_NO_INSTANCE));
}

nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *utilization)
{
    sim_target t;
    if (!utilization) return NVML_ERROR_INVALID_ARGUMENT;
    nvmlReturn_t r = sim_enter_device(__func__, device, &t);
    if (r != NVML_SUCCESS) return r;
    if (!has_duty_cycle(&t)) return sim_leave(NVML_ERROR_NOT_SUPPORTED);
    int64_t now = sim_mono_ns(), cell = now / SIM_CELL_NS - 1;
    size_t n = sim_spans(sim.shared, t.gpu->minor, now, cell * SIM_CELL_NS, span);
    utilization->gpu = cell_util(n, cell);
    utilization->memory = utilization->gpu / 2;
    return sim_leave(r);
}

/* Fill samples with the grid's complete cells that are newer than last_seen_us; return how many. */
static unsigned fill_samples(const sim_gpu *gpu, unsigned long long last_seen_us, unsigned room, nvmlSample_t *samples)
{
    int64_t now = sim_mono_ns(), offset = sim_utc_offset_ns(sim.shared), newest = now / SIM_CELL_NS - 1;
    int64_t oldest = newest - SAMPLE_BUFFER + 1, created = sim.shared->created_ns / SIM_CELL_NS;
    if (oldest < created) oldest = created;
    size_t n = sim_spans(sim.shared, gpu->minor, now, oldest * SIM_CELL_NS, span);
    unsigned filled = 0;
    for (int64_t cell = oldest; cell <= newest && filled < room; cell++) {
        unsigned long long at_us = (unsigned long long)(((cell + 1) * SIM_CELL_NS + offset) / 1000);
        if (at_us <= last_seen_us) continue;
        memset(&samples[filled], 0, sizeof samples[filled]);
        samples[filled].timeStamp = at_us;
        samples[filled++].sampleValue.uiVal = cell_util(n, cell);
    }
    return filled;
}

nvmlReturn_t nvmlDeviceGetSamples(nvmlDevice_t device, nvmlSamplingType_t type, unsigned long long last_seen_us,
                                  nvmlValueType_t *value_type, unsigned int *count, nvmlSample_t *samples)
{
    sim_target t;
    if (!count || !value_type || (samples && !*count)) return NVML_ERROR_INVALID_ARGUMENT;
    nvmlReturn_t r = sim_enter_device(__func__, device, &t);
    if (r != NVML_SUCCESS) return r;
    if (type != NVML_GPU_UTILIZATION_SAMPLES || !has_duty_cycle(&t)) return sim_leave(NVML_ERROR_NOT_SUPPORTED);
    *value_type = NVML_VALUE_TYPE_UNSIGNED_INT;
    if (!samples) {
        *count = SAMPLE_BUFFER;
        return sim_leave(r);
    }
    *count = fill_samples(t.gpu, last_seen_us, *count, samples);
    return sim_leave(*count ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND);
}

/* Bytes that the live processes hold; those of one GPU instance only when the target is one. */
static unsigned long long held_bytes(const sim_target *t)
{
    int64_t now = sim_mono_ns();
    size_t n = sim_spans(sim.shared, t->gpu->minor, now, now, span);
    unsigned long long mib = 0;
    for (size_t i = 0; i < n; i++)
        if (span[i].live && (!t->mig || (span[i].gi == t->mig->gi && span[i].ci == t->mig->ci))) mib += span[i].mem_mib;
    return mib << 20;
}

static void memory_of(const sim_target *t, nvmlMemory_v2_t *m)
{
    m->total = (unsigned long long)(t->mig ? t->mig->memory_mib : t->gpu->memory_mib) << 20;
    m->reserved = t->mig ? 0 : (unsigned long long)t->gpu->reserved_mib << 20;
    m->used = held_bytes(t);
    if (m->used > m->total - m->reserved) m->used = m->total - m->reserved;
    m->free = m->total - m->reserved - m->used;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
    sim_target t;
    nvmlMemory_v2_t m = {0};
    if (!memory) return NVML_ERROR_INVALID_ARGUMENT;
    nvmlReturn_t r = sim_enter_device(__func__, device, &t);
    if (r != NVML_SUCCESS) return r;
    memory_of(&t, &m);
    *memory = (nvmlMemory_t){.total = m.total, .free = m.free, .used = m.used + m.reserved};
    return sim_leave(r);
}

nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory)
{
    sim_target t;
    if (!memory) return NVML_ERROR_INVALID_ARGUMENT;
    if (memory->version != nvmlMemory_v2) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    nvmlReturn_t r = sim_enter_device(__func__, device, &t);
    if (r != NVML_SUCCESS) return r;
    memory_of(&t, memory);
    return sim_leave(r);
}

/* Power of the board now: idle, and above it what each running activity adds. */
static unsigned power_mw(const sim_gpu *gpu)
{
    int64_t now = sim_mono_ns();
    size_t n = sim_spans(sim.shared, gpu->minor, now, now - 1, span);
    unsigned mw = gpu->idle_mw;
    for (size_t i = 0; i < n; i++)
        if (span[i].t1_ns == now && span[i].power_mw > gpu->idle_mw) mw += span[i].power_mw - gpu->idle_mw;
    return mw > gpu->power_limit_mw ? gpu->power_limit_mw : mw;
}

nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned int *power)
{
    sim_target t;
    if (!power) return NVML_ERROR_INVALID_ARGUMENT;
    nvmlReturn_t r = sim_enter_device(__func__, device, &t);
    if (r != NVML_SUCCESS) return r;
    if (t.mig) return sim_leave(NVML_ERROR_NOT_SUPPORTED);
    *power = power_mw(t.gpu);
    return sim_leave(r);
}

nvmlReturn_t nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t device, unsigned long long *energy)
{
    sim_target t;
    if (!energy) return NVML_ERROR_INVALID_ARGUMENT;
    nvmlReturn_t r = sim_enter_device(__func__, device, &t);
    if (r != NVML_SUCCESS) return r;
    if (t.mig || t.gpu->arch < NVML_DEVICE_ARCH_VOLTA) return sim_leave(NVML_ERROR_NOT_SUPPORTED);
    *energy = sim_energy_mj(sim.shared, t.gpu->minor, t.gpu->idle_mw, sim_mono_ns());
    return sim_leave(r);
}

static nvmlReturn_t power_limit(const char *function, nvmlDevice_t device, unsigned int *limit)
{
    sim_target t;
    if (!limit) return NVML_ERROR_INVALID_ARGUMENT;
    nvmlReturn_t r = sim_enter_device(function, device, &t);
    if (r != NVML_SUCCESS) return r;
    if (t.mig) return sim_leave(NVML_ERROR_NOT_SUPPORTED);
    *limit = t.gpu->power_limit_mw;
    return sim_leave(r);
}

nvmlReturn_t nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t device, unsigned int *limit)
{
    return power_limit(__func__, device, limit);
}

nvmlReturn_t nvmlDeviceGetPowerManagementLimit(nvmlDevice_t device, unsigned int *limit)
{
    return power_limit(__func__, device, limit);
}

nvmlReturn_t nvmlDeviceGetPowerManagementDefaultLimit(nvmlDevice_t device, unsigned int *limit)
{
    return power_limit(__func__, device, limit);
}

/* 30 degrees at idle, 80 at the power limit. */
static unsigned temperature_c(const sim_gpu *gpu)
{
    unsigned mw = power_mw(gpu), range = gpu->power_limit_mw - gpu->idle_mw;
    return 30 + (range ? 50 * (mw - gpu->idle_mw) / range : 0);
}

nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, nvmlTemperatureSensors_t sensor, unsigned int *temperature)
{
    sim_target t;
    if (!temperature || sensor != NVML_TEMPERATURE_GPU) return NVML_ERROR_INVALID_ARGUMENT;
    nvmlReturn_t r = sim_enter_device(__func__, device, &t);
    if (r != NVML_SUCCESS) return r;
    *temperature = temperature_c(t.gpu);
    return sim_leave(r);
}

nvmlReturn_t nvmlDeviceGetTemperatureV(nvmlDevice_t device, nvmlTemperature_t *temperature)
{
    sim_target t;
    if (!temperature) return NVML_ERROR_INVALID_ARGUMENT;
    if (temperature->version != nvmlTemperature_v1) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (temperature->sensorType != NVML_TEMPERATURE_GPU) return NVML_ERROR_INVALID_ARGUMENT;
    nvmlReturn_t r = sim_enter_device(__func__, device, &t);
    if (r != NVML_SUCCESS) return r;
    temperature->temperature = (int)temperature_c(t.gpu);
    return sim_leave(r);
}

nvmlReturn_t nvmlDeviceGetPerformanceState(nvmlDevice_t device, nvmlPstates_t *state)
{
    sim_target t;
    if (!state) return NVML_ERROR_INVALID_ARGUMENT;
    nvmlReturn_t r = sim_enter_device(__func__, device, &t);
    if (r != NVML_SUCCESS) return r;
    *state = NVML_PSTATE_0;
    return sim_leave(r);
}

nvmlReturn_t nvmlDeviceGetComputeMode(nvmlDevice_t device, nvmlComputeMode_t *mode)
{
    sim_target t;
    if (!mode) return NVML_ERROR_INVALID_ARGUMENT;
    nvmlReturn_t r = sim_enter_device(__func__, device, &t);
    if (r != NVML_SUCCESS) return r;
    *mode = NVML_COMPUTEMODE_DEFAULT;
    return sim_leave(r);
}

nvmlReturn_t nvmlDeviceGetPersistenceMode(nvmlDevice_t device, nvmlEnableState_t *mode)
{
    sim_target t;
    if (!mode) return NVML_ERROR_INVALID_ARGUMENT;
    nvmlReturn_t r = sim_enter_device(__func__, device, &t);
    if (r != NVML_SUCCESS) return r;
    *mode = NVML_FEATURE_ENABLED;
    return sim_leave(r);
}
