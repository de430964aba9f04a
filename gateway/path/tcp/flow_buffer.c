/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "gateway/path/tcp/flow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* What a buffer of this size counts against its sandbox. */
static size_t
flow_buffer_charge(size_t size)
{
	return size > FLOW_BUFFER_FIRST ? size - FLOW_BUFFER_FIRST : 0;
}

/* Makes the buffer this big (never smaller), within FLOW_BUFFERED_MAX. Is there room for one more byte then? */
static bool
flow_buffer_reserve(struct flow *flow, size_t size)
{
	struct flow_buffer *buffer = &flow->in;
	size_t charge = flow_buffer_charge(size) - flow_buffer_charge(buffer->size);
	uint8_t *bytes;

	if (size > buffer->size) {
		if (charge > FLOW_BUFFERED_MAX - flow->list->buffered)
			return false;
		bytes = realloc(buffer->bytes, size);
		if (bytes == NULL)
			return false;
		flow->list->buffered += charge;
		buffer->bytes = bytes;
		buffer->size = size;
	}
	return buffer->len < buffer->size;
}

/* syscalls: recvfrom */
ssize_t
flow_buffer_fill(struct flow *flow, size_t first, size_t max)
{
	struct flow_buffer *in = &flow->in;
	size_t size = in->len == in->size ? in->size * 2 : in->size;
	ssize_t n;

	size = size < first ? first : size > max ? max : size;
	/* Where there is no room to grow, the first few bytes, which are free, or what is left will do. */
	if (!flow_buffer_reserve(flow, size) && !flow_buffer_reserve(flow, FLOW_BUFFER_FIRST))
		return -ENOSPC;
	n = recv(flow->guest_fd, in->bytes + in->len, in->size - in->len, MSG_DONTWAIT);
	if (n < 0)
		return errno == EINTR ? -EAGAIN : -errno;
	in->len += (size_t)n;
	return n;
}

void
flow_buffer_free(struct flow *flow)
{
	flow->list->buffered -= flow_buffer_charge(flow->in.size);
	free(flow->in.bytes);
	flow->in = (struct flow_buffer){0};
}

void
flow_buffer_drop(struct flow *flow, size_t len)
{
	flow->in.len -= len;
	memmove(flow->in.bytes, flow->in.bytes + len, flow->in.len);
}

void
flow_buffer_to_prefix(struct flow *flow)
{
	relay_prefix_own(&flow->out, flow->in.bytes, flow->in.len);
	flow->list->buffered -= flow_buffer_charge(flow->in.size);
	flow->in = (struct flow_buffer){0};
}
