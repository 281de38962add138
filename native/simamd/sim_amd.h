/* Shared by the two simulated AMD libraries: the session, the devices and what they do. */
#ifndef SIM_AMD_H
#define SIM_AMD_H

#include <stdint.h>

#include "sim_config.h"
#include "sim_faults.h"
#include "sim_state.h"

#define AMD_MAX_DEVICES 64

/* What the libraries answer, before each puts it in its own codes. */
typedef enum { AMD_OK, AMD_INVALID, AMD_NOT_INIT, AMD_NO_DRIVER, AMD_NOT_SUPPORTED, AMD_NOT_FOUND, AMD_FAULT } amd_result;

/* One device as ROCm counts them: a whole GPU, or a partition of one. */
typedef struct {
    const sim_gpu *gpu;
    const sim_mig *part; /* NULL for a whole GPU */
} amd_device;

typedef struct {
    uint32_t pid;
    uint64_t vram_b;
    uint64_t devices; /* bit by device index */
} amd_process;

extern sim_config amd_config;

amd_result amd_open(const char *function);
amd_result amd_close(void);

/* Begin a call, about a device or (NULL) about all: wait, look for faults. On AMD_OK the session is locked until
 * amd_leave. AMD_FAULT puts the code of faults.conf, the library's own, in *code. */
amd_result amd_enter(const char *function, uint32_t index, amd_device *device, unsigned long long *code);
void amd_leave(void);

uint32_t amd_count(void);
unsigned amd_busy_pct(const amd_device *device);
uint64_t amd_used_b(const amd_device *device);
uint64_t amd_total_b(const amd_device *device);
unsigned amd_power_w(const amd_device *device);
uint64_t amd_energy_uj(const amd_device *device);
unsigned amd_processes(amd_process *out, unsigned room); /* how many there are */
int amd_devices_of(uint32_t pid, uint32_t *out, uint32_t room); /* how many there are, -1 for a pid that is not known */
/* domain << 32 | partition << 28 | bus << 8 | device << 3, as rsmi_dev_pci_id_get has it */
uint64_t amd_bdf(const amd_device *device);
const char *amd_mode(const amd_device *device); /* SPX, or CPX for a GPU that is cut */

#endif
