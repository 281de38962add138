/* GPM: counters between two samples, on Hopper and later; the only utilization that MIG instances have. */
#include "sim.h"

#include <stdlib.h>

struct nvmlGpmSample_st {
    int64_t at_ns; /* 0: nothing was read into it */
    unsigned minor;
    uint32_t gi;
};

nvmlReturn_t nvmlGpmQueryDeviceSupport(nvmlDevice_t device, nvmlGpmSupport_t *support)
{
    sim_target t;
    if (!support) return NVML_ERROR_INVALID_ARGUMENT;
    if (support->version != NVML_GPM_SUPPORT_VERSION) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    nvmlReturn_t r = sim_enter_device(__func__, device, &t);
    if (r != NVML_SUCCESS) return r;
    support->isSupportedDevice = t.gpu->arch >= NVML_DEVICE_ARCH_HOPPER;
    return sim_leave(r);
}

nvmlReturn_t nvmlGpmSampleAlloc(nvmlGpmSample_t *sample)
{
    if (!sample) return NVML_ERROR_INVALID_ARGUMENT;
    *sample = calloc(1, sizeof **sample);
    return *sample ? NVML_SUCCESS : NVML_ERROR_MEMORY;
}

nvmlReturn_t nvmlGpmSampleFree(nvmlGpmSample_t sample)
{
    if (!sample) return NVML_ERROR_INVALID_ARGUMENT;
    free(sample);
    return NVML_SUCCESS;
}

static nvmlReturn_t read_sample(const char *function, nvmlDevice_t device, uint32_t gi, nvmlGpmSample_t sample)
{
    sim_target t;
    if (!sample) return NVML_ERROR_INVALID_ARGUMENT;
    nvmlReturn_t r = sim_enter_device(function, device, &t);
    if (r != NVML_SUCCESS) return r;
    if (t.gpu->arch < NVML_DEVICE_ARCH_HOPPER) return sim_leave(NVML_ERROR_NOT_SUPPORTED);
    /* On a GPU in MIG mode the counters belong to its instances. */
    if ((gi == SIM_NO_INSTANCE) == (t.gpu->mig_enabled != 0)) return sim_leave(NVML_ERROR_NOT_SUPPORTED);
    *sample = (struct nvmlGpmSample_st){.at_ns = sim_mono_ns(), .minor = t.gpu->minor, .gi = gi};
    return sim_leave(r);
}

nvmlReturn_t nvmlGpmSampleGet(nvmlDevice_t device, nvmlGpmSample_t sample)
{
    return read_sample(__func__, device, SIM_NO_INSTANCE, sample);
}

nvmlReturn_t nvmlGpmMigSampleGet(nvmlDevice_t device, unsigned int gi, nvmlGpmSample_t sample)
{
    return read_sample(__func__, device, gi, sample);
}

static void one_metric(nvmlGpmMetric_t *metric, size_t n, const sim_span *span, nvmlGpmSample_t a, nvmlGpmSample_t b)
{
    metric->nvmlReturn = NVML_SUCCESS;
    metric->metricInfo.unit = "%";
    if (metric->metricId == NVML_GPM_METRIC_GRAPHICS_UTIL) {
        metric->metricInfo.shortName = "Graphics";
        metric->value = sim_mean_util(span, n, a->at_ns, b->at_ns, a->gi);
    } else if (metric->metricId == NVML_GPM_METRIC_SM_UTIL) {
        metric->metricInfo.shortName = "SM";
        metric->value = 100 * sim_mean_sm(span, n, a->at_ns, b->at_ns, a->gi);
    } else {
        metric->nvmlReturn = NVML_ERROR_NOT_SUPPORTED;
    }
}

nvmlReturn_t nvmlGpmMetricsGet(nvmlGpmMetricsGet_t *get)
{
    static sim_span span[SIM_SEGMENTS]; /* under the session's lock */
    if (!get || !get->sample1 || !get->sample2) return NVML_ERROR_INVALID_ARGUMENT;
    if (get->version != NVML_GPM_METRICS_GET_VERSION) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    nvmlGpmSample_t a = get->sample1, b = get->sample2;
    if (get->numMetrics > NVML_GPM_METRIC_MAX || !a->at_ns || b->at_ns <= a->at_ns) return NVML_ERROR_INVALID_ARGUMENT;
    if (a->minor != b->minor || a->gi != b->gi) return NVML_ERROR_INVALID_ARGUMENT;
    nvmlReturn_t r = sim_enter(__func__);
    if (r != NVML_SUCCESS) return r;
    size_t n = sim_spans(sim.shared, a->minor, b->at_ns > sim_mono_ns() ? b->at_ns : sim_mono_ns(), a->at_ns, span);
    for (unsigned i = 0; i < get->numMetrics; i++) one_metric(&get->metrics[i], n, span, a, b);
    return sim_leave(r);
}
