/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The alarm about a write-ahead log that grows because a reader holds an old view: said in the daemon's own log, once
 * as an event, and to every sender, of whom control shows it (CASES F-23). The store itself refuses when it has grown
 * too far; what that does is auditor.c's business. */
#include "gateway/auditor/auditor.h"

#include "audit/store/store.h"
#include "base/clock.h"
#include "base/log.h"

#include <jansson.h>

/* It is said again in the daemon's log after this. */
#define ALARM_AGAIN_MS 60000

static struct {
	uint64_t bytes;  /* of the log; 0: no alarm */
	uint64_t untold; /* bytes that an event has yet to tell of; 0: none */
	int64_t said_ms;
} alarm_now;

uint32_t
auditor_alarm_mib(void)
{
	return (uint32_t)((alarm_now.bytes + (1 << 20) - 1) >> 20);
}

static void
alarm_say(const char *path)
{
	alarm_now.said_ms = clock_mono_ms();
	log_warnx("a reader holds an old view of %s: its -wal has grown to %u MiB and cannot shrink", path,
	    auditor_alarm_mib());
}

/* It may have been raised while nothing could be written. */
static void
alarm_record(void)
{
	static const char what[] = "a reader holds an old view, so that the write-ahead log cannot shrink";
	struct record record;

	auditor_own_record(&record, EVENT_AUDIT_ALARM,
	    json_pack("{s:s, s:I}", "what", what, "wal_bytes", (json_int_t)alarm_now.untold));
	alarm_now.untold = 0;
	auditor_add(&record);
}

void
auditor_alarm_look(struct store *store, const char *path)
{
	uint64_t before = alarm_now.bytes;
	struct checkpoint_state state;

	/* Without traffic nobody else would notice that the reader is gone. */
	if (before != 0)
		store_cut(store);
	store_checkpoint_state(store, &state);
	alarm_now.bytes = state.blocked ? state.frames * CHECKPOINT_FRAME_BYTES : 0;
	if (alarm_now.bytes != 0 && before == 0)
		alarm_now.untold = alarm_now.bytes;
	if (alarm_now.bytes == 0 && before != 0)
		log_info("the -wal of %s can shrink again", path);
	if (alarm_now.bytes != 0 && (before == 0 || clock_mono_ms() - alarm_now.said_ms >= ALARM_AGAIN_MS))
		alarm_say(path);
	if (alarm_now.untold != 0 && auditor_is_writable())
		alarm_record();
	if (alarm_now.bytes != before)
		auditor_sender_all_tell();
}
