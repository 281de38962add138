/* What a job does beside its GPUs: real CPU time and real host memory. */
#include "load.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PERIOD_NS 50000000ll

void load_hold_memory(long mib)
{
    if (mib <= 0) return;
    char *memory = malloc((size_t)mib << 20);
    if (!memory) load_die("no %ld MiB of host memory", mib);
    memset(memory, 1, (size_t)mib << 20); /* touched, so that it is resident */
}

/* Busy for a share of each period. */
static void *burn(void *share)
{
    int64_t busy = (int64_t)(*(double *)share * PERIOD_NS);
    for (;;) {
        struct timespec t;
        int64_t start = sim_mono_ns();
        do clock_gettime(CLOCK_MONOTONIC, &t);
        while ((int64_t)t.tv_sec * 1000000000 + t.tv_nsec - start < busy);
        if (busy < PERIOD_NS) nanosleep(&(struct timespec){0, PERIOD_NS - busy}, NULL);
    }
    return NULL;
}

void load_burn_cpu(double fraction)
{
    static double share;
    if (fraction <= 0) return;
    int threads = (int)ceil(fraction);
    share = fraction / threads;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* signals wake the thread that plays the phases */
    for (int i = 0; i < threads; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, burn, &share)) load_die("cannot start a thread to burn CPU");
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}
