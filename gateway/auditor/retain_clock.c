/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "gateway/auditor/retain_clock.h"

#define MICROS INT64_C(1000000)

void
retain_clock_init(struct retain_clock *clock, uint32_t keep_s, int64_t newest_us, int64_t alarm_us)
{
	*clock = (struct retain_clock){.keep_us = keep_s * MICROS, .newest_us = newest_us, .alarm_us = alarm_us};
}

int64_t
retain_clock_look(struct retain_clock *clock, int64_t real_us, int64_t boot_us)
{
	int64_t offset_us = real_us - boot_us, ahead_us = offset_us - clock->offset_us;
	int64_t jump_us = clock->keep_us / RETAIN_CLOCK_PART;

	if (!clock->looked)
		ahead_us = clock->newest_us == 0 ? 0 : real_us - clock->newest_us;
	clock->looked = true;
	clock->offset_us = offset_us;
	if (jump_us < RETAIN_CLOCK_JUMP_MIN_S * MICROS)
		jump_us = RETAIN_CLOCK_JUMP_MIN_S * MICROS;
	if (clock->keep_us == 0 || ahead_us <= jump_us)
		return 0;
	clock->alarm_us = real_us;
	return ahead_us;
}

bool
retain_clock_waits(const struct retain_clock *clock, int64_t real_us)
{
	int64_t wait_us = RETAIN_CLOCK_WAIT_S * MICROS;

	if (clock->keep_us < wait_us)
		wait_us = clock->keep_us;
	/* A clock that was set back is before the jump: it is right again. */
	return clock->alarm_us != 0 && real_us >= clock->alarm_us && real_us - clock->alarm_us < wait_us;
}
