/* Asks the advisor as the submit plugins do, with their own client, and prints the microseconds of each exchange.
 *
 * Paced as submissions come, since an advisor that sleeps between two requests is the usual case. The last line is
 * what the client counted: answered, missed, refused, stale.
 */
#include <gw_client.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

static void say(const char *line)
{
    fprintf(stderr, "gpuwaste-exchange: %s\n", line);
}

static long now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000L + t.tv_nsec;
}

static int ask(gw_client *client, unsigned uid, const char *script)
{
    static gw_frame frame;
    static gw_reply reply;
    if (gw_begin(client, &frame, "submit", uid) != GW_GO) return -1;
    gw_put_number(&frame, "user_id", uid);
    gw_put_number(&frame, "group_id", uid);
    gw_put_text(&frame, "name", "bench");
    gw_put_text(&frame, "partition", "gpu");
    gw_put_number(&frame, "time_limit", 60);
    gw_put_number(&frame, "min_nodes", 1);
    gw_put_number(&frame, "max_nodes", 1);
    gw_put_number(&frame, "num_tasks", 1);
    gw_put_number(&frame, "cpus_per_task", 4);
    gw_put_text(&frame, "tres_per_node", "gres:gpu:4");
    gw_put_script(&frame, script);
    return gw_ask(client, &frame, &reply) ? 0 : -1;
}

int main(int argc, char **argv)
{
    if (argc != 6) {
        fprintf(stderr, "usage: gpuwaste-exchange CONFIG SLURM_RELEASE UID COUNT EVERY_US < SCRIPT\n");
        return 2;
    }
    static char script[65536];
    script[fread(script, 1, sizeof script - 1, stdin)] = 0;
    unsigned uid = (unsigned)strtoul(argv[3], NULL, 10);
    long count = strtol(argv[4], NULL, 10), every_us = strtol(argv[5], NULL, 10);
    gw_client *client = gw_client_open(argv[1], "c", argv[2], say);
    if (!client) return 1;
    for (long i = 0; i < count; i++) {
        long began = now_ns();
        ask(client, uid, script);
        printf("%.1f\n", (double)(now_ns() - began) / 1000);
        if (every_us) usleep((useconds_t)every_us);
    }
    gw_totals t;
    gw_read_totals(client, &t);
    printf("%llu %llu %llu %llu\n", (unsigned long long)t.answered, (unsigned long long)t.missed,
           (unsigned long long)t.refused, (unsigned long long)t.stale);
    gw_client_close(client);
    return 0;
}
