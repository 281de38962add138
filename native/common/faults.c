/* Faults on demand: faults.conf in the state directory, one tab-separated fault a line, re-read when it changes.
 *
 *   driver  not_loaded            UUID|*  lost                     UUID|*  error   FUNCTION|*  CODE     
 *   epoch   N                     UUID    gone                     UUID|*  delay   FUNCTION|*  MILLISECONDS
 *                                                                  UUID    xid     SEQUENCE    CODE
 */
#include "sim_faults.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MAX_FAULTS 128

typedef struct {
    char subject[SIM_TEXT], kind[16], function[64];
    unsigned long long value;
} fault;

static fault faults[MAX_FAULTS];
static unsigned fault_count;
static struct stat seen;

static void parse(FILE *file)
{
    char line[512];
    fault_count = 0;
    while (fault_count < MAX_FAULTS && fgets(line, sizeof line, file)) {
        fault f = {0};
        char value[32] = "";
        if (sscanf(line, "%95s %15s %63s %31s", f.subject, f.kind, f.function, value) < 2) continue;
        f.value = strtoull(value, NULL, 10);
        faults[fault_count++] = f;
    }
}

void sim_faults_refresh(const char *dir)
{
    char path[SIM_PATH + 16];
    struct stat st;
    snprintf(path, sizeof path, "%s/faults.conf", dir);
    if (stat(path, &st)) {
        fault_count = 0;
        memset(&seen, 0, sizeof seen);
        return;
    }
    if (st.st_ino == seen.st_ino && st.st_size == seen.st_size && st.st_mtim.tv_sec == seen.st_mtim.tv_sec &&
        st.st_mtim.tv_nsec == seen.st_mtim.tv_nsec)
        return;
    FILE *file = fopen(path, "re");
    if (!file) return;
    parse(file);
    fclose(file);
    seen = st;
}

static int same_subject(const fault *f, const char *uuid)
{
    return !strcmp(f->subject, "*") || (uuid && !strcmp(f->subject, uuid));
}

/* A fault may name a function with or without its version suffix. */
static int same_function(const fault *f, const char *function)
{
    size_t n = strlen(f->function);
    if (!strcmp(f->function, "*")) return 1;
    return !strncmp(f->function, function, n) && (function[n] == '\0' || !strncmp(function + n, "_v", 2));
}

static const fault *find(const char *subject, const char *kind)
{
    for (unsigned i = 0; i < fault_count; i++)
        if (!strcmp(faults[i].subject, subject) && !strcmp(faults[i].kind, kind)) return &faults[i];
    return NULL;
}

int sim_fault_driver_gone(void)
{
    return find("driver", "not_loaded") != NULL;
}

unsigned sim_fault_epoch(void)
{
    for (unsigned i = 0; i < fault_count; i++)
        if (!strcmp(faults[i].subject, "epoch")) return (unsigned)strtoul(faults[i].kind, NULL, 10);
    return 0;
}

int sim_fault_device(const char *uuid, const char *kind)
{
    for (unsigned i = 0; i < fault_count; i++)
        if (same_subject(&faults[i], uuid) && !strcmp(faults[i].kind, kind)) return 1;
    return 0;
}

unsigned long long sim_fault_error(const char *uuid, const char *function)
{
    for (unsigned i = 0; i < fault_count; i++)
        if (same_subject(&faults[i], uuid) && !strcmp(faults[i].kind, "error") && same_function(&faults[i], function))
            return faults[i].value;
    return 0;
}

unsigned sim_fault_delay_ms(const char *uuid, const char *function)
{
    for (unsigned i = 0; i < fault_count; i++)
        if (same_subject(&faults[i], uuid) && !strcmp(faults[i].kind, "delay") && same_function(&faults[i], function))
            return (unsigned)faults[i].value;
    return 0;
}

int sim_fault_next_xid(unsigned long long after, sim_xid *xid)
{
    for (unsigned i = 0; i < fault_count; i++) {
        unsigned long long sequence = strtoull(faults[i].function, NULL, 10);
        if (strcmp(faults[i].kind, "xid") || sequence <= after) continue;
        xid->sequence = sequence;
        xid->code = faults[i].value;
        memcpy(xid->uuid, faults[i].subject, sizeof xid->uuid);
        return 1;
    }
    return 0;
}
