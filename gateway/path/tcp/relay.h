/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Bytes of one direction from one socket to another by splice(2), through pipes borrowed from a pool.
 *
 * Works on any stream sockets that splice; the process must ignore SIGPIPE. */
#ifndef POSTERN_GATEWAY_RELAY_H
#define POSTERN_GATEWAY_RELAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* 64 KiB loses a fifth at eight flows, 1 MiB loses to the cache; measured. Best effort: an unprivileged process gets
 * smaller pipes past pipe-user-pages-soft, and those serve too. */
#define RELAY_PIPE_BYTES 262144
/* Empty pipes kept for the next borrower; more are closed. Pipes are held only while bytes are in them, so few are. */
#define RELAY_POOL_MAX 64
/* One direction moves about this much, then others have their turn. */
#define RELAY_TURN_BYTES 1048576
/* A fill below this says the source is drained: asking again would cost a call to be told so. */
#define RELAY_SHORT_BYTES 65536

/* What a direction waits for. Exactly one of these holds at any time. */
enum relay_status {
	RELAY_READING = 0,   /* nothing is held: go on when the source is readable */
	RELAY_WRITING,       /* bytes are held: go on when the sink is writable; the source is not read */
	RELAY_HELD,          /* the owner holds it back (never said by relay_pump) */
	RELAY_FINISHED,      /* the source's FIN was passed on, after every byte before it */
	RELAY_SOURCE_FAILED, /* sys_errno says how: ECONNRESET, ETIMEDOUT, ... */
	RELAY_SINK_FAILED,   /* likewise */
};

struct relay_way {
	enum relay_status status;
	int sys_errno;
	int pipe_fds[2]; /* borrowed; -1 while none is */
	size_t stuck;    /* bytes in the pipe */
	uint8_t *prefix; /* written before anything is spliced; owned */
	size_t prefix_len, prefix_at;
	bool eof;        /* the source said FIN */
	uint64_t bytes;  /* given to the sink's kernel */
	uint64_t budget; /* bytes that may still be given to it; the owner sets it and cuts when it is spent */
};

void relay_init(struct relay_way *way);
/* Bytes read from the source earlier, to go first. bytes is malloc'd and taken; may be NULL with len 0. */
void relay_prefix_own(struct relay_way *way, uint8_t *bytes, size_t len);
/* Move what can be moved without blocking, about RELAY_TURN_BYTES at most. Returns the new status. */
enum relay_status relay_pump(struct relay_way *way, int source, int sink);
/* Write the prefix alone: READING when nothing of it is left, or WRITING, or SINK_FAILED. Sets nothing but
 * sys_errno. */
enum relay_status relay_pump_prefix(struct relay_way *way, int sink);
/* Give back what is held. */
void relay_clear(struct relay_way *way);

/* Descriptors resting in the pool (two a pipe), for tests; and close them. */
size_t relay_pool_fds(void);
void relay_pool_drain(void);

#endif
