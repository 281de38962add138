/* Event sets: Xid errors that a fault injects, seen by each set once, from its registration on. */
#include "sim.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

struct nvmlEventSet_st {
    unsigned long long seen; /* sequence of the last Xid that this set knows */
    unsigned count;
    char uuid[SIM_MAX_GPUS][SIM_TEXT];
};

nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *set)
{
    if (!set) return NVML_ERROR_INVALID_ARGUMENT;
    nvmlReturn_t r = sim_enter(__func__);
    if (r != NVML_SUCCESS) return r;
    *set = calloc(1, sizeof **set);
    if (!*set) return sim_leave(NVML_ERROR_MEMORY);
    sim_xid xid;
    while (sim_fault_next_xid((*set)->seen, &xid)) (*set)->seen = xid.sequence;
    return sim_leave(r);
}

nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set)
{
    if (!set) return NVML_ERROR_INVALID_ARGUMENT;
    free(set);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetSupportedEventTypes(nvmlDevice_t device, unsigned long long *types)
{
    sim_target t;
    if (!types) return NVML_ERROR_INVALID_ARGUMENT;
    nvmlReturn_t r = sim_enter_device(__func__, device, &t);
    if (r != NVML_SUCCESS) return r;
    *types = t.mig ? nvmlEventTypeNone : nvmlEventTypeXidCriticalError;
    return sim_leave(r);
}

nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long types, nvmlEventSet_t set)
{
    sim_target t;
    if (!set) return NVML_ERROR_INVALID_ARGUMENT;
    nvmlReturn_t r = sim_enter_device(__func__, device, &t);
    if (r != NVML_SUCCESS) return r;
    if (t.mig || types != nvmlEventTypeXidCriticalError) return sim_leave(NVML_ERROR_NOT_SUPPORTED);
    if (set->count == SIM_MAX_GPUS) return sim_leave(NVML_ERROR_INVALID_ARGUMENT);
    memcpy(set->uuid[set->count++], t.gpu->uuid, SIM_TEXT);
    return sim_leave(r);
}

/* Take the set's next Xid; return 0 when there is none. */
static int take(nvmlEventSet_t set, nvmlEventData_t *data)
{
    sim_xid xid;
    while (sim_fault_next_xid(set->seen, &xid)) {
        set->seen = xid.sequence;
        for (unsigned i = 0; i < set->count; i++) {
            if (strcmp(set->uuid[i], xid.uuid)) continue;
            *data = (nvmlEventData_t){.device = sim_handle(xid.uuid), .eventType = nvmlEventTypeXidCriticalError,
                .eventData = xid.code, .gpuInstanceId = SIM_NO_INSTANCE, .computeInstanceId = SIM_NO_INSTANCE};
            return 1;
        }
    }
    return 0;
}

nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t *data, unsigned int timeout_ms)
{
    if (!set || !data) return NVML_ERROR_INVALID_ARGUMENT;
    int64_t deadline = sim_mono_ns() + (int64_t)timeout_ms * 1000000;
    for (;;) {
        nvmlReturn_t r = sim_enter(__func__);
        if (r != NVML_SUCCESS) return r;
        int found = take(set, data);
        sim_leave(r);
        if (found) return NVML_SUCCESS;
        int64_t left = deadline - sim_mono_ns();
        if (left <= 0) return NVML_ERROR_TIMEOUT;
        struct timespec t = {0, left < 20000000 ? left : 20000000};
        nanosleep(&t, NULL);
    }
}

nvmlReturn_t nvmlEventSetWait(nvmlEventSet_t set, nvmlEventData_t *data, unsigned int timeout_ms)
{
    return nvmlEventSetWait_v2(set, data, timeout_ms);
}
