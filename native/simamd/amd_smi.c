/* The simulated libamd_smi, of the generation that devices.conf names (amdsmi 24, 25 or 26). */
#include "amdsmi_abi.h"
#include "sim_amd.h"

#include <stdio.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
#define MEM_TYPE_VRAM 0
#define ABSENT 0xFFFFFFFFu
#define METRICS_SIZE(xcp) (AMDSMI_XCP_STATS + 8 * (xcp))

static char sockets[VENDOR_MAX_DEVICES], processors[VENDOR_MAX_DEVICES]; /* handles are addresses of their elements */

static amdsmi_status_t status(vendor_result result, unsigned long long code)
{
    switch (result) {
    case VENDOR_OK: return AMDSMI_STATUS_SUCCESS;
    case VENDOR_INVALID: return AMDSMI_STATUS_INVAL;
    case VENDOR_NOT_SUPPORTED: return AMDSMI_STATUS_NOT_SUPPORTED;
    case VENDOR_NOT_FOUND: return AMDSMI_STATUS_NOT_FOUND;
    case VENDOR_NO_DRIVER: return AMDSMI_STATUS_DRIVER_NOT_LOADED;
    case VENDOR_FAULT: return (amdsmi_status_t)code;
    default: return AMDSMI_STATUS_NOT_INIT;
    }
}

static uint32_t index_of(amdsmi_processor_handle handle)
{
    char *at = handle;
    return at >= processors && at < processors + VENDOR_MAX_DEVICES ? (uint32_t)(at - processors) : VENDOR_MAX_DEVICES;
}

/* Run the last argument with `d`, the device of this handle; every function of one device has this frame. */
#define DEVICE_CALL(handle, ok, ...)                                                                                   \
    vendor_device d;                                                                                                      \
    unsigned long long code = 0;                                                                                       \
    if (!(ok)) return AMDSMI_STATUS_INVAL;                                                                             \
    vendor_result r = vendor_enter(__func__, index_of(handle), &d, &code);                                                   \
    if (r != VENDOR_OK) return status(r, code);                                                                           \
    __VA_ARGS__;                                                                                                           \
    vendor_leave();                                                                                                       \
    return status(r, code)

EXPORT amdsmi_status_t amdsmi_init(uint64_t flags)
{
    (void)flags;
    return status(vendor_open(__func__), 0);
}

EXPORT amdsmi_status_t amdsmi_shut_down(void)
{
    return status(vendor_close(), 0);
}

EXPORT amdsmi_status_t amdsmi_get_lib_version(void *version)
{
    if (!version) return AMDSMI_STATUS_INVAL;
    if (vendor_config.amdsmi < 26)
        *(amdsmi_version_24 *)version =
            (amdsmi_version_24){vendor_config.amdsmi, vendor_config.amdsmi_major, 0, 0, "simulated"};
    else
        *(amdsmi_version_26 *)version = (amdsmi_version_26){vendor_config.amdsmi, 0, 2, "simulated"};
    return AMDSMI_STATUS_SUCCESS;
}

/* One socket for each GPU; a cut GPU has its partitions in one. */
EXPORT amdsmi_status_t amdsmi_get_socket_handles(uint32_t *count, amdsmi_socket_handle *handles)
{
    unsigned long long code = 0;
    if (!count) return AMDSMI_STATUS_INVAL;
    vendor_result r = vendor_enter(__func__, 0, NULL, &code);
    if (r != VENDOR_OK) return status(r, code);
    uint32_t n = 0;
    for (unsigned i = 0; i < vendor_config.gpu_count; i++) {
        const sim_gpu *gpu = &vendor_config.gpu[i];
        if (!sim_is(gpu, "amd") || sim_fault_device(gpu->uuid, "gone")) continue;
        if (handles && n < *count) handles[n] = &sockets[i];
        n++;
    }
    *count = n;
    vendor_leave();
    return AMDSMI_STATUS_SUCCESS;
}

EXPORT amdsmi_status_t amdsmi_get_processor_handles(amdsmi_socket_handle socket, uint32_t *count,
                                                    amdsmi_processor_handle *handles)
{
    unsigned long long code = 0;
    char *at = socket;
    if (!count || at < sockets || at >= sockets + VENDOR_MAX_DEVICES) return AMDSMI_STATUS_INVAL;
    vendor_result r = vendor_enter(__func__, 0, NULL, &code);
    if (r != VENDOR_OK) return status(r, code);
    const sim_gpu *wanted = &vendor_config.gpu[at - sockets];
    uint32_t n = 0, index = 0;
    for (unsigned i = 0; i < vendor_config.gpu_count; i++) {
        const sim_gpu *gpu = &vendor_config.gpu[i];
        if (!sim_is(gpu, "amd") || sim_fault_device(gpu->uuid, "gone")) continue;
        for (unsigned k = 0; k < (gpu->mig_enabled ? gpu->mig_count : 1); k++, index++) {
            if (gpu != wanted) continue;
            if (handles && n < *count) handles[n] = &processors[index];
            n++;
        }
    }
    *count = n;
    vendor_leave();
    return AMDSMI_STATUS_SUCCESS;
}

EXPORT amdsmi_status_t amdsmi_get_gpu_device_bdf(amdsmi_processor_handle handle, uint64_t *bdf)
{
    DEVICE_CALL(handle, bdf, uint64_t id = amd_bdf(&d); *bdf = (id >> 32) << 16 | (id & 0xffff));
}

EXPORT amdsmi_status_t amdsmi_get_gpu_asic_info(amdsmi_processor_handle handle, void *info)
{
    DEVICE_CALL(handle, info, if (vendor_config.amdsmi < 25) {
        amdsmi_asic_info_24 *to = info;
        memset(to, 0, sizeof *to);
        snprintf(to->market_name, sizeof to->market_name, "%s", d.gpu->name);
        if (d.gpu->unique_id) snprintf(to->asic_serial, sizeof to->asic_serial, "0x%016llX", d.gpu->unique_id);
    } else {
        amdsmi_asic_info_26 *to = info;
        memset(to, 0, sizeof *to);
        snprintf(to->market_name, sizeof to->market_name, "%s", d.gpu->name);
        if (d.gpu->unique_id) snprintf(to->asic_serial, sizeof to->asic_serial, "0x%016llX", d.gpu->unique_id);
    });
}

EXPORT amdsmi_status_t amdsmi_get_gpu_kfd_info(amdsmi_processor_handle handle, amdsmi_kfd_info_t *info)
{
    DEVICE_CALL(handle, info, *info = ((amdsmi_kfd_info_t){.kfd_id = d.gpu->unique_id & 0xffff, .node_id = index_of(handle) + 2,
                .current_partition_id = d.part ? d.part->gi : 0}));
}

EXPORT amdsmi_status_t amdsmi_get_gpu_enumeration_info(amdsmi_processor_handle handle, amdsmi_enumeration_info_t *info)
{
    DEVICE_CALL(handle, info, if (vendor_config.amdsmi < 25) r = VENDOR_NOT_SUPPORTED; else {
        uint32_t render = d.part ? d.part->render : d.gpu->render;
        *info = (amdsmi_enumeration_info_t){.drm_render = render, .drm_card = render - 128, .hsa_id = index_of(handle) + 2,
                                            .hip_id = index_of(handle)};
        snprintf(info->hip_uuid, sizeof info->hip_uuid, "GPU-%016llx", d.gpu->unique_id);
    });
}

EXPORT amdsmi_status_t amdsmi_get_gpu_compute_partition(amdsmi_processor_handle handle, char *text, uint32_t len)
{
    DEVICE_CALL(handle, text && len, snprintf(text, len, "%s", amd_mode(&d)));
}

EXPORT amdsmi_status_t amdsmi_get_gpu_memory_partition(amdsmi_processor_handle handle, char *text, uint32_t len)
{
    DEVICE_CALL(handle, text && len, snprintf(text, len, "%s", d.part ? "NPS4" : "NPS1"));
}

EXPORT amdsmi_status_t amdsmi_get_gpu_activity(amdsmi_processor_handle handle, amdsmi_engine_usage_t *usage)
{
    DEVICE_CALL(handle, usage, if (d.part) r = VENDOR_NOT_SUPPORTED; else {
        *usage = (amdsmi_engine_usage_t){.gfx_activity = vendor_busy_pct(&d)};
        usage->umc_activity = usage->gfx_activity / 2;
    });
}

EXPORT amdsmi_status_t amdsmi_get_gpu_memory_total(amdsmi_processor_handle handle, int type, uint64_t *total)
{
    DEVICE_CALL(handle, total && type == MEM_TYPE_VRAM, *total = vendor_total_b(&d));
}

EXPORT amdsmi_status_t amdsmi_get_gpu_memory_usage(amdsmi_processor_handle handle, int type, uint64_t *used)
{
    DEVICE_CALL(handle, used && type == MEM_TYPE_VRAM, *used = vendor_used_b(&d));
}

static void put_power(void *info, unsigned watts)
{
    if (vendor_config.amdsmi < 25)
        *(amdsmi_power_info_24 *)info = (amdsmi_power_info_24){.current_socket_power = watts, .average_socket_power = 0xFFFF};
    else if (vendor_config.amdsmi < 26)
        *(amdsmi_power_info_25 *)info = (amdsmi_power_info_25){.socket_power = watts, .current_socket_power = watts,
            .average_socket_power = 0xFFFF};
    else
        *(amdsmi_power_info_26 *)info = (amdsmi_power_info_26){.socket_power = watts, .current_socket_power = watts,
            .average_socket_power = 0xFFFF};
}

EXPORT amdsmi_status_t amdsmi_get_power_info(amdsmi_processor_handle handle, void *info)
{
    DEVICE_CALL(handle, info, if (d.part && d.part->gi) r = VENDOR_NOT_SUPPORTED; else put_power(info, vendor_power_w(&d)));
}

EXPORT amdsmi_status_t amdsmi_get_power_cap_info(amdsmi_processor_handle handle, uint32_t sensor,
                                                 amdsmi_power_cap_info_t *info)
{
    DEVICE_CALL(handle, info && !sensor,
                *info = ((amdsmi_power_cap_info_t){.power_cap = d.gpu->power_limit_mw * 1000ull}));
}

EXPORT amdsmi_status_t amdsmi_get_energy_count(amdsmi_processor_handle handle, uint64_t *energy, float *resolution,
                                               uint64_t *timestamp)
{
    DEVICE_CALL(handle, energy && resolution && timestamp,
                if (d.part && d.part->gi) r = VENDOR_NOT_SUPPORTED;
                else (*resolution = 15.259f, *energy = (uint64_t)((double)vendor_energy_uj(&d, sim_mono_ns()) / 15.259),
                      *timestamp = (uint64_t)sim_mono_ns()));
}

static size_t xcp_size(void)
{
    return vendor_config.amdsmi < 25 ? AMDSMI_XCP_SIZE_24 : vendor_config.amdsmi < 26 ? AMDSMI_XCP_SIZE_25 : AMDSMI_XCP_SIZE_26;
}

static void put_partitions(char *to, const sim_gpu *gpu)
{
    uint16_t count = (uint16_t)(gpu->mig_enabled ? gpu->mig_count : 1);
    memcpy(to + AMDSMI_NUM_PARTITION, &count, sizeof count);
    for (unsigned k = 0; k < gpu->mig_count && k < 8; k++) {
        uint32_t busy = vendor_busy_pct(&(vendor_device){gpu, &gpu->mig[k]});
        memcpy(to + AMDSMI_XCP_STATS + gpu->mig[k].gi * xcp_size(), &busy, sizeof busy);
    }
}

/* Every value that is not simulated is absent: all bits set, as the vendor's own programs read it. */
EXPORT amdsmi_status_t amdsmi_get_gpu_metrics_info(amdsmi_processor_handle handle, void *metrics)
{
    DEVICE_CALL(handle, metrics, memset(metrics, 0xFF, METRICS_SIZE(xcp_size())); put_partitions(metrics, d.gpu));
}

static amdsmi_status_t fitting(uint32_t room, uint32_t found, int counted, uint32_t *count)
{
    *count = counted || found < room ? found : room;
    return !counted && found > room ? AMDSMI_STATUS_INSUFFICIENT_SIZE : AMDSMI_STATUS_SUCCESS;
}

EXPORT amdsmi_status_t amdsmi_get_gpu_compute_process_info(amdsmi_process_info_t *procs, uint32_t *num_items)
{
    static vendor_process found[SIM_SEGMENTS];
    unsigned long long code = 0;
    if (!num_items) return AMDSMI_STATUS_INVAL;
    vendor_result r = vendor_enter(__func__, 0, NULL, &code);
    if (r != VENDOR_OK) return status(r, code);
    uint32_t n = vendor_processes(found, SIM_SEGMENTS), room = *num_items;
    for (uint32_t i = 0; procs && i < n && i < room; i++)
        procs[i] = (amdsmi_process_info_t){.process_id = found[i].pid, .vram_usage = found[i].vram_b, .cu_occupancy = ABSENT};
    amdsmi_status_t answer = fitting(room, n, !procs, num_items);
    vendor_leave();
    return answer;
}

EXPORT amdsmi_status_t amdsmi_get_gpu_compute_process_gpus(uint32_t pid, uint32_t *dv_indices, uint32_t *num_devices)
{
    unsigned long long code = 0;
    if (!num_devices) return AMDSMI_STATUS_INVAL;
    vendor_result r = vendor_enter(__func__, 0, NULL, &code);
    if (r != VENDOR_OK) return status(r, code);
    uint32_t room = *num_devices;
    int count = vendor_devices_of(pid, dv_indices, room);
    amdsmi_status_t answer = count < 0 ? AMDSMI_STATUS_NOT_FOUND : fitting(room, (uint32_t)count, !dv_indices, num_devices);
    vendor_leave();
    return answer;
}
