/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The gateway's requests to the keeper, each with a handler for its answer. */
#ifndef POSTERN_GATEWAY_LINK_H
#define POSTERN_GATEWAY_LINK_H

#include "base/loop.h"
#include "gateway/shared/ipc.h"
#include "gateway/shared/msg.h"

#include <stdint.h>
#include <sys/queue.h>

/* Requests under way; beyond it new ones are refused at once (-ENOBUFS). */
#define LINK_REQUESTS_MAX 4096

struct link_request {
	TAILQ_ENTRY(link_request) next;
	uint64_t tag;         /* 0: not under way */
	uint16_t answer_type; /* enum msg_type */
	/* status 0 or -errno-like; body is the answer's (struct msg_result or msg_counters), NULL when the link
	 * broke. */
	void (*handler)(struct link_request *request, int status, const void *body);
};

struct link {
	struct ipc ipc;
	uint64_t next_tag;
	TAILQ_HEAD(, link_request) requests; /* oldest first: answers come in order; made by the first one */
	size_t request_count;
};

/* Ask for kernel leases. timeout_s of the kernel's element (lease plus grace). The request is embedded in its owner and
 * must live until handler ran or link_cancel; NULL: no answer is awaited. Returns 0 or -errno (then handler will not
 * run). */
int link_lease_add(struct link *link, struct link_request *request, int64_t sandbox, const struct tap_lease *leases,
    size_t count, uint32_t timeout_s);
/* Remove kernel leases; no answer is awaited. */
int link_lease_del(struct link *link, int64_t sandbox, const struct tap_lease *leases, size_t count);
int link_counters(struct link *link, struct link_request *request, int64_t sandbox);
/* The owner goes away: its handler will not run. Harmless when not under way. */
void link_cancel(struct link *link, struct link_request *request);

/* For gateway.c: an answer (MSG_RESULT, MSG_COUNTERS_DONE) arrived. False: not the type that its request is answered
 * with. */
bool link_answer(struct link *link, const struct ipc_message *message);

#endif
