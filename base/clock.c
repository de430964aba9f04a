/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "base/clock.h"

#include <time.h>

static int64_t clock_skew;

static int64_t
clock_read_us(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000 + clock_skew * 1000;
}

int64_t
clock_real_us(void)
{
	return clock_read_us(CLOCK_REALTIME);
}

int64_t
clock_mono_ms(void)
{
	return clock_read_us(CLOCK_BOOTTIME) / 1000;
}

int64_t
clock_mono_us(void)
{
	return clock_read_us(CLOCK_MONOTONIC);
}

void
clock_skew_ms(int64_t skew_ms)
{
	clock_skew = skew_ms;
}
