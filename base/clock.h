/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Time, in one place so that tests can set it. */
#ifndef POSTERN_BASE_CLOCK_H
#define POSTERN_BASE_CLOCK_H

#include <stdint.h>

/* Microseconds since the epoch, UTC (CLOCK_REALTIME): for records. */
int64_t clock_real_us(void);

/* Milliseconds of CLOCK_BOOTTIME: for deadlines and leases. Counts while the host sleeps, which timeouts of kernel sets
 * need not do: after a sleep a lease is over before its element is, and the lease decides. */
int64_t clock_mono_ms(void);

/* Microseconds of CLOCK_MONOTONIC: for durations. */
int64_t clock_mono_us(void);

/* Test hook: added to every clock, in milliseconds. */
void clock_skew_ms(int64_t skew_ms);

#endif
