/* What the two simulated AMD libraries share. */
#ifndef SIM_AMD_H
#define SIM_AMD_H

#include "vendor.h"

/* domain << 32 | partition << 28 | bus << 8 | device << 3, as rsmi_dev_pci_id_get has it */
uint64_t amd_bdf(const vendor_device *device);
const char *amd_mode(const vendor_device *device); /* SPX, or CPX for a GPU that is cut */

#endif
