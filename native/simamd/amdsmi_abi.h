/* The part of libamd_smi's interface that is simulated. No package has the header, so it is declared here, from
 * github.com/ROCm/amdsmi include/amd_smi/amdsmi.h: generation 24 (ROCm 6.2 and 6.3), 25 (6.4) and 26 (7.0). Where the
 * vendor's Python package amdsmi is installed, tests/contract/test_amd_contract.py compares these layouts with it. */
#ifndef AMDSMI_ABI_H
#define AMDSMI_ABI_H

#include <stdint.h>

typedef void *amdsmi_socket_handle;
typedef void *amdsmi_processor_handle;

typedef enum {
    AMDSMI_STATUS_SUCCESS = 0,
    AMDSMI_STATUS_INVAL = 1,
    AMDSMI_STATUS_NOT_SUPPORTED = 2,
    AMDSMI_STATUS_NOT_FOUND = 31,
    AMDSMI_STATUS_NOT_INIT = 32,
    AMDSMI_STATUS_DRIVER_NOT_LOADED = 34,
    AMDSMI_STATUS_INSUFFICIENT_SIZE = 41,
} amdsmi_status_t;

typedef struct {
    uint32_t year, major, minor, release;
    const char *build;
} amdsmi_version_24; /* and 25 */

typedef struct {
    uint32_t major, minor, release;
    const char *build;
} amdsmi_version_26;

typedef struct {
    uint32_t gfx_activity, umc_activity, mm_activity, reserved[13];
} amdsmi_engine_usage_t;

typedef struct {
    uint32_t current_socket_power, average_socket_power, gfx_voltage, soc_voltage, mem_voltage, power_limit;
    uint32_t reserved[11];
} amdsmi_power_info_24;

typedef struct {
    uint64_t socket_power;
    uint32_t current_socket_power, average_socket_power, gfx_voltage, soc_voltage, mem_voltage, power_limit;
    uint64_t reserved[1];
} amdsmi_power_info_25;

typedef struct {
    uint64_t socket_power;
    uint32_t current_socket_power, average_socket_power;
    uint64_t gfx_voltage, soc_voltage, mem_voltage;
    uint32_t power_limit;
    uint64_t reserved[18];
} amdsmi_power_info_26;

typedef struct {
    char market_name[256];
    uint32_t vendor_id;
    char vendor_name[64];
    uint32_t subvendor_id;
    uint64_t device_id;
    uint32_t rev_id;
    char asic_serial[32];
    uint32_t oam_id, num_of_compute_units;
    uint64_t target_graphics_version;
    uint32_t reserved[15];
} amdsmi_asic_info_24;

typedef struct {
    char market_name[256];
    uint32_t vendor_id;
    char vendor_name[256];
    uint32_t subvendor_id;
    uint64_t device_id;
    uint32_t rev_id;
    char asic_serial[256];
    uint32_t oam_id, num_of_compute_units;
    uint64_t target_graphics_version;
    uint32_t subsystem_id, reserved[21];
} amdsmi_asic_info_26; /* and 25 */

typedef struct {
    uint64_t kfd_id;
    uint32_t node_id, current_partition_id, reserved[12];
} amdsmi_kfd_info_t;

typedef struct {
    uint64_t power_cap, default_power_cap, dpm_cap, min_power_cap, max_power_cap, reserved[3];
} amdsmi_power_cap_info_t;

typedef struct {
    uint32_t drm_render, drm_card, hsa_id, hip_id;
    char hip_uuid[256];
} amdsmi_enumeration_info_t; /* from 25 on */

typedef struct {
    uint32_t process_id, pasid;
    uint64_t vram_usage, sdma_usage;
    uint32_t cu_occupancy;
} amdsmi_process_info_t;

/* Of amdsmi_gpu_metrics_t: where the partitions' activity is, and how far one partition is from the next. */
#define AMDSMI_NUM_PARTITION 472
#define AMDSMI_XCP_STATS 480
#define AMDSMI_XCP_SIZE_24 168
#define AMDSMI_XCP_SIZE_25 232
#define AMDSMI_XCP_SIZE_26 504
#define AMDSMI_MAX_NUM_XCC 8 /* gfx_busy_inst, percent, first in a partition's part */

#endif
