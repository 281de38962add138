/* Which GPUs the job was given: from the command line, the task prolog's variable or CUDA_VISIBLE_DEVICES. */
#include "load.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const sim_gpu *by_minor(const sim_config *config, unsigned minor)
{
    for (unsigned i = 0; i < config->gpu_count; i++)
        if (config->gpu[i].minor == minor) return &config->gpu[i];
    return NULL;
}

static int by_uuid(const sim_config *config, const char *uuid, load_gpu *out)
{
    for (unsigned i = 0; i < config->gpu_count; i++) {
        out->gpu = &config->gpu[i];
        if (!strcmp(out->gpu->uuid, uuid)) return 1;
        for (unsigned k = 0; k < out->gpu->mig_count; k++) {
            out->mig = &out->gpu->mig[k];
            if (!strcmp(out->mig->uuid, uuid)) return 1;
        }
        out->mig = NULL;
    }
    return 0;
}

/* Find the compute instance whose capability file has this minor. */
static int by_cap(const char *dir, const sim_config *config, int cap, load_gpu *out)
{
    for (unsigned i = 0; i < config->gpu_count; i++)
        for (unsigned k = 0; k < config->gpu[i].mig_count; k++) {
            out->gpu = &config->gpu[i];
            out->mig = &out->gpu->mig[k];
            if (sim_mig_cap_minor(dir, out->gpu->minor, out->mig->gi, out->mig->ci) == cap) return 1;
        }
    return 0;
}

static int by_instance(const sim_gpu *gpu, unsigned gi, unsigned ci, load_gpu *out)
{
    out->gpu = gpu;
    for (unsigned k = 0; gpu && k < gpu->mig_count; k++) {
        out->mig = &gpu->mig[k];
        if (out->mig->gi == gi && out->mig->ci == ci) return 1;
    }
    return 0;
}

static int find(const char *dir, const sim_config *config, const char *item, int positions, load_gpu *out)
{
    unsigned minor, gi, ci;
    int cap;
    if (!strncmp(item, "GPU-", 4) || !strncmp(item, "MIG-", 4)) return by_uuid(config, item, out);
    if (sscanf(item, "cap%d", &cap) == 1) return by_cap(dir, config, cap, out);
    if (sscanf(item, "%u/%u/%u", &minor, &gi, &ci) == 3) return by_instance(by_minor(config, minor), gi, ci, out);
    if (!isdigit((unsigned char)item[0])) return 0;
    minor = (unsigned)strtoul(item, NULL, 10);
    if (positions) out->gpu = minor < config->gpu_count ? &config->gpu[minor] : NULL;
    else out->gpu = by_minor(config, minor);
    return out->gpu != NULL;
}

unsigned load_targets(const char *dir, const sim_config *config, const char *list, load_gpu *gpus)
{
    int positions = 0;
    if (!list) list = getenv("GPUWASTE_SIM_MINORS");
    if (!list) {
        list = getenv("CUDA_VISIBLE_DEVICES");
        positions = 1;
    }
    if (!list || !*list || !strcmp(list, "none") || !strcmp(list, "NoDevFiles")) return 0;
    char *copy = strdup(list), *rest = copy, *item;
    unsigned n = 0;
    while ((item = strsep(&rest, ","))) {
        if (!*item) continue;
        if (n == SIM_MAX_GPUS) load_die("more than %d GPUs", SIM_MAX_GPUS);
        memset(&gpus[n], 0, sizeof gpus[n]);
        if (!find(dir, config, item, positions, &gpus[n])) load_die("no GPU '%s' in %s/devices.conf", item, dir);
        gpus[n].position = n;
        n++;
    }
    free(copy);
    return n;
}
