/* The static side of a simulated node: what GPUs it has, read from devices.conf in the node's state directory. */
#ifndef SIM_CONFIG_H
#define SIM_CONFIG_H

#include <stddef.h>

#define SIM_MAX_GPUS 32
#define SIM_MAX_MIG 8 /* MIG devices of one GPU */
#define SIM_TEXT 96
#define SIM_PATH 512
#define SIM_NO_INSTANCE 0xFFFFFFFFu

typedef struct {
    char uuid[SIM_TEXT];
    char profile[32];
    unsigned gi, ci; /* GPU instance and compute instance ids */
    unsigned memory_mib, sm_count, slices;
    unsigned render; /* minor of /dev/dri/renderDN of a partition (AMD), 0 for none */
} sim_mig; /* or a partition of an AMD GPU, or a tile of an Intel GPU */

typedef struct {
    char uuid[SIM_TEXT];
    char name[SIM_TEXT];
    char vendor[16]; /* nvidia, amd, intel */
    char pci[32]; /* domain:bus:device.function, 8 hexadecimal digits of domain */
    unsigned minor, memory_mib, reserved_mib, power_limit_mw, idle_mw, sm_count;
    unsigned arch; /* NVML_DEVICE_ARCH_* */
    unsigned render; /* minor of /dev/dri/renderDN */
    unsigned long long unique_id; /* AMD: what the ASIC is fused with */
    int mig_enabled; /* cut into MIG instances or partitions */
    unsigned mig_count;
    sim_mig mig[SIM_MAX_MIG];
} sim_gpu;

typedef struct {
    char driver[32], nvml[32];
    unsigned amdsmi, amdsmi_major; /* generation of libamd_smi: 24, 25 or 26; the number after it */
    unsigned ze_groups; /* engine groups of libze_loader: 0 all and by class, 1 by class, 2 single, 3 a mean of all and single */
    unsigned latency_us; /* time that every call takes, slept */
    unsigned gpu_count;
    sim_gpu gpu[SIM_MAX_GPUS]; /* in PCI order: the position is the NVML index */
} sim_config;

/* Read DIR/devices.conf. Return 0, or -1 with one line about what is wrong in error. */
int sim_config_read(const char *dir, sim_config *config, char *error, size_t error_size);

/* Tell whether a GPU is of this vendor; one without a vendor is NVIDIA's. */
int sim_is(const sim_gpu *gpu, const char *vendor);

/* Return the minor of the capability file of a compute instance in DIR/mig-minors, or -1. */
int sim_mig_cap_minor(const char *dir, unsigned gpu_minor, unsigned gi, unsigned ci);

#endif
