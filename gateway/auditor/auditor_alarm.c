/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The alarm about a write-ahead log that grows because a reader holds an old view: a line in the daemon's own log once
 * a minute, one event, and a word to every sender, of which control shows it (CASES F-23). The store itself refuses
 * records when the log has grown too far; that is a failed write like any other. */
#include "gateway/auditor/auditor.h"

#include "base/clock.h"
#include "base/log.h"

/* The line in the daemon's log is repeated after this. */
#define AUDITOR_ALARM_AGAIN_MS 60000

void
auditor_alarm_look(struct auditor *auditor)
{
	static const char what[] = "a reader holds an old view, so that the write-ahead log cannot shrink";
	uint64_t before = auditor->alarm.bytes;
	struct checkpoint_state state;
	struct record record;

	/* Without traffic nothing else would notice that the reader is gone. */
	if (before != 0)
		store_cut(auditor->store);
	store_checkpoint_state(auditor->store, &state);
	auditor->alarm.bytes = state.blocked ? state.frames * CHECKPOINT_FRAME_BYTES : 0;
	if (auditor->alarm.bytes != 0 && before == 0)
		auditor->alarm.untold = auditor->alarm.bytes;
	if (auditor->alarm.bytes == 0 && before != 0)
		log_info("the -wal of %s can shrink again", auditor->path);
	if (auditor->alarm.bytes != 0 &&
	    (before == 0 || clock_mono_ms() - auditor->alarm.said_ms >= AUDITOR_ALARM_AGAIN_MS)) {
		auditor->alarm.said_ms = clock_mono_ms();
		log_warnx("a reader holds an old view of %s: its -wal has grown to %llu MiB and cannot shrink",
		    auditor->path, (unsigned long long)((auditor->alarm.bytes + (1 << 20) - 1) >> 20));
	}
	/* The alarm may have been raised while nothing could be written. */
	if (auditor->alarm.untold != 0 && auditor->writable) {
		auditor_batch_own(auditor, &record, EVENT_AUDIT_ALARM,
		    json_pack("{s:s, s:I}", "what", what, "wal_bytes", (json_int_t)auditor->alarm.untold));
		auditor->alarm.untold = 0;
		auditor_batch_add(auditor, &record);
	}
	if (auditor->alarm.bytes != before)
		auditor_sender_tell_all(auditor);
}
