/* What a GPU is: count, handles, names, numbers. */
#include "sim.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

const char *nvmlErrorString(nvmlReturn_t result)
{
    switch (result) {
    case NVML_SUCCESS: return "Success";
    case NVML_ERROR_UNINITIALIZED: return "Uninitialized";
    case NVML_ERROR_INVALID_ARGUMENT: return "Invalid Argument";
    case NVML_ERROR_NOT_SUPPORTED: return "Not Supported";
    case NVML_ERROR_NO_PERMISSION: return "Insufficient Permissions";
    case NVML_ERROR_NOT_FOUND: return "Not Found";
    case NVML_ERROR_INSUFFICIENT_SIZE: return "Insufficient Size";
    case NVML_ERROR_DRIVER_NOT_LOADED: return "Driver Not Loaded";
    case NVML_ERROR_TIMEOUT: return "Timeout";
    case NVML_ERROR_LIBRARY_NOT_FOUND: return "NVML Shared Library Not Found";
    case NVML_ERROR_FUNCTION_NOT_FOUND: return "Function Not Found";
    case NVML_ERROR_GPU_IS_LOST: return "GPU is lost";
    case NVML_ERROR_RESET_REQUIRED: return "GPU requires restart";
    case NVML_ERROR_IN_USE: return "In use by another client";
    case NVML_ERROR_NO_DATA: return "No data";
    case NVML_ERROR_ARGUMENT_VERSION_MISMATCH: return "Argument version mismatch";
    default: return "Unknown Error";
    }
}

nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned int length)
{
    nvmlReturn_t r = sim_enter(__func__);
    return r != NVML_SUCCESS ? r : sim_leave(sim_text(version, length, sim.config.driver));
}

nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned int length)
{
    nvmlReturn_t r = sim_enter(__func__);
    return r != NVML_SUCCESS ? r : sim_leave(sim_text(version, length, sim.config.nvml));
}

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count)
{
    if (!count) return NVML_ERROR_INVALID_ARGUMENT;
    nvmlReturn_t r = sim_enter(__func__);
    if (r != NVML_SUCCESS) return r;
    *count = sim_visible_count();
    return sim_leave(r);
}

nvmlReturn_t nvmlDeviceGetCount(unsigned int *count)
{
    return nvmlDeviceGetCount_v2(count);
}

/* Hand out a GPU's handle; one that fell off the bus is not found, a lost one says so. */
static nvmlReturn_t hand_out(const sim_gpu *gpu, const char *uuid, nvmlReturn_t absent, nvmlDevice_t *device)
{
    if (!gpu || sim_fault_device(gpu->uuid, "gone")) return absent;
    if (sim_fault_device(gpu->uuid, "lost")) return NVML_ERROR_GPU_IS_LOST;
    *device = sim_handle(uuid);
    return *device ? NVML_SUCCESS : NVML_ERROR_UNKNOWN;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device)
{
    if (!device) return NVML_ERROR_INVALID_ARGUMENT;
    nvmlReturn_t r = sim_enter(__func__);
    if (r != NVML_SUCCESS) return r;
    const sim_gpu *gpu = sim_visible(index);
    return sim_leave(hand_out(gpu, gpu ? gpu->uuid : "", NVML_ERROR_INVALID_ARGUMENT, device));
}

nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned int index, nvmlDevice_t *device)
{
    return nvmlDeviceGetHandleByIndex_v2(index, device);
}

nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device)
{
    if (!uuid || !device) return NVML_ERROR_INVALID_ARGUMENT;
    nvmlReturn_t r = sim_enter(__func__);
    if (r != NVML_SUCCESS) return r;
    for (unsigned i = 0; i < sim.config.gpu_count; i++) {
        const sim_gpu *gpu = &sim.config.gpu[i];
        if (!sim_is(gpu, "nvidia")) continue;
        int match = !strcmp(gpu->uuid, uuid);
        for (unsigned k = 0; k < gpu->mig_count; k++) match |= !strcmp(gpu->mig[k].uuid, uuid);
        if (match) return sim_leave(hand_out(gpu, uuid, NVML_ERROR_NOT_FOUND, device));
    }
    return sim_leave(NVML_ERROR_NOT_FOUND);
}

/* "0000:01:00.0" and "00000000:01:00.0" name the same device; parse rather than compare. */
static int pci_parse(const char *text, unsigned *domain, unsigned *bus, unsigned *device)
{
    unsigned function = 0;
    return sscanf(text, "%x:%x:%x.%x", domain, bus, device, &function) >= 3;
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, nvmlDevice_t *device)
{
    unsigned a[3], b[3];
    if (!bus_id || !device || !pci_parse(bus_id, &a[0], &a[1], &a[2])) return NVML_ERROR_INVALID_ARGUMENT;
    nvmlReturn_t r = sim_enter(__func__);
    if (r != NVML_SUCCESS) return r;
    for (unsigned i = 0; i < sim.config.gpu_count; i++) {
        const sim_gpu *gpu = &sim.config.gpu[i];
        if (sim_is(gpu, "nvidia") && pci_parse(gpu->pci, &b[0], &b[1], &b[2]) && !memcmp(a, b, sizeof a))
            return sim_leave(hand_out(gpu, gpu->uuid, NVML_ERROR_NOT_FOUND, device));
    }
    return sim_leave(NVML_ERROR_NOT_FOUND);
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId(const char *bus_id, nvmlDevice_t *device)
{
    return nvmlDeviceGetHandleByPciBusId_v2(bus_id, device);
}

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned int length)
{
    sim_target t;
    char text[SIM_TEXT + 48];
    nvmlReturn_t r = sim_enter_device(__func__, device, &t);
    if (r != NVML_SUCCESS) return r;
    if (t.mig) snprintf(text, sizeof text, "%s MIG %s", t.gpu->name, t.mig->profile);
    else snprintf(text, sizeof text, "%s", t.gpu->name);
    return sim_leave(sim_text(name, length, text));
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned int length)
{
    sim_target t;
    nvmlReturn_t r = sim_enter_device(__func__, device, &t);
    return r != NVML_SUCCESS ? r : sim_leave(sim_text(uuid, length, t.mig ? t.mig->uuid : t.gpu->uuid));
}

nvmlReturn_t nvmlDeviceGetSerial(nvmlDevice_t device, char *serial, unsigned int length)
{
    sim_target t;
    char text[32];
    nvmlReturn_t r = sim_enter_device(__func__, device, &t);
    if (r != NVML_SUCCESS) return r;
    snprintf(text, sizeof text, "1650000%06u", t.gpu->minor);
    return sim_leave(sim_text(serial, length, text));
}

nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned int *index)
{
    sim_target t;
    if (!index) return NVML_ERROR_INVALID_ARGUMENT;
    nvmlReturn_t r = sim_enter_device(__func__, device, &t);
    if (r != NVML_SUCCESS) return r;
    *index = t.index;
    return sim_leave(r);
}

nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned int *minor)
{
    sim_target t;
    if (!minor) return NVML_ERROR_INVALID_ARGUMENT;
    nvmlReturn_t r = sim_enter_device(__func__, device, &t);
    if (r != NVML_SUCCESS) return r;
    if (t.mig) return sim_leave(NVML_ERROR_NOT_SUPPORTED); /* its files stand under nvidia-caps */
    *minor = t.gpu->minor;
    return sim_leave(r);
}

void sim_pci_info(const sim_gpu *gpu, nvmlPciInfo_t *pci)
{
    memset(pci, 0, sizeof *pci);
    pci_parse(gpu->pci, &pci->domain, &pci->bus, &pci->device);
    pci->pciDeviceId = 0x20B010DE;
    pci->pciSubSystemId = 0x134F10DE;
    snprintf(pci->busId, sizeof pci->busId, "%08X:%02X:%02X.0", pci->domain, pci->bus & 0xFF, pci->device & 0x1F);
    snprintf(pci->busIdLegacy, sizeof pci->busIdLegacy, "%04X:%02X:%02X.0", pci->domain & 0xFFFF, pci->bus & 0xFF,
             pci->device & 0x1F);
}

nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci)
{
    sim_target t;
    if (!pci) return NVML_ERROR_INVALID_ARGUMENT;
    nvmlReturn_t r = sim_enter_device(__func__, device, &t);
    if (r != NVML_SUCCESS) return r;
    sim_pci_info(t.gpu, pci);
    return sim_leave(r);
}

nvmlReturn_t nvmlDeviceGetPciInfo_v2(nvmlDevice_t device, nvmlPciInfo_t *pci)
{
    return nvmlDeviceGetPciInfo_v3(device, pci);
}

nvmlReturn_t nvmlDeviceGetPciInfo(nvmlDevice_t device, nvmlPciInfo_t *pci)
{
    return nvmlDeviceGetPciInfo_v3(device, pci);
}

nvmlReturn_t nvmlDeviceGetArchitecture(nvmlDevice_t device, nvmlDeviceArchitecture_t *arch)
{
    sim_target t;
    if (!arch) return NVML_ERROR_INVALID_ARGUMENT;
    nvmlReturn_t r = sim_enter_device(__func__, device, &t);
    if (r != NVML_SUCCESS) return r;
    *arch = t.gpu->arch;
    return sim_leave(r);
}

nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *major, int *minor)
{
    sim_target t;
    if (!major || !minor) return NVML_ERROR_INVALID_ARGUMENT;
    nvmlReturn_t r = sim_enter_device(__func__, device, &t);
    if (r != NVML_SUCCESS) return r;
    *major = t.gpu->arch >= NVML_DEVICE_ARCH_HOPPER ? 9 : t.gpu->arch >= NVML_DEVICE_ARCH_AMPERE ? 8 : 7;
    *minor = t.gpu->arch == NVML_DEVICE_ARCH_ADA ? 9 : 0;
    return sim_leave(r);
}
