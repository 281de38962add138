/* Preloaded into every program of a machine whose host is hybrid: /proc/PID/cgroup then shows the line of cgroup v2
 * alone, as on a host without v1. Slurm refuses what it takes for a hybrid host.
 *
 * Calls of the C library that open a file are answered with a copy in memory; all other files are opened as they are. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { LIMIT = 1 << 16 };

/* /proc/PID/cgroup, and with a thread /proc/PID/task/TID/cgroup. */
static int is_membership(const char *path) {
    size_t length = path ? strlen(path) : 0;
    return length > 13 && !strncmp(path, "/proc/", 6) && !strcmp(path + length - 7, "/cgroup");
}

/* Returns a descriptor that reads the one line; closes the one it was given. */
static int one_line(int whole) {
    char *text = whole < 0 ? NULL : malloc(LIMIT); /* threads may have stacks of a few pages */
    size_t used = 0;
    ssize_t got;
    if (!text) return whole;
    while (used < LIMIT - 1 && (got = read(whole, text + used, LIMIT - 1 - used)) > 0) used += (size_t)got;
    text[used] = '\0';
    close(whole);
    int copy = memfd_create("membership", MFD_CLOEXEC);
    for (char *line = text; copy >= 0 && *line;) {
        size_t length = strcspn(line, "\n");
        length += line[length] == '\n';
        if (!strncmp(line, "0::", 3) && write(copy, line, length) != (ssize_t)length) break;
        line += length;
    }
    free(text);
    if (copy >= 0) lseek(copy, 0, SEEK_SET);
    return copy;
}

static void *next(const char *name) { return dlsym(RTLD_NEXT, name); }

static mode_t mode_of(int flags, va_list rest) {
    return flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0;
}

#define WRAP_OPEN(name)                                                                   \
    int name(const char *path, int flags, ...) {                                          \
        va_list rest;                                                                     \
        va_start(rest, flags);                                                            \
        mode_t mode = mode_of(flags, rest);                                               \
        va_end(rest);                                                                     \
        int (*real)(const char *, int, ...) = (int (*)(const char *, int, ...))next(#name); \
        int file = real(path, flags, mode);                                               \
        return is_membership(path) ? one_line(file) : file;                               \
    }
WRAP_OPEN(open)
WRAP_OPEN(open64)

#define WRAP_OPENAT(name)                                                                          \
    int name(int folder, const char *path, int flags, ...) {                                       \
        va_list rest;                                                                              \
        va_start(rest, flags);                                                                     \
        mode_t mode = mode_of(flags, rest);                                                        \
        va_end(rest);                                                                              \
        int (*real)(int, const char *, int, ...) = (int (*)(int, const char *, int, ...))next(#name); \
        int file = real(folder, path, flags, mode);                                                \
        return is_membership(path) ? one_line(file) : file;                                        \
    }
WRAP_OPENAT(openat)
WRAP_OPENAT(openat64)

#define WRAP_FOPEN(name)                                                                      \
    FILE *name(const char *path, const char *mode) {                                          \
        FILE *(*real)(const char *, const char *) = (FILE * (*)(const char *, const char *))next(#name); \
        if (!is_membership(path)) return real(path, mode);                                    \
        int file = open(path, O_RDONLY | O_CLOEXEC);                                          \
        return file < 0 ? NULL : fdopen(file, "r");                                           \
    }
WRAP_FOPEN(fopen)
WRAP_FOPEN(fopen64)
