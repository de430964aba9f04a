/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The senders of records: who they are, and the reports about the log that they get. */
#include "gateway/auditor/auditor.h"

#include <poll.h>

void
auditor_sender_tell(const struct auditor *auditor, struct auditor_sender *sender)
{
	struct msg_durable durable = {.seq = sender->durable_seq,
	    .writable = auditor->writable,
	    .wal_mib = (uint32_t)((auditor->alarm.bytes + (1 << 20) - 1) >> 20)};

	ipc_send(&sender->ipc, MSG_DURABLE, 0, &durable, sizeof(durable), NULL, 0);
}

void
auditor_sender_tell_all(const struct auditor *auditor)
{
	for (struct auditor_sender *sender = auditor->senders; sender != NULL; sender = sender->next)
		auditor_sender_tell(auditor, sender);
}

void
auditor_sender_durable(const struct auditor *auditor)
{
	for (struct auditor_sender *sender = auditor->senders; sender != NULL; sender = sender->next) {
		if (sender->seq == sender->durable_seq)
			continue;
		sender->durable_seq = sender->seq;
		auditor_sender_tell(auditor, sender);
	}
}

void
auditor_sender_lost(const struct auditor *auditor)
{
	for (struct auditor_sender *sender = auditor->senders; sender != NULL; sender = sender->next) {
		sender->seq = sender->durable_seq;
		auditor_sender_tell(auditor, sender);
	}
}

void
auditor_sender_resume(const struct auditor *auditor)
{
	for (struct auditor_sender *sender = auditor->senders; sender != NULL; sender = sender->next) {
		sender->resync = sender->known;
		auditor_sender_tell(auditor, sender);
	}
}

/* syscalls: poll ppoll */
bool
auditor_sender_any_waits(const struct auditor *auditor)
{
	struct pollfd fds[AUDITOR_SENDERS_MAX];
	nfds_t count = 0;

	for (struct auditor_sender *sender = auditor->senders; sender != NULL && count < AUDITOR_SENDERS_MAX;
	     sender = sender->next)
		if (ipc_is_open(&sender->ipc))
			fds[count++] = (struct pollfd){.fd = sender->ipc.source.fd, .events = POLLIN};
	return count > 0 && poll(fds, count, 0) > 0;
}
