/* What goes wrong on a simulated node, whichever vendor's library is asked: faults.conf in the state directory. */
#ifndef SIM_FAULTS_H
#define SIM_FAULTS_H

#include "sim_config.h"

/* faults.conf, re-read when it changes. */
typedef struct {
    unsigned long long sequence, code;
    char uuid[SIM_TEXT];
} sim_xid;

void sim_faults_refresh(const char *dir);
int sim_fault_driver_gone(void);
unsigned sim_fault_epoch(void); /* grows with each driver reset */
int sim_fault_device(const char *uuid, const char *kind);
unsigned long long sim_fault_error(const char *uuid, const char *function); /* the library's own code; 0: none */
unsigned sim_fault_delay_ms(const char *uuid, const char *function);
int sim_fault_next_xid(unsigned long long after, sim_xid *xid); /* the first later one, 0 when there is none */

#endif
