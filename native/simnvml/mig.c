/* MIG: modes, instances and their handles. */
#include "sim.h"

#include <string.h>

nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned int *current, unsigned int *pending)
{
    sim_target t;
    if (!current || !pending) return NVML_ERROR_INVALID_ARGUMENT;
    nvmlReturn_t r = sim_enter_device(__func__, device, &t);
    if (r != NVML_SUCCESS) return r;
    if (t.gpu->arch < NVML_DEVICE_ARCH_AMPERE) return sim_leave(NVML_ERROR_NOT_SUPPORTED);
    *current = *pending = t.gpu->mig_enabled ? NVML_DEVICE_MIG_ENABLE : NVML_DEVICE_MIG_DISABLE;
    return sim_leave(r);
}

nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned int *count)
{
    sim_target t;
    if (!count) return NVML_ERROR_INVALID_ARGUMENT;
    nvmlReturn_t r = sim_enter_device(__func__, device, &t);
    if (r != NVML_SUCCESS) return r;
    *count = t.gpu->mig_enabled ? 7 : 0;
    return sim_leave(r);
}

nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned int index, nvmlDevice_t *mig)
{
    sim_target t;
    if (!mig) return NVML_ERROR_INVALID_ARGUMENT;
    nvmlReturn_t r = sim_enter_device(__func__, device, &t);
    if (r != NVML_SUCCESS) return r;
    if (t.mig) return sim_leave(NVML_ERROR_INVALID_ARGUMENT);
    if (!t.gpu->mig_enabled) return sim_leave(NVML_ERROR_NOT_SUPPORTED);
    if (index >= t.gpu->mig_count) return sim_leave(NVML_ERROR_NOT_FOUND);
    *mig = sim_handle(t.gpu->mig[index].uuid);
    return sim_leave(*mig ? NVML_SUCCESS : NVML_ERROR_UNKNOWN);
}

static nvmlReturn_t instance_id(const char *function, nvmlDevice_t device, unsigned int *id, int compute)
{
    sim_target t;
    if (!id) return NVML_ERROR_INVALID_ARGUMENT;
    nvmlReturn_t r = sim_enter_device(function, device, &t);
    if (r != NVML_SUCCESS) return r;
    if (!t.mig) return sim_leave(NVML_ERROR_INVALID_ARGUMENT);
    *id = compute ? t.mig->ci : t.mig->gi;
    return sim_leave(r);
}

nvmlReturn_t nvmlDeviceGetGpuInstanceId(nvmlDevice_t device, unsigned int *id)
{
    return instance_id(__func__, device, id, 0);
}

nvmlReturn_t nvmlDeviceGetComputeInstanceId(nvmlDevice_t device, unsigned int *id)
{
    return instance_id(__func__, device, id, 1);
}

nvmlReturn_t nvmlDeviceIsMigDeviceHandle(nvmlDevice_t device, unsigned int *is_mig)
{
    sim_target t;
    if (!is_mig) return NVML_ERROR_INVALID_ARGUMENT;
    nvmlReturn_t r = sim_enter_device(__func__, device, &t);
    if (r != NVML_SUCCESS) return r;
    *is_mig = t.mig != NULL;
    return sim_leave(r);
}

nvmlReturn_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t mig, nvmlDevice_t *device)
{
    sim_target t;
    if (!device) return NVML_ERROR_INVALID_ARGUMENT;
    nvmlReturn_t r = sim_enter_device(__func__, mig, &t);
    if (r != NVML_SUCCESS) return r;
    if (!t.mig) return sim_leave(NVML_ERROR_INVALID_ARGUMENT);
    *device = sim_handle(t.gpu->uuid);
    return sim_leave(*device ? NVML_SUCCESS : NVML_ERROR_UNKNOWN);
}

nvmlReturn_t nvmlDeviceGetAttributes_v2(nvmlDevice_t device, nvmlDeviceAttributes_t *attributes)
{
    sim_target t;
    if (!attributes) return NVML_ERROR_INVALID_ARGUMENT;
    nvmlReturn_t r = sim_enter_device(__func__, device, &t);
    if (r != NVML_SUCCESS) return r;
    if (!t.mig) return sim_leave(NVML_ERROR_NOT_SUPPORTED);
    memset(attributes, 0, sizeof *attributes);
    attributes->multiprocessorCount = t.mig->sm_count;
    attributes->gpuInstanceSliceCount = t.mig->slices;
    attributes->computeInstanceSliceCount = t.mig->slices;
    attributes->memorySizeMB = t.mig->memory_mib;
    return sim_leave(r);
}
