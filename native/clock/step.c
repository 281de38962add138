/* Steps the wall clock of one program: preloaded, it adds the seconds in the file $GPUWASTE_SIM_CLOCK (an int64, read
 * anew each time) to what the program is told. The steady clock and all waiting stay as they are. */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

static const volatile int64_t *offset_s;

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("GPUWASTE_SIM_CLOCK");
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0) return;
    void *mapped = mmap(NULL, sizeof *offset_s, PROT_READ, MAP_SHARED, fd, 0);
    if (mapped != MAP_FAILED) offset_s = mapped;
    close(fd);
}

EXPORT int clock_gettime(clockid_t id, struct timespec *t)
{
    int failed = (int)syscall(SYS_clock_gettime, id, t);
    if (!failed && offset_s && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) t->tv_sec += *offset_s;
    return failed;
}

EXPORT int gettimeofday(struct timeval *restrict t, void *restrict zone)
{
    struct timespec now;
    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &now)) return -1;
    t->tv_sec = now.tv_sec;
    t->tv_usec = now.tv_nsec / 1000;
    return 0;
}

EXPORT time_t time(time_t *out)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (out) *out = now.tv_sec;
    return now.tv_sec;
}
