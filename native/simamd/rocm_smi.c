/* The simulated librocm_smi64, compiled against the vendor's rocm_smi.h (Debian: librocm-smi-dev). */
#pragma GCC visibility push(default)
#include <rocm_smi/rocm_smi.h>
/* In the library since ROCm 5.5 and 6.0, not in the header of Debian 12: github.com/ROCm/rocm_smi_lib, rocm_smi.h. */
rsmi_status_t rsmi_dev_compute_partition_get(uint32_t dv_ind, char *compute_partition, uint32_t len);
rsmi_status_t rsmi_dev_power_get(uint32_t dv_ind, uint64_t *power, int *type);
#pragma GCC visibility pop

#include "sim_amd.h"

#include <stdio.h>
#include <string.h>

static rsmi_status_t status(vendor_result result, unsigned long long code)
{
    switch (result) {
    case VENDOR_OK: return RSMI_STATUS_SUCCESS;
    case VENDOR_INVALID: return RSMI_STATUS_INVALID_ARGS;
    case VENDOR_NOT_SUPPORTED: return RSMI_STATUS_NOT_SUPPORTED;
    case VENDOR_NOT_FOUND: return RSMI_STATUS_NOT_FOUND;
    case VENDOR_FAULT: return (rsmi_status_t)code;
    default: return RSMI_STATUS_INIT_ERROR;
    }
}

/* Run the last argument with `d`, the device of this index; every function of one device has this frame. */
#define DEVICE_CALL(index, ok, ...)                                                                                    \
    vendor_device d;                                                                                                      \
    unsigned long long code = 0;                                                                                       \
    if (!(ok)) return RSMI_STATUS_INVALID_ARGS;                                                                        \
    vendor_result r = vendor_enter(__func__, index, &d, &code);                                                              \
    if (r != VENDOR_OK) return status(r, code);                                                                           \
    __VA_ARGS__;                                                                                                           \
    vendor_leave();                                                                                                       \
    return status(r, code)

rsmi_status_t rsmi_init(uint64_t flags)
{
    (void)flags;
    return status(vendor_open(__func__), 0);
}

rsmi_status_t rsmi_shut_down(void)
{
    return status(vendor_close(), 0);
}

rsmi_status_t rsmi_version_get(rsmi_version_t *version)
{
    if (!version) return RSMI_STATUS_INVALID_ARGS;
    *version = (rsmi_version_t){.major = 5, .minor = 0, .patch = 0, .build = "simulated"};
    return RSMI_STATUS_SUCCESS;
}

rsmi_status_t rsmi_num_monitor_devices(uint32_t *num_devices)
{
    unsigned long long code = 0;
    if (!num_devices) return RSMI_STATUS_INVALID_ARGS;
    vendor_result r = vendor_enter(__func__, 0, NULL, &code);
    if (r != VENDOR_OK) return status(r, code);
    *num_devices = vendor_count();
    vendor_leave();
    return RSMI_STATUS_SUCCESS;
}

rsmi_status_t rsmi_dev_unique_id_get(uint32_t dv_ind, uint64_t *id)
{
    DEVICE_CALL(dv_ind, id, if (d.gpu->unique_id) *id = d.gpu->unique_id; else r = VENDOR_NOT_SUPPORTED);
}

rsmi_status_t rsmi_dev_pci_id_get(uint32_t dv_ind, uint64_t *bdfid)
{
    DEVICE_CALL(dv_ind, bdfid, *bdfid = amd_bdf(&d));
}

rsmi_status_t rsmi_dev_name_get(uint32_t dv_ind, char *name, size_t len)
{
    DEVICE_CALL(dv_ind, name && len, snprintf(name, len, "%s", d.gpu->name));
}

rsmi_status_t rsmi_dev_drm_render_minor_get(uint32_t dv_ind, uint32_t *minor)
{
    DEVICE_CALL(dv_ind, minor, *minor = d.part ? d.part->render : d.gpu->render);
}

rsmi_status_t rsmi_dev_busy_percent_get(uint32_t dv_ind, uint32_t *busy_percent)
{
    DEVICE_CALL(dv_ind, busy_percent, if (d.part) r = VENDOR_NOT_SUPPORTED; else *busy_percent = vendor_busy_pct(&d));
}

rsmi_status_t rsmi_dev_memory_total_get(uint32_t dv_ind, rsmi_memory_type_t mem_type, uint64_t *total)
{
    DEVICE_CALL(dv_ind, total && mem_type == RSMI_MEM_TYPE_VRAM, *total = vendor_total_b(&d));
}

rsmi_status_t rsmi_dev_memory_usage_get(uint32_t dv_ind, rsmi_memory_type_t mem_type, uint64_t *used)
{
    DEVICE_CALL(dv_ind, used && mem_type == RSMI_MEM_TYPE_VRAM, *used = vendor_used_b(&d));
}

rsmi_status_t rsmi_dev_power_ave_get(uint32_t dv_ind, uint32_t sensor_ind, uint64_t *power)
{
    DEVICE_CALL(dv_ind, power && !sensor_ind,
                if (d.part && d.part->gi) r = VENDOR_NOT_SUPPORTED; else *power = vendor_power_w(&d) * 1000000ull);
}

rsmi_status_t rsmi_dev_power_get(uint32_t dv_ind, uint64_t *power, int *type)
{
    DEVICE_CALL(dv_ind, power && type,
                if (d.part && d.part->gi) r = VENDOR_NOT_SUPPORTED;
                else (*type = 1, *power = vendor_power_w(&d) * 1000000ull));
}

rsmi_status_t rsmi_dev_power_cap_get(uint32_t dv_ind, uint32_t sensor_ind, uint64_t *cap)
{
    DEVICE_CALL(dv_ind, cap && !sensor_ind, *cap = d.gpu->power_limit_mw * 1000ull);
}

rsmi_status_t rsmi_dev_energy_count_get(uint32_t dv_ind, uint64_t *power, float *counter_resolution, uint64_t *timestamp)
{
    DEVICE_CALL(dv_ind, power && counter_resolution && timestamp,
                if (d.part && d.part->gi) r = VENDOR_NOT_SUPPORTED;
                else (*counter_resolution = 15.259f, *power = (uint64_t)((double)vendor_energy_uj(&d, sim_mono_ns()) / 15.259),
                      *timestamp = (uint64_t)sim_mono_ns()));
}

rsmi_status_t rsmi_dev_compute_partition_get(uint32_t dv_ind, char *compute_partition, uint32_t len)
{
    DEVICE_CALL(dv_ind, compute_partition && len, snprintf(compute_partition, len, "%s", amd_mode(&d)));
}

/* The protocol of both lists: a NULL array asks for the size, one that is too small is filled as far as it goes. */
static rsmi_status_t fitting(uint32_t room, uint32_t found, int counted, uint32_t *count)
{
    *count = counted || found < room ? found : room;
    return !counted && found > room ? RSMI_STATUS_INSUFFICIENT_SIZE : RSMI_STATUS_SUCCESS;
}

rsmi_status_t rsmi_compute_process_info_get(rsmi_process_info_t *procs, uint32_t *num_items)
{
    static vendor_process found[SIM_SEGMENTS];
    unsigned long long code = 0;
    if (!num_items) return RSMI_STATUS_INVALID_ARGS;
    vendor_result r = vendor_enter(__func__, 0, NULL, &code);
    if (r != VENDOR_OK) return status(r, code);
    uint32_t n = vendor_processes(found, SIM_SEGMENTS), room = *num_items;
    for (uint32_t i = 0; procs && i < n && i < room; i++)
        procs[i] = (rsmi_process_info_t){.process_id = found[i].pid, .vram_usage = found[i].vram_b};
    rsmi_status_t answer = fitting(room, n, !procs, num_items);
    vendor_leave();
    return answer;
}

rsmi_status_t rsmi_compute_process_gpus_get(uint32_t pid, uint32_t *dv_indices, uint32_t *num_devices)
{
    unsigned long long code = 0;
    if (!num_devices) return RSMI_STATUS_INVALID_ARGS;
    vendor_result r = vendor_enter(__func__, 0, NULL, &code);
    if (r != VENDOR_OK) return status(r, code);
    uint32_t room = *num_devices;
    int count = vendor_devices_of(pid, dv_indices, room);
    rsmi_status_t answer = count < 0 ? RSMI_STATUS_NOT_FOUND : fitting(room, (uint32_t)count, !dv_indices, num_devices);
    vendor_leave();
    return answer;
}
