/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Theory of operation. Every record gets the next sequence number and joins a queue that it leaves only when the
 * auditor says it is durable. From there it goes over the channel, once and in order, as far as the channel has room;
 * each acknowledgement makes room for more. When the auditor is replaced, or says that it can write again after it
 * could not, sending begins again at the queue's head; the store takes a record it already has without effect, so that
 * twice is once. */
#include "gateway/shared/recorder.h"

#include "gateway/shared/msg.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct recorder_queued {
	struct recorder_queued *next;
	uint64_t seq;
	uint32_t size;
	uint32_t pad;
	unsigned char bytes[]; /* struct record, cut to its kind */
};

/* Send what the channel has room for. While anything is under way an acknowledgement will come, and with it the next
 * turn. A channel that does not take a record is broken: wait for the next one. */
static void
recorder_pump(struct recorder *recorder)
{
	while (recorder->writable && recorder->unsent != NULL && recorder->ipc.queue_len < RECORDER_CHANNEL_MAX) {
		const struct recorder_queued *queued = recorder->unsent;

		if (ipc_send(&recorder->ipc, MSG_RECORD, 0, queued->bytes, queued->size, NULL, 0) < 0)
			recorder->writable = false;
		else
			recorder->unsent = queued->next;
	}
}

static void
recorder_drop_durable(struct recorder *recorder)
{
	while (recorder->queue_head != NULL && recorder->queue_head->seq <= recorder->durable_seq) {
		struct recorder_queued *queued = recorder->queue_head;

		recorder->queue_head = queued->next;
		if (recorder->queue_head == NULL)
			recorder->queue_tail = NULL;
		if (recorder->unsent == queued)
			recorder->unsent = queued->next;
		recorder->queue_len--;
		free(queued);
	}
}

/* Waits are appended in order of sequence, so the durable ones are at the front. */
static void
recorder_wake(struct recorder *recorder)
{
	while (recorder->waits != NULL && recorder->waits->seq <= recorder->durable_seq) {
		struct recorder_wait *wait = recorder->waits;

		recorder->waits = wait->next;
		if (recorder->waits == NULL)
			recorder->waits_tail = NULL;
		wait->seq = 0;
		wait->handler(wait);
	}
}

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
		recorder->unsent = recorder->queue_head;
		if (recorder->resumed_handler != NULL)
			recorder->resumed_handler(recorder);
	}
	recorder_pump(recorder);
	recorder_wake(recorder);
	return true;
}

static void
recorder_broken_handler(struct ipc *ipc, const char *why)
{
	struct recorder *recorder = loop_owner(ipc, struct recorder, ipc);

	(void)why; /* the keeper knows, restarts the auditor and sends a new channel */
	recorder->writable = false;
}

void
recorder_init(struct recorder *recorder, struct loop *loop, uint64_t epoch)
{
	memset(recorder, 0, sizeof(*recorder));
	recorder->loop = loop;
	recorder->epoch = epoch;
	recorder->ipc.source.fd = -1;
	recorder->ipc.self = MSG_ROLE_SENDER;
	recorder->ipc.peer = MSG_ROLE_AUDITOR;
	recorder->ipc.message_handler = recorder_message_handler;
	recorder->ipc.broken_handler = recorder_broken_handler;
	recorder->next_seq = 1;
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
	recorder->unsent = recorder->queue_head;
	recorder_pump(recorder);
	return 0;
}

void
recorder_free(struct recorder *recorder)
{
	ipc_close(&recorder->ipc);
	recorder->durable_seq = UINT64_MAX;
	recorder_drop_durable(recorder);
	recorder->waits = recorder->waits_tail = NULL;
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

static void
recorder_wait_add(struct recorder *recorder, struct recorder_wait *wait, uint64_t seq)
{
	wait->seq = seq;
	wait->next = NULL;
	if (recorder->waits_tail != NULL)
		recorder->waits_tail->next = wait;
	else
		recorder->waits = wait;
	recorder->waits_tail = wait;
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
	queued->next = NULL;
	queued->seq = record->seq;
	queued->size = size;
	memcpy(queued->bytes, record, size);
	if (recorder->queue_tail != NULL)
		recorder->queue_tail->next = queued;
	else
		recorder->queue_head = queued;
	recorder->queue_tail = queued;
	recorder->queue_len++;
	if (recorder->unsent == NULL)
		recorder->unsent = queued;
	if (wait != NULL)
		recorder_wait_add(recorder, wait, record->seq);
	recorder_pump(recorder);
	return 0;
}

void
recorder_cancel(struct recorder *recorder, struct recorder_wait *wait)
{
	struct recorder_wait *before = NULL;

	if (wait->seq == 0)
		return;
	for (struct recorder_wait **at = &recorder->waits; *at != NULL; before = *at, at = &(*at)->next) {
		if (*at != wait)
			continue;
		*at = wait->next;
		if (recorder->waits_tail == wait)
			recorder->waits_tail = before;
		break;
	}
	wait->seq = 0;
}
