/* SPDX-License-Identifier: GPL-3.0-or-later */
/* May records be dropped for their age? Not by a clock that has just jumped ahead: a wrong year in the battery clock,
 * or a bad word from a time server, would cost the whole log. After a jump retention by age waits: long enough for the
 * clock to be set right, or for the operator to read the alarm. */
#ifndef POSTERN_GATEWAY_RETAIN_CLOCK_H
#define POSTERN_GATEWAY_RETAIN_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

/* A jump by less than this part of what is kept costs no more than it. */
#define RETAIN_CLOCK_PART 4
/* What every time server and every restart may do. */
#define RETAIN_CLOCK_JUMP_MIN_S 60
/* So long it waits, or as long as records are kept if that is shorter. */
#define RETAIN_CLOCK_WAIT_S (24 * 3600)

struct retain_clock {
	int64_t keep_us;   /* 0: for ever, and nothing of this matters */
	int64_t newest_us; /* time of the newest record, for the first look; 0: there is none */
	int64_t alarm_us;  /* real time of the last jump, after it; 0: there was none */
	bool looked;
	int64_t offset_us; /* of real time to the time since boot, at the last look */
};

/* newest_us: newest time in the log; alarm_us: of the last alarm in it that told of a jump; 0: there is none. */
void retain_clock_init(struct retain_clock *clock, uint32_t keep_s, int64_t newest_us, int64_t alarm_us);

/* Look at both clocks, real time and CLOCK_BOOTTIME. Returns by how much real time jumped ahead since the last look, in
 * microseconds, if that is worth an alarm; else 0. At the first look it is the time since the newest record:
 * the daemon may have been down for so long, or the clock may have jumped. */
int64_t retain_clock_look(struct retain_clock *clock, int64_t real_us, int64_t boot_us);

/* Does retention by age wait? */
bool retain_clock_waits(const struct retain_clock *clock, int64_t real_us);

#endif
