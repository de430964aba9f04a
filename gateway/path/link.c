/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "gateway/path/link.h"

#include "gateway/shared/msg.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

/* Sends a request whose answer is awaited. 0 or -errno. */
static int
link_request_send(struct link *link, struct link_request *request, uint16_t type, const void *body, uint32_t size)
{
	int rc;

	if (link->request_count >= LINK_REQUESTS_MAX)
		return -ENOBUFS;
	rc = ipc_send(&link->ipc, type, link->next_tag + 1, body, size, NULL, 0);
	if (rc < 0)
		return rc;
	request->tag = ++link->next_tag;
	request->answer_type = msg_answer_type(type);
	if (link->requests.tqh_last == NULL)
		TAILQ_INIT(&link->requests);
	TAILQ_INSERT_TAIL(&link->requests, request, next);
	link->request_count++;
	return 0;
}

/* Fills the body of a lease message. 0, or -EINVAL for a count that fits none. */
static int
link_lease_body(
    struct msg_lease *ret_body, int64_t sandbox, const struct tap_lease *leases, size_t count, uint32_t timeout_s)
{
	if (count == 0 || count > TAP_LEASE_BATCH_MAX)
		return -EINVAL;
	ret_body->id = sandbox;
	ret_body->timeout_s = timeout_s;
	ret_body->count = (uint32_t)count;
	memcpy(ret_body->leases, leases, count * sizeof(*leases));
	return 0;
}

/* Bytes of a lease message with so many elements. */
static uint32_t
link_lease_size(size_t count)
{
	return (uint32_t)(offsetof(struct msg_lease, leases) + count * sizeof(struct tap_lease));
}

int
link_lease_add(struct link *link, struct link_request *request, int64_t sandbox, const struct tap_lease *leases,
    size_t count, uint32_t timeout_s)
{
	struct msg_lease body;
	int rc = link_lease_body(&body, sandbox, leases, count, timeout_s);

	if (rc < 0)
		return rc;
	if (request == NULL)
		return ipc_send(&link->ipc, MSG_LEASE_ADD, 0, &body, link_lease_size(count), NULL, 0);
	return link_request_send(link, request, MSG_LEASE_ADD, &body, link_lease_size(count));
}

int
link_lease_del(struct link *link, int64_t sandbox, const struct tap_lease *leases, size_t count)
{
	struct msg_lease body;
	int rc = link_lease_body(&body, sandbox, leases, count, 0);

	if (rc < 0)
		return rc;
	return ipc_send(&link->ipc, MSG_LEASE_DEL, 0, &body, link_lease_size(count), NULL, 0);
}

int
link_counters(struct link *link, struct link_request *request, int64_t sandbox)
{
	struct msg_sandbox body = {.id = sandbox};

	return link_request_send(link, request, MSG_COUNTERS, &body, sizeof(body));
}

void
link_cancel(struct link *link, struct link_request *request)
{
	if (request->tag == 0)
		return;
	TAILQ_REMOVE(&link->requests, request, next);
	request->tag = 0;
	link->request_count--;
}

bool
link_answer(struct link *link, const struct ipc_message *message)
{
	struct link_request *request;
	const struct msg_result *result = message->body; /* every answer begins with one */
	int status;

	TAILQ_FOREACH(request, &link->requests, next)
	if (request->tag == message->header.tag)
		break;
	if (request == NULL)
		return true; /* cancelled meanwhile */
	if (message->header.type != request->answer_type)
		return false;
	link_cancel(link, request);
	status = result->code == ERROR_NONE ? 0 : result->code == ERROR_LIMIT ? -ENOSPC : -EIO;
	request->handler(request, status, message->body);
	return true;
}
