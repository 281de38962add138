/* Initialisation, handles, and the frame that every call runs in. */
#include "sim.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MAX_HANDLES (SIM_MAX_GPUS * (SIM_MAX_MIG + 1) * 4) /* room for layouts that change while NVML is open */

/* What a caller's nvmlDevice_t points to: a name, looked up at every call, so that a layout may change under it. */
struct nvmlDevice_st {
    char uuid[SIM_TEXT];
};

sim_session sim;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned init_count, init_epoch;
static struct nvmlDevice_st handles[MAX_HANDLES];
static unsigned handle_count;
static struct stat config_seen;
static char client_file[SIM_PATH + 64];

static void sleep_ns(int64_t ns)
{
    struct timespec t = {ns / 1000000000, ns % 1000000000};
    nanosleep(&t, NULL);
}

/* Re-read devices.conf when it changed: MIG devices come and go while NVML is open. */
static int refresh_config(void)
{
    char path[SIM_PATH + 16], error[SIM_PATH + 128];
    struct stat st;
    snprintf(path, sizeof path, "%s/devices.conf", sim.dir);
    if (stat(path, &st)) return -1;
    if (st.st_ino == config_seen.st_ino && st.st_mtim.tv_sec == config_seen.st_mtim.tv_sec &&
        st.st_mtim.tv_nsec == config_seen.st_mtim.tv_nsec)
        return 0;
    static sim_config next; /* too large for a caller's stack; the lock is held */
    if (sim_config_read(sim.dir, &next, error, sizeof error)) {
        fprintf(stderr, "simulated NVML: %s\n", error);
        return -1;
    }
    sim.config = next;
    config_seen = st;
    return 0;
}

/* An open client is a file, so that a test can see who keeps a GPU from being reset. */
static void client_enter(void)
{
    char dir[SIM_PATH + 16];
    snprintf(dir, sizeof dir, "%s/clients", sim.dir);
    if (!mkdir(dir, 01777)) chmod(dir, 01777);
    snprintf(client_file, sizeof client_file, "%s/%d.%llu", dir, (int)getpid(),
             (unsigned long long)sim_start_ticks(getpid()));
    int fd = open(client_file, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    if (fd >= 0) close(fd);
}

static nvmlReturn_t first_init(void)
{
    const char *dir = getenv("GPUWASTE_SIM_DIR");
    if (!dir || !*dir) return NVML_ERROR_DRIVER_NOT_LOADED;
    snprintf(sim.dir, sizeof sim.dir, "%s", dir);
    memset(&config_seen, 0, sizeof config_seen);
    sim_faults_refresh(sim.dir);
    if (sim_fault_driver_gone() || refresh_config()) return NVML_ERROR_DRIVER_NOT_LOADED;
    nvmlReturn_t fault = (nvmlReturn_t)sim_fault_error(NULL, "nvmlInit");
    if (fault != NVML_SUCCESS) return fault;
    sim.shared = sim_state_open(sim.dir);
    if (!sim.shared) {
        perror("simulated NVML: activity.bin");
        return NVML_ERROR_DRIVER_NOT_LOADED;
    }
    init_epoch = sim_fault_epoch();
    client_enter();
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlInitWithFlags(unsigned int flags)
{
    (void)flags; /* NO_GPUS and NO_ATTACH change nothing here */
    pthread_mutex_lock(&lock);
    nvmlReturn_t result = init_count ? NVML_SUCCESS : first_init();
    if (result == NVML_SUCCESS) init_count++;
    unsigned ms = sim_fault_delay_ms(NULL, "nvmlInit");
    pthread_mutex_unlock(&lock);
    sleep_ns((int64_t)ms * 1000000);
    return result;
}

nvmlReturn_t nvmlInit_v2(void)
{
    return nvmlInitWithFlags(0);
}

nvmlReturn_t nvmlInit(void)
{
    return nvmlInitWithFlags(0);
}

nvmlReturn_t nvmlShutdown(void)
{
    pthread_mutex_lock(&lock);
    nvmlReturn_t result = init_count ? NVML_SUCCESS : NVML_ERROR_UNINITIALIZED;
    if (init_count && !--init_count) {
        unlink(client_file);
        sim_state_close(sim.shared);
        sim.shared = NULL;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

/* Wait the call's time outside the lock; a long wait ends early when its fault is cleared. Enters and leaves locked. */
static void wait_latency(const char *uuid, const char *function)
{
    int64_t start = sim_mono_ns();
    for (;;) {
        int64_t wait = (int64_t)sim_fault_delay_ms(uuid, function) * 1000000;
        if (!wait) wait = (int64_t)sim.config.latency_us * 1000;
        wait -= sim_mono_ns() - start;
        if (wait <= 0) return;
        pthread_mutex_unlock(&lock);
        sleep_ns(wait < 50000000 ? wait : 50000000);
        pthread_mutex_lock(&lock);
        sim_faults_refresh(sim.dir);
    }
}

/* Begin any call; a driver that went away or was reset under us answers nothing until NVML is initialised again. */
static nvmlReturn_t enter(const char *function, const char *uuid)
{
    if (!init_count) return NVML_ERROR_UNINITIALIZED;
    sim_faults_refresh(sim.dir);
    wait_latency(uuid, function);
    if (!init_count) return NVML_ERROR_UNINITIALIZED;
    if (sim_fault_driver_gone()) return NVML_ERROR_UNKNOWN;
    if (sim_fault_epoch() != init_epoch) return NVML_ERROR_UNINITIALIZED;
    refresh_config(); /* a broken file keeps the last good layout */
    return NVML_SUCCESS;
}

nvmlReturn_t sim_leave(nvmlReturn_t result)
{
    pthread_mutex_unlock(&lock);
    return result;
}

nvmlReturn_t sim_enter(const char *function)
{
    pthread_mutex_lock(&lock);
    nvmlReturn_t result = enter(function, NULL);
    if (result == NVML_SUCCESS) result = (nvmlReturn_t)sim_fault_error(NULL, function);
    return result == NVML_SUCCESS ? result : sim_leave(result);
}

static int resolve(const char *uuid, sim_target *target)
{
    for (unsigned i = 0; i < sim.config.gpu_count; i++) {
        const sim_gpu *gpu = &sim.config.gpu[i];
        *target = (sim_target){.gpu = gpu, .index = i};
        if (!strcmp(gpu->uuid, uuid)) return 1;
        for (unsigned k = 0; k < gpu->mig_count; k++) {
            *target = (sim_target){.gpu = gpu, .mig = &gpu->mig[k], .index = k};
            if (!strcmp(gpu->mig[k].uuid, uuid)) return 1;
        }
    }
    return 0;
}

nvmlReturn_t sim_enter_device(const char *function, nvmlDevice_t device, sim_target *target)
{
    pthread_mutex_lock(&lock);
    int known = device >= handles && device < handles + handle_count;
    nvmlReturn_t result = enter(function, known ? device->uuid : NULL);
    if (result == NVML_SUCCESS) {
        if (!known) result = NVML_ERROR_INVALID_ARGUMENT;
        else if (!resolve(device->uuid, target)) result = NVML_ERROR_INVALID_ARGUMENT;
        else if (sim_fault_device(target->gpu->uuid, "lost")) result = NVML_ERROR_GPU_IS_LOST;
        else if (sim_fault_device(target->gpu->uuid, "gone")) result = NVML_ERROR_GPU_IS_LOST;
        else result = (nvmlReturn_t)sim_fault_error(device->uuid, function);
    }
    return result == NVML_SUCCESS ? result : sim_leave(result);
}

nvmlDevice_t sim_handle(const char *uuid)
{
    for (unsigned i = 0; i < handle_count; i++)
        if (!strcmp(handles[i].uuid, uuid)) return &handles[i];
    if (handle_count == MAX_HANDLES) return NULL;
    snprintf(handles[handle_count].uuid, SIM_TEXT, "%s", uuid);
    return &handles[handle_count++];
}

/* NVML lists NVIDIA's GPUs alone. */
static int listed(const sim_gpu *gpu)
{
    return sim_is(gpu, "nvidia") && !sim_fault_device(gpu->uuid, "gone");
}

unsigned sim_visible_count(void)
{
    unsigned n = 0;
    for (unsigned i = 0; i < sim.config.gpu_count; i++) n += (unsigned)listed(&sim.config.gpu[i]);
    return n;
}

const sim_gpu *sim_visible(unsigned index)
{
    for (unsigned i = 0; i < sim.config.gpu_count; i++)
        if (listed(&sim.config.gpu[i]) && !index--) return &sim.config.gpu[i];
    return NULL;
}

nvmlReturn_t sim_text(char *to, unsigned length, const char *from)
{
    if (!to) return NVML_ERROR_INVALID_ARGUMENT;
    if (strlen(from) >= length) return NVML_ERROR_INSUFFICIENT_SIZE;
    memcpy(to, from, strlen(from) + 1);
    return NVML_SUCCESS;
}
