/* Reads devices.conf: one tab-separated record a line, "gpu" or "mig" followed by key=value, or a setting. */
#include "sim_config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void copy(char *to, size_t size, const char *from)
{
    snprintf(to, size, "%s", from);
}

static unsigned number(const char *text)
{
    return (unsigned)strtoul(text, NULL, 10);
}

static void gpu_field(sim_gpu *gpu, const char *key, const char *value)
{
    if (!strcmp(key, "uuid")) copy(gpu->uuid, sizeof gpu->uuid, value);
    else if (!strcmp(key, "name")) copy(gpu->name, sizeof gpu->name, value);
    else if (!strcmp(key, "pci")) copy(gpu->pci, sizeof gpu->pci, value);
    else if (!strcmp(key, "minor")) gpu->minor = number(value);
    else if (!strcmp(key, "memory_mib")) gpu->memory_mib = number(value);
    else if (!strcmp(key, "reserved_mib")) gpu->reserved_mib = number(value);
    else if (!strcmp(key, "power_limit_mw")) gpu->power_limit_mw = number(value);
    else if (!strcmp(key, "idle_mw")) gpu->idle_mw = number(value);
    else if (!strcmp(key, "sm")) gpu->sm_count = number(value);
    else if (!strcmp(key, "arch")) gpu->arch = number(value);
    else if (!strcmp(key, "vendor")) copy(gpu->vendor, sizeof gpu->vendor, value);
    else if (!strcmp(key, "render")) gpu->render = number(value);
    else if (!strcmp(key, "unique")) gpu->unique_id = strtoull(value, NULL, 16);
    else if (!strcmp(key, "mig")) gpu->mig_enabled = number(value) != 0;
}

static void mig_field(sim_mig *mig, char *parent, const char *key, const char *value)
{
    if (!strcmp(key, "uuid")) copy(mig->uuid, sizeof mig->uuid, value);
    else if (!strcmp(key, "parent")) copy(parent, SIM_TEXT, value);
    else if (!strcmp(key, "profile")) copy(mig->profile, sizeof mig->profile, value);
    else if (!strcmp(key, "gi")) mig->gi = number(value);
    else if (!strcmp(key, "ci")) mig->ci = number(value);
    else if (!strcmp(key, "memory_mib")) mig->memory_mib = number(value);
    else if (!strcmp(key, "sm")) mig->sm_count = number(value);
    else if (!strcmp(key, "slices")) mig->slices = number(value);
    else if (!strcmp(key, "render")) mig->render = number(value);
}

/* Split "key=value" in place; return the value, or NULL. */
static char *split(char *field)
{
    char *equals = strchr(field, '=');
    if (!equals) return NULL;
    *equals = '\0';
    return equals + 1;
}

static const char *add_gpu(sim_config *config, char *save)
{
    if (config->gpu_count == SIM_MAX_GPUS) return "more GPUs than a simulated node can hold";
    sim_gpu *gpu = &config->gpu[config->gpu_count];
    for (char *f, *v; (f = strtok_r(NULL, "\t", &save));)
        if ((v = split(f))) gpu_field(gpu, f, v);
    if (!gpu->uuid[0] || !gpu->pci[0] || gpu->minor >= SIM_MAX_GPUS) return "a gpu needs uuid, pci and a minor below 32";
    config->gpu_count++;
    return NULL;
}

static const char *add_mig(sim_config *config, char *save)
{
    sim_mig mig = {0};
    char parent[SIM_TEXT] = "";
    for (char *f, *v; (f = strtok_r(NULL, "\t", &save));)
        if ((v = split(f))) mig_field(&mig, parent, f, v);
    for (unsigned i = 0; i < config->gpu_count; i++) {
        sim_gpu *gpu = &config->gpu[i];
        if (strcmp(gpu->uuid, parent)) continue;
        if (gpu->mig_count == SIM_MAX_MIG) return "more MIG devices than a GPU can hold";
        gpu->mig[gpu->mig_count++] = mig;
        return NULL;
    }
    return "a mig line must follow its parent's gpu line";
}

static const char *add_line(sim_config *config, char *line)
{
    char *save = NULL, *word = strtok_r(line, "\t", &save);
    if (!word || word[0] == '#') return NULL;
    if (!strcmp(word, "gpu")) return add_gpu(config, save);
    if (!strcmp(word, "mig")) return add_mig(config, save);
    char *value = strtok_r(NULL, "\t", &save);
    if (!value) return "a setting without a value";
    if (!strcmp(word, "driver")) copy(config->driver, sizeof config->driver, value);
    else if (!strcmp(word, "nvml")) copy(config->nvml, sizeof config->nvml, value);
    else if (!strcmp(word, "amdsmi")) config->amdsmi = number(value);
    else if (!strcmp(word, "amdsmi_major")) config->amdsmi_major = number(value);
    else if (!strcmp(word, "ze_groups")) config->ze_groups = number(value);
    else if (!strcmp(word, "latency_us")) config->latency_us = number(value);
    else return "an unknown setting";
    return NULL;
}

static int by_pci(const void *a, const void *b)
{
    return strcasecmp(((const sim_gpu *)a)->pci, ((const sim_gpu *)b)->pci);
}

int sim_config_read(const char *dir, sim_config *config, char *error, size_t error_size)
{
    char path[SIM_PATH], line[1024];
    snprintf(path, sizeof path, "%s/devices.conf", dir);
    FILE *file = fopen(path, "re");
    if (!file) {
        snprintf(error, error_size, "%s: %s", path, strerror(errno));
        return -1;
    }
    memset(config, 0, sizeof *config);
    config->amdsmi = 26;
    config->amdsmi_major = 7;
    const char *problem = NULL;
    int number_of_line = 0;
    while (!problem && fgets(line, sizeof line, file)) {
        number_of_line++;
        line[strcspn(line, "\n")] = '\0';
        problem = add_line(config, line);
    }
    fclose(file);
    if (problem) {
        snprintf(error, error_size, "%s line %d: %s", path, number_of_line, problem);
        return -1;
    }
    qsort(config->gpu, config->gpu_count, sizeof config->gpu[0], by_pci);
    return 0;
}

int sim_is(const sim_gpu *gpu, const char *vendor)
{
    return !strcmp(gpu->vendor[0] ? gpu->vendor : "nvidia", vendor);
}

int sim_mig_cap_minor(const char *dir, unsigned gpu_minor, unsigned gi, unsigned ci)
{
    char path[SIM_PATH], line[128], wanted[64];
    snprintf(path, sizeof path, "%s/mig-minors", dir);
    snprintf(wanted, sizeof wanted, "gpu%u/gi%u/ci%u/access", gpu_minor, gi, ci);
    FILE *file = fopen(path, "re");
    int minor = -1;
    while (file && minor < 0 && fgets(line, sizeof line, file)) {
        char name[96];
        int value;
        if (sscanf(line, "%95s %d", name, &value) == 2 && !strcmp(name, wanted)) minor = value;
    }
    if (file) fclose(file);
    return minor;
}
