/*
 * A preload for slurmd and slurmstepd: /proc/PID/cgroup shows its line of cgroup v2 alone, as on a host without v1.
 * Slurm's cgroup/v2 refuses a host that has both ("Hybrid mode is not supported"); nothing else is changed.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PUBLIC __attribute__((visibility("default")))
#define V2 "0::"

static int is_cgroup_file(const char *path)
{
	static const char proc[] = "/proc/", name[] = "/cgroup";
	const char *process, *rest;

	if (!path || strncmp(path, proc, sizeof(proc) - 1) != 0)
		return 0;
	process = path + sizeof(proc) - 1;
	rest = strchr(process, '/');
	return rest && rest > process && strcmp(rest, name) == 0;
}

/* Return a file in memory with the v2 lines of `fd`, which is closed; -1 where that cannot be. */
static int v2_lines(int fd)
{
	FILE *from = fdopen(fd, "r");
	int kept = memfd_create("cgroup", MFD_CLOEXEC);
	char *line = NULL;
	size_t room = 0;
	ssize_t length;

	if (!from || kept < 0) {
		if (from)
			fclose(from);
		return -1;
	}
	while ((length = getline(&line, &room, from)) > 0)
		if (strncmp(line, V2, sizeof(V2) - 1) == 0 && write(kept, line, (size_t)length) != length)
			break;
	free(line);
	fclose(from);
	lseek(kept, 0, SEEK_SET);
	return kept;
}

#define OPEN(name)                                                                                                     \
	PUBLIC int name(const char *path, int flags, ...)                                                              \
	{                                                                                                              \
		int (*real)(const char *, int, ...) = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, #name);        \
		mode_t mode = 0;                                                                                       \
		va_list more;                                                                                          \
		int fd;                                                                                                \
                                                                                                                       \
		va_start(more, flags);                                                                                 \
		if (flags & (O_CREAT | O_TMPFILE))                                                                     \
			mode = va_arg(more, mode_t);                                                                   \
		va_end(more);                                                                                          \
		fd = real(path, flags, mode);                                                                          \
		return fd >= 0 && is_cgroup_file(path) ? v2_lines(fd) : fd;                                            \
	}

OPEN(open)
OPEN(open64)

#define FOPEN(name)                                                                                                    \
	PUBLIC FILE *name(const char *path, const char *mode)                                                          \
	{                                                                                                              \
		FILE *(*real)(const char *, const char *) = (FILE * (*)(const char *, const char *)) dlsym(RTLD_NEXT,  \
															   #name);     \
		int fd;                                                                                                \
                                                                                                                       \
		if (!is_cgroup_file(path))                                                                             \
			return real(path, mode);                                                                       \
		fd = open(path, O_RDONLY | O_CLOEXEC);                                                                 \
		return fd < 0 ? NULL : fdopen(fd, mode);                                                               \
	}

FOPEN(fopen)
FOPEN(fopen64)
