/* Engine groups, memory modules and power domains in the simulated libze_loader. */
#include "sim_ze.h"

#define KINDS 3 /* engine groups of a tile */

/* What a driver can offer, by the setting ze_groups. */
static const struct {
    unsigned count;
    zes_engine_group_t group[KINDS];
} offered[] = {
    {3, {ZES_ENGINE_GROUP_ALL, ZES_ENGINE_GROUP_COMPUTE_ALL, ZES_ENGINE_GROUP_COPY_ALL}},
    {2, {ZES_ENGINE_GROUP_COMPUTE_ALL, ZES_ENGINE_GROUP_COPY_ALL}},
    {2, {ZES_ENGINE_GROUP_COMPUTE_SINGLE, ZES_ENGINE_GROUP_COPY_SINGLE}},
    {3, {ZES_ENGINE_GROUP_ALL, ZES_ENGINE_GROUP_COMPUTE_SINGLE, ZES_ENGINE_GROUP_COPY_SINGLE}},
};
#define ALL_IS_MEAN 3 /* of these: "all engines" is a mean over all, as of drivers that add up single engines */

static ze_part engines[SIM_MAX_GPUS][ZE_MAX_TILES][KINDS], memories[SIM_MAX_GPUS][ZE_MAX_TILES], cards[SIM_MAX_GPUS];

static unsigned parts(const sim_gpu *gpu)
{
    return ze_tiles(gpu) ? ze_tiles(gpu) : 1;
}

static unsigned tile_or_whole(const sim_gpu *gpu, unsigned tile)
{
    return ze_tiles(gpu) ? tile : ZE_WHOLE;
}

#define WITHIN(handle, table) ((char *)(handle) >= (char *)(table) && (char *)(handle) < (char *)(table) + sizeof(table))

/* Run the last argument with `d` and `part`, the device and the part of it that the handle means. */
#define PART_CALL(handle, table, out, ok, ...)                                                                         \
    ze_part *part = (ze_part *)(handle);                                                                               \
    vendor_device d;                                                                                                   \
    if (!(out)) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;                                                           \
    if (!(ok)) return ZE_RESULT_ERROR_INVALID_ARGUMENT;                                                                \
    if (!WITHIN(handle, table)) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;                                            \
    ze_result_t r = ze_enter(__func__, part->gpu, &d);                                                                 \
    if (r != ZE_RESULT_SUCCESS) return r;                                                                              \
    d = ze_part_of(d.gpu, part->tile);                                                                                 \
    __VA_ARGS__;                                                                                                       \
    vendor_leave();                                                                                                    \
    return r

ze_result_t zesDeviceEnumEngineGroups(zes_device_handle_t hDevice, uint32_t *pCount, zes_engine_handle_t *phEngine)
{
    void *found[ZE_MAX_TILES * KINDS];
    uint32_t n = 0;
    unsigned gpu = ze_gpu_of(hDevice);
    vendor_device d;
    if (!pCount) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    ze_result_t r = ze_enter(__func__, gpu, &d);
    if (r != ZE_RESULT_SUCCESS) return r;
    unsigned mode = vendor_config.ze_groups % (sizeof offered / sizeof *offered);
    for (unsigned t = 0; t < parts(d.gpu); t++)
        for (unsigned k = 0; k < offered[mode].count; k++) {
            ze_part *part = &engines[gpu][t][k];
            part->gpu = gpu, part->tile = tile_or_whole(d.gpu, t), part->group = offered[mode].group[k];
            found[n++] = part;
        }
    ze_list(n, found, pCount, (void **)phEngine);
    vendor_leave();
    return r;
}

ze_result_t zesEngineGetProperties(zes_engine_handle_t hEngine, zes_engine_properties_t *pProperties)
{
    PART_CALL(hEngine, engines, pProperties, pProperties->stype == ZES_STRUCTURE_TYPE_ENGINE_PROPERTIES,
              pProperties->type = part->group, pProperties->onSubdevice = part->tile != ZE_WHOLE,
              pProperties->subdeviceId = part->tile == ZE_WHOLE ? 0 : part->tile);
}

/* Copies take half of the time of what computes. */
static double share_of_group(zes_engine_group_t group)
{
    if (group == ZES_ENGINE_GROUP_COPY_ALL || group == ZES_ENGINE_GROUP_COPY_SINGLE) return 0.5;
    return group == ZES_ENGINE_GROUP_ALL && vendor_config.ze_groups == ALL_IS_MEAN ? 0.75 : 1;
}

/* A counter begins with its first reader. */
static void add_up(ze_part *part, const vendor_device *device)
{
    int64_t now = sim_mono_ns(), since = part->since_ns ? part->since_ns : now;
    double busy = vendor_mean_pct(device, since, now) / 100 * share_of_group(part->group);
    part->active_us += busy * (double)(now - since) / 1000;
    part->since_ns = now;
}

ze_result_t zesEngineGetActivity(zes_engine_handle_t hEngine, zes_engine_stats_t *pStats)
{
    PART_CALL(hEngine, engines, pStats, 1, add_up(part, &d), pStats->activeTime = (uint64_t)part->active_us,
              pStats->timestamp = (uint64_t)(part->since_ns / 1000));
}

ze_result_t zesDeviceEnumMemoryModules(zes_device_handle_t hDevice, uint32_t *pCount, zes_mem_handle_t *phMemory)
{
    void *found[ZE_MAX_TILES];
    unsigned gpu = ze_gpu_of(hDevice);
    vendor_device d;
    if (!pCount) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    ze_result_t r = ze_enter(__func__, gpu, &d);
    if (r != ZE_RESULT_SUCCESS) return r;
    for (unsigned t = 0; t < parts(d.gpu); t++) {
        ze_part *part = &memories[gpu][t];
        part->gpu = gpu, part->tile = tile_or_whole(d.gpu, t);
        found[t] = part;
    }
    ze_list(parts(d.gpu), found, pCount, (void **)phMemory);
    vendor_leave();
    return r;
}

ze_result_t zesMemoryGetProperties(zes_mem_handle_t hMemory, zes_mem_properties_t *pProperties)
{
    PART_CALL(hMemory, memories, pProperties, pProperties->stype == ZES_STRUCTURE_TYPE_MEM_PROPERTIES,
              pProperties->type = ZES_MEM_TYPE_HBM, pProperties->location = ZES_MEM_LOC_DEVICE,
              pProperties->onSubdevice = part->tile != ZE_WHOLE, pProperties->physicalSize = vendor_total_b(&d));
}

ze_result_t zesMemoryGetState(zes_mem_handle_t hMemory, zes_mem_state_t *pState)
{
    PART_CALL(hMemory, memories, pState, pState->stype == ZES_STRUCTURE_TYPE_MEM_STATE,
              pState->health = ZES_MEM_HEALTH_OK, pState->size = vendor_total_b(&d),
              pState->free = vendor_total_b(&d) - vendor_used_b(&d));
}

ze_result_t zesDeviceGetCardPowerDomain(zes_device_handle_t hDevice, zes_pwr_handle_t *phPower)
{
    unsigned gpu = ze_gpu_of(hDevice);
    vendor_device d;
    if (!phPower) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    ze_result_t r = ze_enter(__func__, gpu, &d);
    if (r != ZE_RESULT_SUCCESS) return r;
    cards[gpu].gpu = gpu, cards[gpu].tile = ZE_WHOLE;
    *phPower = (zes_pwr_handle_t)&cards[gpu];
    vendor_leave();
    return r;
}

ze_result_t zesDeviceEnumPowerDomains(zes_device_handle_t hDevice, uint32_t *pCount, zes_pwr_handle_t *phPower)
{
    zes_pwr_handle_t card;
    if (!pCount) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    ze_result_t r = zesDeviceGetCardPowerDomain(hDevice, &card);
    if (r == ZE_RESULT_SUCCESS) ze_list(1, (void **)&card, pCount, (void **)phPower);
    return r;
}

ze_result_t zesPowerGetProperties(zes_pwr_handle_t hPower, zes_power_properties_t *pProperties)
{
    PART_CALL(hPower, cards, pProperties, pProperties->stype == ZES_STRUCTURE_TYPE_POWER_PROPERTIES,
              pProperties->onSubdevice = 0, pProperties->defaultLimit = (int32_t)d.gpu->power_limit_mw,
              pProperties->maxLimit = (int32_t)d.gpu->power_limit_mw, pProperties->minLimit = -1);
}

ze_result_t zesPowerGetEnergyCounter(zes_pwr_handle_t hPower, zes_power_energy_counter_t *pEnergy)
{
    PART_CALL(hPower, cards, pEnergy, 1, int64_t now = sim_mono_ns(); pEnergy->energy = vendor_energy_uj(&d, now);
              pEnergy->timestamp = (uint64_t)(now / 1000));
}
