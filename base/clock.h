/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Time, in one place so that tests can set it. */
#ifndef POSTERN_BASE_CLOCK_H
#define POSTERN_BASE_CLOCK_H

#include <stdint.h>

/* Microseconds since the epoch, UTC (CLOCK_REALTIME): for records. */
int64_t clock_real_us(void);

/* Milliseconds of CLOCK_BOOTTIME: for deadlines and leases; counts while the host sleeps, as kernel set timeouts do not
 * have to, so that a lease in the gateway never outlives its element by more than the element's own grace. */
int64_t clock_mono_ms(void);

/* Microseconds of CLOCK_MONOTONIC: for durations. */
int64_t clock_mono_us(void);

/* Test hook: added to every clock, in milliseconds. */
void clock_skew_ms(int64_t skew_ms);

#endif
