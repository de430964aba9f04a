/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How the log stands, for GET /metrics: the keeper keeps what it was told last. */
#include "gateway/auditor/auditor.h"

#include <string.h>

void
auditor_state_tell(struct auditor *auditor)
{
	struct checkpoint_state checkpoint;
	struct store_state state;
	struct msg_log_state now;

	store_state(auditor->store, &state);
	store_checkpoint_state(auditor->store, &checkpoint);
	now = (struct msg_log_state){.changes = (uint64_t)state.seq,
	    .unsealed = (uint64_t)state.unsealed,
	    .bytes = (uint64_t)state.bytes,
	    .wal_bytes = checkpoint.frames * CHECKPOINT_FRAME_BYTES,
	    .sealed_us = state.sealed_us};
	/* A keeper that is behind is not given more to read. */
	if (memcmp(&now, &auditor->told, sizeof(now)) == 0 || auditor->keeper.queue_len > 0)
		return;
	if (ipc_send(&auditor->keeper, MSG_LOG_STATE, 0, &now, sizeof(now), NULL, 0) == 0)
		auditor->told = now;
}
