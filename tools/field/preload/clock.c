/* Preloaded into every program of a machine whose clock is wrong: CLOCK_REALTIME is ahead by the nanoseconds in FILE,
 * an int64 that may change at any moment. Linux has no namespace for this clock.
 *
 * A time that a program waits for is brought back before the kernel sees it. Times of files stay those of the kernel. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#ifndef FILE_OF_OFFSET
#define FILE_OF_OFFSET "/usr/local/lib/clock-offset"
#endif
enum { SECOND = 1000000000 };

static const volatile int64_t *offset;
static int (*next_clock)(clockid_t, struct timespec *);

__attribute__((constructor)) static void begin(void) {
    int file = open(FILE_OF_OFFSET, O_RDONLY | O_CLOEXEC);
    if (file >= 0) {
        void *page = mmap(NULL, sizeof *offset, PROT_READ, MAP_SHARED, file, 0);
        if (page != MAP_FAILED) offset = page;
        close(file);
    }
    next_clock = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
}

static struct timespec moved(struct timespec at, int64_t by_ns) {
    int64_t ns = at.tv_nsec + by_ns % SECOND;
    at.tv_sec += by_ns / SECOND + (ns < 0 ? -1 : ns >= SECOND);
    at.tv_nsec = ns < 0 ? ns + SECOND : ns >= SECOND ? ns - SECOND : ns;
    return at;
}

/* A deadline as the kernel's clock has it. One of CLOCK_MONOTONIC is no time since 1970 and is left as it is. */
static struct timespec deadline(const struct timespec *at) {
    return offset && at->tv_sec > SECOND ? moved(*at, -*offset) : *at;
}

int clock_gettime(clockid_t id, struct timespec *now) {
    int failed = next_clock ? next_clock(id, now) : (int)syscall(SYS_clock_gettime, id, now);
    if (!failed && offset && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) *now = moved(*now, *offset);
    return failed;
}

int gettimeofday(struct timeval *now, void *zone) {
    struct timespec at;
    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &at)) return -1;
    now->tv_sec = at.tv_sec;
    now->tv_usec = at.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *now) {
    struct timespec at;
    if (clock_gettime(CLOCK_REALTIME, &at)) return -1;
    if (now) *now = at.tv_sec;
    return at.tv_sec;
}

int timespec_get(struct timespec *now, int base) {
    return base == TIME_UTC && !clock_gettime(CLOCK_REALTIME, now) ? base : 0;
}

/* Versions are named where the C library has an older function of the same name. */
#define NEXT(name, version) __typeof__(name) *next = (__typeof__(name) *)dlvsym(RTLD_NEXT, #name, version)

int pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex, const struct timespec *at) {
    NEXT(pthread_cond_timedwait, "GLIBC_2.3.2");
    struct timespec until = deadline(at);
    return next(cond, mutex, &until);
}

int sem_timedwait(sem_t *sem, const struct timespec *at) {
    NEXT(sem_timedwait, "GLIBC_2.34");
    struct timespec until = deadline(at);
    return next(sem, &until);
}

int pthread_mutex_timedlock(pthread_mutex_t *mutex, const struct timespec *at) {
    NEXT(pthread_mutex_timedlock, "GLIBC_2.34");
    struct timespec until = deadline(at);
    return next(mutex, &until);
}

int clock_nanosleep(clockid_t id, int flags, const struct timespec *at, struct timespec *left) {
    struct timespec until = flags & TIMER_ABSTIME && id == CLOCK_REALTIME ? deadline(at) : *at;
    NEXT(clock_nanosleep, "GLIBC_2.17");
    return next(id, flags, &until, left);
}

int timerfd_settime(int file, int flags, const struct itimerspec *set, struct itimerspec *before) {
    struct itimerspec until = *set;
    if (flags & TFD_TIMER_ABSTIME) until.it_value = deadline(&set->it_value);
    NEXT(timerfd_settime, "GLIBC_2.8");
    return next(file, flags, &until, before);
}
