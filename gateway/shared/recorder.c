/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Theory of operation. Every record gets the next sequence number and joins a queue that it leaves when the auditor
 * says that it is durable. From there it goes over the channel, once and in order, as far as the channel has room; each
 * acknowledgement makes room for more.
 *
 *   no channel --recorder_connect--> writable --log fails--> not writable --log can be written again--> writable
 *                                    writable, not writable --channel broken--> no channel
 *
 * When the auditor is replaced, or can write again, sending begins again at the queue's head; the store takes a record
 * that it already has without effect, so that twice is once.
 *
 * Limits. New work is refused from RECORDER_BUSY records on, and while the log is not writable. A record beyond
 * RECORDER_MAX, or without memory, is lost: its number stays unused and the next record tells how many there were. */
#include "gateway/shared/recorder.h"

#include "gateway/shared/msg.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct recorder_queued {
	STAILQ_ENTRY(recorder_queued) next;
	uint64_t seq;
	uint32_t size;
	uint32_t pad;
	unsigned char bytes[]; /* struct record, cut to its kind */
};

/* Sends what the channel has room for. The rest goes when the next acknowledgement makes room. A channel that does not
 * take a record is broken: the next one gets it. */
static void
recorder_pump(struct recorder *recorder)
{
	while (recorder->writable && recorder->unsent != NULL && recorder->ipc.queue_len < RECORDER_CHANNEL_MAX) {
		const struct recorder_queued *queued = recorder->unsent;

		if (ipc_send(&recorder->ipc, MSG_RECORD, 0, queued->bytes, queued->size, NULL, 0) < 0)
			recorder->writable = false;
		else
			recorder->unsent = STAILQ_NEXT(queued, next);
	}
}

/* Forgets the records that are durable. */
static void
recorder_drop_durable(struct recorder *recorder)
{
	struct recorder_queued *queued;

	while ((queued = STAILQ_FIRST(&recorder->queue)) != NULL && queued->seq <= recorder->durable_seq) {
		STAILQ_REMOVE_HEAD(&recorder->queue, next);
		if (recorder->unsent == queued)
			recorder->unsent = STAILQ_FIRST(&recorder->queue);
		recorder->queue_len--;
		free(queued);
	}
}

/* Calls the owners of durable records. They wait in order of sequence, so these are at the front. */
static void
recorder_wake(struct recorder *recorder)
{
	struct recorder_wait *wait;

	while ((wait = STAILQ_FIRST(&recorder->waits)) != NULL && wait->seq <= recorder->durable_seq) {
		STAILQ_REMOVE_HEAD(&recorder->waits, next);
		wait->seq = 0;
		wait->handler(wait);
	}
}

/* The auditor says what is durable and whether it can write. */
static bool
recorder_message_handler(struct ipc *ipc, struct ipc_message *message)
{
	struct recorder *recorder = loop_owner(ipc, struct recorder, ipc);
	const struct msg_durable *durable = message->body;
	bool was_writable = recorder->writable;

	if (durable->seq >= recorder->next_seq)
		return false;
	if (durable->seq > recorder->durable_seq)
		recorder->durable_seq = durable->seq;
	recorder_drop_durable(recorder);
	recorder->writable = durable->writable != 0;
	recorder->wal_mib = durable->wal_mib;
	if (recorder->writable && !was_writable) {
		recorder->unsent = STAILQ_FIRST(&recorder->queue);
		if (recorder->resumed_handler != NULL)
			recorder->resumed_handler(recorder);
	}
	recorder_pump(recorder);
	recorder_wake(recorder);
	return true;
}

/* Waits for a new channel: the keeper starts the auditor again. */
static void
recorder_broken_handler(struct ipc *ipc, const char *why)
{
	(void)why;
	loop_owner(ipc, struct recorder, ipc)->writable = false;
}

void
recorder_init(struct recorder *recorder, struct loop *loop, uint64_t epoch)
{
	memset(recorder, 0, sizeof(*recorder));
	recorder->loop = loop;
	recorder->epoch = epoch;
	ipc_init(&recorder->ipc, MSG_ROLE_SENDER, MSG_ROLE_AUDITOR, recorder_message_handler, recorder_broken_handler);
	recorder->next_seq = 1;
	STAILQ_INIT(&recorder->queue);
	STAILQ_INIT(&recorder->waits);
}

int
recorder_connect(struct recorder *recorder, int fd, uint64_t epoch)
{
	int rc;

	ipc_close(&recorder->ipc);
	rc = epoch == recorder->epoch ? ipc_open(&recorder->ipc, recorder->loop, fd) : -EINVAL;
	if (rc < 0) {
		recorder->ipc.source.fd = -1;
		close(fd);
		return rc;
	}
	recorder->writable = true; /* until the auditor says otherwise */
	recorder->unsent = STAILQ_FIRST(&recorder->queue);
	recorder_pump(recorder);
	return 0;
}

void
recorder_free(struct recorder *recorder)
{
	struct recorder_wait *wait;

	ipc_close(&recorder->ipc);
	recorder->durable_seq = UINT64_MAX;
	recorder_drop_durable(recorder);
	while ((wait = STAILQ_FIRST(&recorder->waits)) != NULL) {
		STAILQ_REMOVE_HEAD(&recorder->waits, next);
		wait->seq = 0;
	}
}

bool
recorder_ready(const struct recorder *recorder)
{
	return recorder->writable && ipc_is_open(&recorder->ipc) && recorder->queue_len < RECORDER_BUSY;
}

bool
recorder_has_room(const struct recorder *recorder)
{
	return recorder->queue_len < RECORDER_BUSY;
}

uint64_t
recorder_id(struct recorder *recorder)
{
	return RECORD_ID(recorder->epoch, ++recorder->next_counter);
}

int
recorder_send(struct recorder *recorder, struct record *record, struct recorder_wait *wait)
{
	uint32_t size = record_size(record->kind);
	struct recorder_queued *queued;

	if (size == 0)
		return -EINVAL;
	queued = recorder->queue_len < RECORDER_MAX ? malloc(sizeof(*queued) + size) : NULL;
	record->seq = recorder->next_seq++;
	if (queued == NULL) {
		recorder->lost++;
		return -ENOBUFS;
	}
	record->lost = recorder->lost;
	recorder->lost = 0;
	queued->seq = record->seq;
	queued->size = size;
	memcpy(queued->bytes, record, size);
	STAILQ_INSERT_TAIL(&recorder->queue, queued, next);
	recorder->queue_len++;
	if (recorder->unsent == NULL)
		recorder->unsent = queued;
	if (wait != NULL) {
		wait->seq = record->seq;
		STAILQ_INSERT_TAIL(&recorder->waits, wait, next);
	}
	recorder_pump(recorder);
	return 0;
}

void
recorder_cancel(struct recorder *recorder, struct recorder_wait *wait)
{
	if (wait->seq != 0)
		STAILQ_REMOVE(&recorder->waits, wait, recorder_wait, next);
	wait->seq = 0;
}
