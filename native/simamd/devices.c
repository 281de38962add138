/* How AMD's libraries name a device. */
#include "sim_amd.h"

#include <stdio.h>

const vendor_kind vendor = {.name = "amd", .lists_parts = 1};

uint64_t amd_bdf(const vendor_device *device)
{
    unsigned domain = 0, bus = 0, slot = 0, function = 0;
    sscanf(device->gpu->pci, "%x:%x:%x.%x", &domain, &bus, &slot, &function);
    uint64_t partition = device->part ? device->part->gi : 0;
    return (uint64_t)domain << 32 | partition << 28 | (uint64_t)bus << 8 | (uint64_t)slot << 3 | function;
}

const char *amd_mode(const vendor_device *device)
{
    return device->part ? "CPX" : "SPX";
}
