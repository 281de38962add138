/* Shared by the parts of the simulated libze_loader: handles and how a call begins and ends. */
#ifndef SIM_ZE_H
#define SIM_ZE_H

#pragma GCC visibility push(default) /* the library exports the vendor's names alone */
#include <level_zero/zes_api.h>
/* Of specification 1.5, not in the header of Debian 12: oneapi-src.github.io/level-zero-spec, Sysman API. */
typedef uint32_t zes_init_flags_t;
ze_result_t ZE_APICALL zesInit(zes_init_flags_t flags);
ze_result_t ZE_APICALL zesDriverGet(uint32_t *pCount, zes_driver_handle_t *phDrivers);
ze_result_t ZE_APICALL zesDeviceGet(zes_driver_handle_t hDriver, uint32_t *pCount, zes_device_handle_t *phDevices);
#pragma GCC visibility pop

#include "vendor.h"

#define ZE_MAX_TILES SIM_MAX_MIG
#define ZE_WHOLE 0xFFFFu /* of a handle that is not of a tile */

/* What every handle points to; the kinds of handles have tables of their own. */
typedef struct {
    unsigned gpu; /* position in vendor_config */
    unsigned tile;
    zes_engine_group_t group;
    int64_t since_ns; /* up to where active_us is added up */
    double active_us;
} ze_part;

ze_result_t ze_status(vendor_result result, unsigned long long code);
/* Begin a call about a GPU by its position; on ZE_RESULT_SUCCESS the session is locked until vendor_leave. */
ze_result_t ze_enter(const char *function, unsigned gpu, vendor_device *device);
/* Return the position of a device handle, SIM_MAX_GPUS for none. */
unsigned ze_gpu_of(zes_device_handle_t handle);
unsigned ze_tiles(const sim_gpu *gpu);
/* The part of the GPU that a handle means. */
vendor_device ze_part_of(const sim_gpu *gpu, unsigned tile);
/* Fill a list as Level Zero does: a NULL array or a count of 0 asks for the number. */
void ze_list(uint32_t found, void **handles, uint32_t *count, void **out);

#endif
