/* Maps the shared activity file, asks /proc about processes, and publishes segments. */
#include "sim_state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* The kernel is asked directly: a driver's clocks do not follow a faked clock of the program that reads it. */
static int64_t clock_ns(clockid_t id)
{
    struct timespec t;
    syscall(SYS_clock_gettime, id, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int64_t sim_mono_ns(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

int64_t sim_utc_offset_ns(sim_shared *shared)
{
    int64_t kept = atomic_load(&shared->utc_offset_ns);
    int64_t now = clock_ns(CLOCK_REALTIME) - sim_mono_ns();
    if (llabs(now - kept) < 50000000) return kept;
    atomic_store(&shared->utc_offset_ns, now);
    return now;
}

/* Give a new file its size and header. The lock ends with the process, so a killed creator leaves no trap. */
static int initialise(int fd)
{
    struct stat st;
    if (flock(fd, LOCK_EX) || fstat(fd, &st)) return -1;
    int result = 0;
    static sim_shared header; /* too large for the stack of slurmstepd's threads; a session's lock is held */
    if (st.st_size < (off_t)sizeof(sim_shared)) {
        header.version = SIM_STATE_VERSION;
        header.segments = SIM_SEGMENTS;
        header.created_ns = sim_mono_ns();
        atomic_store(&header.utc_offset_ns, clock_ns(CLOCK_REALTIME) - header.created_ns);
        header.magic = SIM_STATE_MAGIC;
        size_t size = offsetof(sim_shared, ring);
        if (pwrite(fd, &header, size, 0) != (ssize_t)size || ftruncate(fd, sizeof(sim_shared))) result = -1;
    }
    flock(fd, LOCK_UN);
    return result;
}

/* Open without O_CREAT first: in a sticky directory the kernel refuses it on another user's file. */
static int open_file(const char *path)
{
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd >= 0 || errno != ENOENT) return fd;
    fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd >= 0) fchmod(fd, 0666); /* jobs of every user write here */
    return fd < 0 && errno == EEXIST ? open(path, O_RDWR | O_CLOEXEC) : fd;
}

sim_shared *sim_state_open(const char *dir)
{
    char path[SIM_PATH];
    snprintf(path, sizeof path, "%s/activity.bin", dir);
    int fd = open_file(path);
    if (fd < 0) return NULL;
    sim_shared *shared = MAP_FAILED;
    if (!initialise(fd)) shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (shared == MAP_FAILED) return NULL;
    if (shared->magic != SIM_STATE_MAGIC || shared->version != SIM_STATE_VERSION) {
        munmap(shared, sizeof *shared);
        errno = EPROTO;
        return NULL;
    }
    return shared;
}

void sim_state_close(sim_shared *shared)
{
    if (shared) munmap(shared, sizeof *shared);
}

/* Read state and start time from /proc/PID/stat; the name in it may hold anything, so parse after its last ")". */
static int read_stat(pid_t pid, char *state, uint64_t *start_ticks)
{
    char path[32], text[1024];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return -1;
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    if (n <= 0) return -1;
    text[n] = '\0';
    char *rest = strrchr(text, ')');
    unsigned long long ticks;
    const char *format = " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu";
    if (!rest || sscanf(rest + 1, format, state, &ticks) != 2) return -1;
    *start_ticks = ticks;
    return 0;
}

uint64_t sim_start_ticks(pid_t pid)
{
    char state;
    uint64_t ticks;
    return read_stat(pid, &state, &ticks) ? 0 : ticks;
}

sim_process_state sim_process(pid_t pid, uint64_t start_ticks)
{
    char state;
    uint64_t ticks;
    if (read_stat(pid, &state, &ticks) || ticks != start_ticks) return SIM_PROCESS_DEAD;
    if (state == 'Z' || state == 'X') return SIM_PROCESS_DEAD;
    return state == 'T' || state == 't' ? SIM_PROCESS_STOPPED : SIM_PROCESS_RUNNING;
}

/* Make room: move a finished segment's energy to the ring's sum. Return 0 when the slot must not be taken. */
static int evict(sim_ring *ring, sim_segment *old, unsigned idle_mw)
{
    if (!atomic_load(&old->generation)) return 1;
    int64_t end = atomic_load(&old->t1_ns);
    if (!end) {
        if (sim_process(old->pid, old->start_ticks) != SIM_PROCESS_DEAD) return 0;
        end = atomic_load(&old->beat_ns);
    }
    atomic_store(&old->generation, 0);
    if (old->power_mw > idle_mw)
        atomic_fetch_add(&ring->evicted_energy_uj,
                         (uint64_t)((double)(old->power_mw - idle_mw) * (double)(end - old->t0_ns) * 1e-6));
    return 1;
}

sim_segment *sim_segment_open(sim_shared *shared, unsigned minor, unsigned idle_mw, const sim_segment *values)
{
    sim_ring *ring = &shared->ring[minor];
    for (int tries = 0; tries < SIM_SEGMENTS; tries++) {
        uint64_t position = atomic_fetch_add(&ring->head, 1);
        sim_segment *slot = &ring->segment[position % SIM_SEGMENTS];
        if (!evict(ring, slot, idle_mw)) continue;
        slot->t0_ns = values->t0_ns;
        atomic_store(&slot->t1_ns, 0);
        atomic_store(&slot->beat_ns, values->t0_ns);
        atomic_store(&slot->frozen, 0);
        slot->start_ticks = values->start_ticks;
        slot->pid = values->pid;
        slot->gi = values->gi;
        slot->ci = values->ci;
        slot->flags = values->flags;
        slot->mem_mib = values->mem_mib;
        slot->power_mw = values->power_mw;
        slot->util_pct = values->util_pct;
        slot->sm_ratio = values->sm_ratio;
        atomic_store(&slot->generation, position + 1);
        return slot;
    }
    return NULL;
}
