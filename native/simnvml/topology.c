/* Where a GPU is: its CPUs and its links to the others; and the clocks that it can be set to. What slurmd asks with
 * AutoDetect=nvml. */
#include "sim.h"

#include <limits.h>
#include <string.h>
#include <sys/sysinfo.h>

#define LONG_BITS (sizeof(unsigned long) * CHAR_BIT)
#define MEMORY_MHZ 1215u
#define GRAPHICS_MHZ 1410u /* the highest; each further one is 15 less */
#define GRAPHICS_STEP_MHZ 15u
#define GRAPHICS_COUNT 81u

/* A node has one socket: all its CPUs are near to each GPU. */
nvmlReturn_t nvmlDeviceGetCpuAffinity(nvmlDevice_t device, unsigned int size, unsigned long *cpus)
{
    sim_target t;
    if (!cpus || !size) return NVML_ERROR_INVALID_ARGUMENT;
    nvmlReturn_t r = sim_enter_device(__func__, device, &t);
    if (r != NVML_SUCCESS) return r;
    memset(cpus, 0, size * sizeof *cpus);
    unsigned count = (unsigned)get_nprocs();
    for (unsigned cpu = 0; cpu < count && cpu < size * LONG_BITS; cpu++) cpus[cpu / LONG_BITS] |= 1ul << cpu % LONG_BITS;
    return sim_leave(r);
}

/* Each lane leads to one of the other GPUs, in the order of their indices; NULL for a lane that leads nowhere. */
static const sim_gpu *remote(const sim_target *t, unsigned link)
{
    return sim_visible(link < t->index ? link : link + 1);
}

static nvmlReturn_t link_of(const char *function, nvmlDevice_t device, unsigned link, sim_target *t)
{
    if (link >= NVML_NVLINK_MAX_LINKS) return NVML_ERROR_INVALID_ARGUMENT;
    nvmlReturn_t r = sim_enter_device(function, device, t);
    if (r != NVML_SUCCESS) return r;
    return t->mig ? sim_leave(NVML_ERROR_NOT_SUPPORTED) : r;
}

nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t device, unsigned int link, nvmlEnableState_t *active)
{
    sim_target t;
    if (!active) return NVML_ERROR_INVALID_ARGUMENT;
    nvmlReturn_t r = link_of(__func__, device, link, &t);
    if (r != NVML_SUCCESS) return r;
    *active = remote(&t, link) ? NVML_FEATURE_ENABLED : NVML_FEATURE_DISABLED;
    return sim_leave(r);
}

nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t device, unsigned int link, nvmlPciInfo_t *pci)
{
    sim_target t;
    if (!pci) return NVML_ERROR_INVALID_ARGUMENT;
    nvmlReturn_t r = link_of(__func__, device, link, &t);
    if (r != NVML_SUCCESS) return r;
    const sim_gpu *other = remote(&t, link);
    if (!other) return sim_leave(NVML_ERROR_NOT_SUPPORTED);
    sim_pci_info(other, pci);
    return sim_leave(r);
}

/* Hand out a list as NVML does: the caller says how much room there is, and learns how much is needed. */
static nvmlReturn_t list(unsigned *count, unsigned *to, unsigned have, unsigned first, unsigned step)
{
    unsigned room = *count;
    *count = have;
    if (!to || room < have) return NVML_ERROR_INSUFFICIENT_SIZE;
    for (unsigned i = 0; i < have; i++) to[i] = first - i * step;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetSupportedMemoryClocks(nvmlDevice_t device, unsigned int *count, unsigned int *clocks_mhz)
{
    sim_target t;
    if (!count) return NVML_ERROR_INVALID_ARGUMENT;
    nvmlReturn_t r = sim_enter_device(__func__, device, &t);
    return r != NVML_SUCCESS ? r : sim_leave(list(count, clocks_mhz, 1, MEMORY_MHZ, 0));
}

nvmlReturn_t nvmlDeviceGetSupportedGraphicsClocks(nvmlDevice_t device, unsigned int memory_mhz, unsigned int *count,
                                                  unsigned int *clocks_mhz)
{
    sim_target t;
    if (!count) return NVML_ERROR_INVALID_ARGUMENT;
    nvmlReturn_t r = sim_enter_device(__func__, device, &t);
    if (r != NVML_SUCCESS) return r;
    if (memory_mhz != MEMORY_MHZ) return sim_leave(NVML_ERROR_NOT_FOUND);
    return sim_leave(list(count, clocks_mhz, GRAPHICS_COUNT, GRAPHICS_MHZ, GRAPHICS_STEP_MHZ));
}
