/* The command line. */
#include "load.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: gpuwaste-load [option]... plays a job's use of its GPUs on a simulated node\n"
    "  --gpus LIST          minors, GPU-/MIG- UUIDs, MINOR/GI/CI or capN; default GPUWASTE_SIM_MINORS, else the\n"
    "                       positions in CUDA_VISIBLE_DEVICES; 'none' for no GPU\n"
    "  --phase PHASE        SECONDS:UTIL[:MEM_MIB[:POWER_W[:SM_RATIO]]], repeatable, played in sequence\n"
    "  --per-gpu PLANS      \"0=PHASE,PHASE;2=PHASE\": plans by position among the job's GPUs; others use --phase\n"
    "  --no-process-on LIST positions whose process NVML does not list\n"
    "  --cpu FRACTION       cores to keep busy, e.g. 1 or 0.5\n"
    "  --host-mem MIB       host memory to hold\n"
    "  --for SECONDS        run at least this long\n"
    "  --log FILE           append what is done, one JSON line a change; default a file in $GPUWASTE_SIM_LOG\n";

void load_die(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fprintf(stderr, "gpuwaste-load: ");
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    exit(2);
}

static double number(const char *text, const char *what, double low, double high)
{
    char *end;
    errno = 0;
    double value = strtod(text, &end);
    if (end == text || *end || errno || isnan(value) || value < low || value > high)
        load_die("%s: '%s' is not a number from %g to %g", what, text, low, high);
    return value;
}

/* Parse SECONDS:UTIL[:MEM_MIB[:POWER_W[:SM_RATIO]]]; an empty field keeps its default. */
static void add_phase(load_plan *plan, const char *text)
{
    char copy[128], *rest = copy, *field[5] = {0};
    if (plan->count == MAX_PHASES) load_die("more than %d phases for one GPU", MAX_PHASES);
    snprintf(copy, sizeof copy, "%s", text);
    for (int i = 0; i < 5 && rest; i++) field[i] = strsep(&rest, ":");
    if (rest || !field[1]) load_die("phase '%s' is not SECONDS:UTIL[:MEM_MIB[:POWER_W[:SM_RATIO]]]", text);
    load_phase p = {.mem_mib = -1, .power_w = -1, .sm_ratio = -1};
    p.seconds = number(field[0], "phase seconds", 0, 1e8);
    p.util_pct = number(field[1], "phase utilization", 0, 100);
    if (field[2] && *field[2]) p.mem_mib = (int)number(field[2], "phase memory", 0, 1e7);
    if (field[3] && *field[3]) p.power_w = (int)number(field[3], "phase power", 0, 5000);
    if (field[4] && *field[4]) p.sm_ratio = number(field[4], "phase SM ratio", 0, 1);
    plan->phase[plan->count++] = p;
}

static void per_gpu(load_options *o, const char *text)
{
    char *copy = strdup(text), *rest = copy, *one, *item;
    while ((one = strsep(&rest, ";"))) {
        char *phases = strchr(one, '=');
        if (!phases) load_die("--per-gpu '%s': each plan is POSITION=PHASE,PHASE", text);
        *phases++ = '\0';
        unsigned k = (unsigned)number(one, "--per-gpu position", 0, SIM_MAX_GPUS - 1);
        o->has_own[k] = 1;
        while ((item = strsep(&phases, ",")))
            if (*item) add_phase(&o->own[k], item);
    }
    free(copy);
}

static void hidden(load_options *o, const char *text)
{
    char *copy = strdup(text), *rest = copy, *item;
    while ((item = strsep(&rest, ",")) && o->hidden_count < SIM_MAX_GPUS)
        o->hidden[o->hidden_count++] = (unsigned)number(item, "--no-process-on position", 0, SIM_MAX_GPUS - 1);
    free(copy);
}

void load_parse(int argc, char **argv, load_options *o)
{
    static const struct option longs[] = {
        {"gpus", required_argument, NULL, 'g'},     {"phase", required_argument, NULL, 'p'},
        {"per-gpu", required_argument, NULL, 'k'},  {"no-process-on", required_argument, NULL, 'n'},
        {"cpu", required_argument, NULL, 'c'},      {"host-mem", required_argument, NULL, 'm'},
        {"for", required_argument, NULL, 'f'},      {"log", required_argument, NULL, 'l'},
        {"help", no_argument, NULL, 'h'},           {NULL, 0, NULL, 0}};
    int c;
    while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
        switch (c) {
        case 'g': o->gpus = optarg; break;
        case 'p': add_phase(&o->common, optarg); break;
        case 'k': per_gpu(o, optarg); break;
        case 'n': hidden(o, optarg); break;
        case 'c': o->cpu_fraction = number(optarg, "--cpu", 0, 64); break;
        case 'm': o->host_mem_mib = (long)number(optarg, "--host-mem", 0, 1e6); break;
        case 'f': o->for_seconds = number(optarg, "--for", 0, 1e8); break;
        case 'l': o->log_file = optarg; break;
        case 'h': fputs(usage, stdout); exit(0);
        default: fputs(usage, stderr); exit(2);
        }
    }
    if (optind < argc) load_die("unexpected argument '%s'; see --help", argv[optind]);
}
