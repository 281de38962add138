/* Shared by the simulated libraries of AMD and Intel GPUs: the session, the devices and what they do. */
#ifndef VENDOR_H
#define VENDOR_H

#include <stdint.h>

#include "sim_config.h"
#include "sim_faults.h"
#include "sim_state.h"

#define VENDOR_MAX_DEVICES 64

/* What the libraries answer, before each puts it in its own codes. */
typedef enum { VENDOR_OK, VENDOR_INVALID, VENDOR_NOT_INIT, VENDOR_NO_DRIVER, VENDOR_NOT_SUPPORTED, VENDOR_NOT_FOUND, VENDOR_FAULT } vendor_result;

/* Whose library this is: each defines its own. */
typedef struct {
    const char *name;
    int lists_parts; /* the parts of a cut GPU are devices of their own, as with ROCm */
} vendor_kind;

extern const vendor_kind vendor;

/* One device: a whole GPU, or a part of one. */
typedef struct {
    const sim_gpu *gpu;
    const sim_mig *part; /* NULL for a whole GPU */
} vendor_device;

typedef struct {
    uint32_t pid;
    uint64_t vram_b;
    uint64_t devices; /* bit by device index */
} vendor_process;

extern sim_config vendor_config;

vendor_result vendor_open(const char *function);
vendor_result vendor_close(void);

/* Begin a call, about a device or (NULL) about all: wait, look for faults. On VENDOR_OK the session is locked until
 * vendor_leave. VENDOR_FAULT puts the code of faults.conf, the library's own, in *code. */
vendor_result vendor_enter(const char *function, uint32_t index, vendor_device *device, unsigned long long *code);
void vendor_leave(void);

uint32_t vendor_count(void);
unsigned vendor_busy_pct(const vendor_device *device);
double vendor_mean_pct(const vendor_device *device, int64_t t0_ns, int64_t t1_ns);
uint64_t vendor_used_b(const vendor_device *device);
uint64_t vendor_total_b(const vendor_device *device);
unsigned vendor_power_w(const vendor_device *device);
uint64_t vendor_energy_uj(const vendor_device *device, int64_t now_ns);
unsigned vendor_processes(vendor_process *out, unsigned room); /* how many there are */
int vendor_devices_of(uint32_t pid, uint32_t *out, uint32_t room); /* how many there are, -1 for a pid that is not known */

#endif
