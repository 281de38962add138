/* Drivers, devices and their properties in the simulated libze_loader. */
#include "sim_ze.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

const vendor_kind vendor = {.name = "intel"};

static char driver;
static char devices[SIM_MAX_GPUS]; /* handles are addresses of their elements */
static ze_result_t first_result;
static pthread_once_t once = PTHREAD_ONCE_INIT;

ze_result_t ze_status(vendor_result result, unsigned long long code)
{
    switch (result) {
    case VENDOR_OK: return ZE_RESULT_SUCCESS;
    case VENDOR_INVALID: return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    case VENDOR_NOT_SUPPORTED: return ZE_RESULT_ERROR_UNSUPPORTED_FEATURE;
    case VENDOR_FAULT: return (ze_result_t)code;
    case VENDOR_NOT_INIT: return ZE_RESULT_ERROR_UNINITIALIZED;
    default: return ZE_RESULT_ERROR_DEVICE_LOST;
    }
}

static void first_init(void)
{
    first_result = vendor_open("zesInit") == VENDOR_OK ? ZE_RESULT_SUCCESS : ZE_RESULT_ERROR_UNINITIALIZED;
}

/* The real loader, too, looks for drivers once in a process and remembers what came of it. */
ze_result_t zesInit(zes_init_flags_t flags)
{
    (void)flags;
    pthread_once(&once, first_init);
    return first_result;
}

void ze_list(uint32_t found, void **handles, uint32_t *count, void **out)
{
    for (uint32_t i = 0; out && i < found && i < *count; i++) out[i] = handles[i];
    if (!*count || *count > found) *count = found;
}

static ze_result_t enter_all(const char *function)
{
    unsigned long long code = 0;
    vendor_result result = vendor_enter(function, 0, NULL, &code);
    return ze_status(result, code);
}

ze_result_t zesDriverGet(uint32_t *pCount, zes_driver_handle_t *phDrivers)
{
    void *handle = &driver;
    if (!pCount) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    ze_result_t r = enter_all(__func__);
    if (r != ZE_RESULT_SUCCESS) return r;
    ze_list(1, &handle, pCount, (void **)phDrivers);
    vendor_leave();
    return r;
}

ze_result_t zesDeviceGet(zes_driver_handle_t hDriver, uint32_t *pCount, zes_device_handle_t *phDevices)
{
    void *found[SIM_MAX_GPUS];
    uint32_t n = 0;
    if ((void *)hDriver != &driver) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    if (!pCount) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    ze_result_t r = enter_all(__func__);
    if (r != ZE_RESULT_SUCCESS) return r;
    for (unsigned i = 0; i < vendor_config.gpu_count; i++)
        if (sim_is(&vendor_config.gpu[i], vendor.name)) found[n++] = &devices[i];
    ze_list(n, found, pCount, (void **)phDevices);
    vendor_leave();
    return r;
}

unsigned ze_gpu_of(zes_device_handle_t handle)
{
    char *at = (char *)handle;
    return at >= devices && at < devices + SIM_MAX_GPUS ? (unsigned)(at - devices) : SIM_MAX_GPUS;
}

/* Position among the GPUs that are on the bus. */
static uint32_t index_of(unsigned gpu)
{
    uint32_t index = 0;
    for (unsigned i = 0; i < gpu; i++)
        index += sim_is(&vendor_config.gpu[i], vendor.name) && !sim_fault_device(vendor_config.gpu[i].uuid, "gone");
    return index;
}

/* A handle stays what it is when another GPU falls off the bus; a device that is off it is lost. */
ze_result_t ze_enter(const char *function, unsigned gpu, vendor_device *device)
{
    unsigned long long code = 0;
    if (gpu >= vendor_config.gpu_count) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    vendor_result result = vendor_enter(function, index_of(gpu), device, &code);
    if (result == VENDOR_OK && device->gpu != &vendor_config.gpu[gpu]) {
        vendor_leave();
        return ZE_RESULT_ERROR_DEVICE_LOST;
    }
    return result == VENDOR_INVALID ? ZE_RESULT_ERROR_DEVICE_LOST : ze_status(result, code);
}

unsigned ze_tiles(const sim_gpu *gpu)
{
    return gpu->mig_enabled ? gpu->mig_count : 0;
}

vendor_device ze_part_of(const sim_gpu *gpu, unsigned tile)
{
    return (vendor_device){gpu, tile < ze_tiles(gpu) ? &gpu->mig[tile] : NULL};
}

/* The layout on which the drivers of Intel agree: vendor, device, revision, PCI address, sub-device. */
static void put_uuid(uint8_t *id, const sim_gpu *gpu)
{
    unsigned domain = 0, bus = 0, slot = 0, function = 0;
    sscanf(gpu->pci, "%x:%x:%x.%x", &domain, &bus, &slot, &function);
    uint8_t found[ZE_MAX_DEVICE_UUID_SIZE] = {0x86, 0x80, 0xd5, 0x0b, 0x2f, 0, (uint8_t)domain, (uint8_t)(domain >> 8),
        (uint8_t)bus, (uint8_t)slot, (uint8_t)function};
    memcpy(id, found, sizeof found);
}

ze_result_t zesDeviceGetProperties(zes_device_handle_t hDevice, zes_device_properties_t *pProperties)
{
    vendor_device d;
    if (!pProperties) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    if (pProperties->stype != ZES_STRUCTURE_TYPE_DEVICE_PROPERTIES) return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    ze_result_t r = ze_enter(__func__, ze_gpu_of(hDevice), &d);
    if (r != ZE_RESULT_SUCCESS) return r;
    ze_device_properties_t *core = &pProperties->core;
    core->type = ZE_DEVICE_TYPE_GPU;
    core->vendorId = 0x8086;
    core->deviceId = 0x0bd5;
    put_uuid(core->uuid.id, d.gpu);
    snprintf(core->name, sizeof core->name, "%s", d.gpu->name);
    pProperties->numSubdevices = ze_tiles(d.gpu);
    snprintf(pProperties->modelName, sizeof pProperties->modelName, "%.63s", d.gpu->name);
    snprintf(pProperties->vendorName, sizeof pProperties->vendorName, "Intel(R) Corporation");
    snprintf(pProperties->serialNumber, sizeof pProperties->serialNumber, "unknown");
    snprintf(pProperties->driverVersion, sizeof pProperties->driverVersion, "simulated");
    vendor_leave();
    return r;
}

ze_result_t zesDevicePciGetProperties(zes_device_handle_t hDevice, zes_pci_properties_t *pProperties)
{
    vendor_device d;
    if (!pProperties) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    if (pProperties->stype != ZES_STRUCTURE_TYPE_PCI_PROPERTIES) return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    ze_result_t r = ze_enter(__func__, ze_gpu_of(hDevice), &d);
    if (r != ZE_RESULT_SUCCESS) return r;
    zes_pci_address_t *to = &pProperties->address;
    sscanf(d.gpu->pci, "%x:%x:%x.%x", &to->domain, &to->bus, &to->device, &to->function);
    vendor_leave();
    return r;
}

ze_result_t zesDeviceProcessesGetState(zes_device_handle_t hDevice, uint32_t *pCount, zes_process_state_t *pProcesses)
{
    static vendor_process found[SIM_SEGMENTS];
    vendor_device d;
    if (!pCount) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    if (*pCount && pProcesses && pProcesses->stype != ZES_STRUCTURE_TYPE_PROCESS_STATE)
        return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    unsigned gpu = ze_gpu_of(hDevice);
    ze_result_t r = ze_enter(__func__, gpu, &d);
    if (r != ZE_RESULT_SUCCESS) return r;
    uint32_t n = 1, all = vendor_processes(found, SIM_SEGMENTS), room = pProcesses ? *pCount : 0;
    /* The caller has the device open, as every program that called zesInit; it uses no engine. */
    if (room) pProcesses[0].processId = (uint32_t)getpid(), pProcesses[0].memSize = 0, pProcesses[0].engines = 0;
    for (uint32_t i = 0; i < all && i < SIM_SEGMENTS; i++) {
        if (!(found[i].devices >> index_of(gpu) & 1)) continue;
        if (n < room) {
            pProcesses[n].processId = found[i].pid;
            pProcesses[n].memSize = found[i].vram_b;
            pProcesses[n].engines = ZES_ENGINE_TYPE_FLAG_COMPUTE | ZES_ENGINE_TYPE_FLAG_DMA;
        }
        n++;
    }
    if (room && n > room) r = ZE_RESULT_ERROR_INVALID_SIZE;
    *pCount = n;
    vendor_leave();
    return r;
}
