/* Shared by the parts of the simulated libnvidia-ml: the session, the faults and how a call begins and ends. */
#ifndef SIM_H
#define SIM_H

#define NVML_NO_UNVERSIONED_FUNC_DEFS /* old and new versions of a function stand side by side, as in a driver */
#pragma GCC visibility push(default) /* the library exports NVML's names alone */
#include <nvml.h>
#pragma GCC visibility pop

#include "sim_config.h"
#include "sim_faults.h"
#include "sim_state.h"

#define SIM_CELL_NS 166666667ll /* the driver's own sampling grid, a sixth of a second */

/* What a handle means at this moment. mig is NULL for a whole GPU. */
typedef struct {
    const sim_gpu *gpu;
    const sim_mig *mig;
    unsigned index; /* NVML index, or the MIG device's index under its parent */
} sim_target;

typedef struct {
    char dir[SIM_PATH];
    sim_config config;
    sim_shared *shared;
} sim_session;

extern sim_session sim;

/* Begin a call about the library as a whole, or about a device: wait the call's latency, look for faults, resolve the
 * handle. On NVML_SUCCESS the session is locked until sim_leave; on anything else it is not. */
nvmlReturn_t sim_enter(const char *function);
nvmlReturn_t sim_enter_device(const char *function, nvmlDevice_t device, sim_target *target);
nvmlReturn_t sim_leave(nvmlReturn_t result);

/* Return the handle of a UUID; the same one for as long as the process lives. */
nvmlDevice_t sim_handle(const char *uuid);
/* Count of GPUs that answer, and the GPU at an NVML index; NULL when there is none. */
unsigned sim_visible_count(void);
const sim_gpu *sim_visible(unsigned index);

/* Fill in a GPU's address on the PCI bus. */
void sim_pci_info(const sim_gpu *gpu, nvmlPciInfo_t *pci);

/* Copy text as NVML does: INSUFFICIENT_SIZE when it does not fit. */
nvmlReturn_t sim_text(char *to, unsigned length, const char *from);

#endif
