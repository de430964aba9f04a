/* SPDX-License-Identifier: GPL-3.0-or-later */
/* One TCP connection of a sandbox, from accept to its closing record.
 *
 * Layers, each of which uses only those above it: flow_socket, flow_buffer, flow_record; flow (the life of a
 * connection); flow_raw; flow_tls and flow_http (what a mode reads of the guest's bytes); proxy. */
#ifndef POSTERN_GATEWAY_FLOW_H
#define POSTERN_GATEWAY_FLOW_H

#include "gateway/path/attempt.h"
#include "gateway/path/tcp/relay.h"
#include "gateway/path/tcp/tls_hello.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

/* A refused HTTP client gets this long to read its answer, and may send this much more meanwhile. */
#define FLOW_LINGER_MS 2000
#define FLOW_LINGER_BYTES_MAX 262144
/* Keepalive: the first probe to a quiet peer after a minute, then one every quarter of a minute. */
#define FLOW_KEEPALIVE_IDLE_S 60
#define FLOW_KEEPALIVE_STEP_S 15
#define FLOW_KEEPALIVE_COUNT 4
/* Bytes that a peer does not acknowledge, or does not make room for, end the connection after this (CASES E-19). Long
 * enough for a stopped reader, as a paused download is one; it bounds the keepalive probes too. */
#define FLOW_USER_TIMEOUT_MS 300000
/* Room first made for a hello or head; that of a connection whose requests are passing (none while it is idle), which
 * grows only for a head that needs it; and the most it grows to. */
#define FLOW_BUFFER_FIRST 4096
#define FLOW_BUFFER_HTTP 16384
#define FLOW_BUFFER_HTTP_MAX 65536
/* Bytes of such buffers beyond the first room that one sandbox may have, so that a thousand connections, each with a
 * long beginning of a hello, cannot fill the gateway. (The TLS reader takes as much again at most.) Beyond it a
 * connection that needs more is refused as limit_connections. */
#define FLOW_BUFFERED_MAX (16u << 20)

struct flow;
struct flow_said;

/* How a connection is read, by the port that the guest dialled: one row each (flow_raw.c, flow_tls.c, flow_http.c).
 * Hooks are called in the named states only; NULL: the mode has no use for it. A hook may end the flow unless it says
 * otherwise; the caller looks at flow->state afterwards. */
struct flow_mode {
	uint16_t port;   /* the origin's; 0: every port without a mode of its own */
	size_t head_max; /* bytes of a first message held at most while READING; 0: none is read, begin judges */
	/* READING, the flow is on its list and watched: make flow->reader, or judge. False without memory. */
	bool (*begin)(struct flow *flow);
	/* READING: more bytes are in flow->in. Calls flow_open or flow_refuse, or returns to wait for more. */
	void (*read)(struct flow *flow);
	/* READING: deadline, or the guest went away, before the first message was complete. Calls flow_refuse. */
	void (*incomplete)(struct flow *flow, const char *detail);
	/* READING, OPENING, the refusal is on record: tell the guest why. False: it is reset instead. Ends nothing. */
	bool (*explain)(struct flow *flow, const struct judgement *verdict, const struct flow_said *said);
	/* OPENING becomes RELAYING: what goes out first. False without memory. Ends nothing. */
	bool (*start)(struct flow *flow);
	/* RELAYING, flow->answer_awaited: look at the origin's first bytes. True when they have decided. */
	bool (*answer)(struct flow *flow);
	/* RELAYING: move the guest's bytes and set flow->out.status. May hand over to flow_raw_mode. */
	void (*pump)(struct flow *flow);
	/* RELAYING: a record that the mode opened is durable. True: the guest's direction goes on. Ends nothing. */
	bool (*resume)(struct flow *flow);
	/* RELAYING: the timer that the mode had set ran out. Ends the flow. */
	void (*late)(struct flow *flow);
	/* OPENING, RELAYING, before the end: no more bytes will be read or passed on. A request among those that came
	 * which was never judged gets its record. Ends nothing. */
	void (*abandon)(struct flow *flow);
	/* Any state: free flow->reader. */
	void (*end)(struct flow *flow);
};

/* Entered only in this order (states may be left out).
 *
 * READING   Entered by flow_start. Guest readable is watched; nothing was sent anywhere, no record exists. The mode
 *           reads flow->in. Left by flow_open (allowed), flow_refuse (record complete) or flow_detach. Timer:
 *           GATEWAY_HEAD_MS.
 * OPENING   Entered by flow_open: the opening record is under way (durable), connect is under way (connected). The
 *           guest is watched for a reset only. No payload byte was passed on; flow->in is not read. Left by
 *           flow_establish when both are done, or by flow_end. Timer: GATEWAY_CONNECT_MS.
 * RELAYING  Entered by flow_establish. Payload passes; the mode alone reads and writes flow->in. The kernel's keepalive
 *           and user timeout end dead peers; the timer is the mode's. Left by flow_end.
 * LINGERING Entered by flow_refuse: record complete, answer sent, then FIN; what the guest still sends is
 *           dropped. No origin. Left by flow_end. Timer: FLOW_LINGER_MS.
 * ENDED     Entered by flow_end, left by nothing: descriptors closed, records complete, off the list; only the memory
 *           waits for the end of the round. Every handler reads the state first and does nothing in this one. */
enum flow_state {
	FLOW_READING,
	FLOW_OPENING,
	FLOW_RELAYING,
	FLOW_LINGERING,
	FLOW_ENDED,
};

/* What a record says beside the verdict; zeroed for nothing. */
struct flow_said {
	const uint8_t *claim; /* the name as the guest said it, raw */
	size_t claim_len;
	const struct tls_hello *hello; /* NULL for none */
	const char *method;            /* of the HTTP request; NULL for none */
	int64_t hello_us;              /* until hello or head was complete; 0: it was not */
	uint8_t flags;                 /* RECORD_FLAG_* */
};

/* The connections of one sandbox. */
struct flow_list {
	struct sandbox *sandbox;
	LIST_HEAD(, flow) flows;
	size_t count;
	size_t buffered; /* bytes of all flows' buffers, each counted beyond FLOW_BUFFER_FIRST */
	struct attempt_refusals refusals;
};

struct flow_buffer {
	uint8_t *bytes; /* owned */
	size_t len, size;
};

/* TCP segments on the guest's side. */
struct flow_segments {
	uint32_t out, in; /* from the guest, to it; they wrap */
};

struct flow {
	LIST_ENTRY(flow) next;
	struct flow_list *list; /* NULL once ENDED */
	struct sandbox *sandbox;
	enum flow_state state;
	const struct flow_mode *mode;
	int guest_fd, origin_fd; /* owned; the sources' own fields are -1 while they are not watched */
	struct loop_source guest, origin;
	struct loop_timer timer;
	struct loop_deferred deferred;

	struct attempt attempt;
	int64_t began_us;              /* clock_mono_us: accepted, or the first byte of the recorded request was read */
	int64_t dialled_us;            /* likewise: connect was called */
	struct flow_segments segments; /* of records before the open one */
	uint8_t flags;                 /* RECORD_FLAG_* */
	bool durable, connected;

	void *reader;               /* the mode's own; owned */
	bool answer_awaited;        /* RELAYING: the origin's first bytes decide what the guest's held ones are */
	struct flow_buffer in;      /* guest's bytes not passed on yet */
	size_t lingered;            /* LINGERING: bytes dropped */
	struct relay_way out, back; /* guest to origin, origin to guest */
};

/* flow_socket.c: their sockets. */

/* No delay, keepalive, and a reset as the end: for both ends of a connection. Accepted sockets inherit them from their
 * listener. */
void flow_socket_prepare(int fd);
/* Close with RST: whatever is still in the send buffer is not delivered. */
void flow_socket_reset(int fd);
/* Close with FIN: the kernel goes on delivering what is in the send buffer. */
void flow_socket_close(int fd);
/* A socket for the origin, in the host's namespace. -1 with errno. */
int flow_socket_origin(const struct attempt_ends *ends);
/* What the kernel counted on the guest's socket: all segments but the SYN that made it, those without payload and those
 * sent again included. False when it does not say. */
bool flow_socket_segments(int fd, struct flow_segments *ret_segments);
/* Look at the first size bytes (at most FLOW_PEEK_MAX) that a peer sends, without taking them. False: not decided yet.
 * *ret_agrees: all of them are there and agree. *partial, false at first, is the look's own: less than all was there
 * once, and SO_RCVLOWAT waits for all of it. */
#define FLOW_PEEK_MAX 64
bool flow_socket_peek(
    int fd, size_t size, bool (*agrees)(const uint8_t *bytes, size_t len), bool *partial, bool *ret_agrees);

/* flow_buffer.c: the guest's bytes that are held. */

/* Take what the guest sent, into a buffer that grows from first to max bytes within FLOW_BUFFERED_MAX. Returns the
 * bytes taken, 0 at FIN, or -errno: -EAGAIN nothing now, -ENOSPC no room. */
ssize_t flow_buffer_fill(struct flow *flow, size_t first, size_t max);
void flow_buffer_free(struct flow *flow);
/* The first len bytes were passed on. */
void flow_buffer_drop(struct flow *flow, size_t len);
/* The buffered bytes go first through flow->out. */
void flow_buffer_to_prefix(struct flow *flow);

/* flow_record.c: records of flows. */

/* The one, complete record of an attempt that is not let through; or its place in a count. */
void flow_record_refused(struct flow_list *list, const struct attempt_ends *ends, const struct judgement *verdict,
    const struct flow_said *said);
/* Open the flow's record by flow->attempt.verdict. 0 or -errno. */
int flow_record_open(struct flow *flow, const struct flow_said *said);
/* Close it, if one is open, with the bytes counted so far, and count from zero. */
void flow_record_close(struct flow *flow, enum end_reason end, enum verdict verdict, enum reason reason);
/* flow.c: the life of a connection. */

/* Take an accepted connection (fd owned from now on) and begin. The caller has checked limits and recorder. On failure
 * the guest is reset and the attempt recorded. */
void flow_start(struct flow_list *list, int guest_fd, const struct attempt_ends *ends, const struct flow_mode *mode);
/* Close everything now; the open record is closed as end. reset: both sides see RST. Safe in any handler. */
void flow_end(struct flow *flow, enum end_reason end, enum verdict verdict, enum reason reason, bool reset);
/* Detach or shutdown, in any state: as flow_end, and an attempt that has no record yet gets its one. */
void flow_detach(struct flow *flow, enum end_reason end);
/* The verdict is "allowed": record and connect. Refuses by itself where that fails. */
void flow_open(struct flow *flow, const struct judgement *verdict, const struct flow_said *said);
/* The verdict is not "allowed": record, and tell the guest: RST, or an answer where the mode can explain. */
void flow_refuse(struct flow *flow, const struct judgement *verdict, const struct flow_said *said);

/* The modes. Raw: the server may speak first, the connection is judged by lease or address rule alone. TLS: the
 * ClientHello is read, and a second one if the origin asks for it. HTTP: every request is read. */
extern const struct flow_mode flow_raw_mode, flow_tls_mode, flow_http_mode;
/* RELAYING: nothing more is to be read: what is held goes first, and the direction is spliced like any other. */
void flow_raw_take_over(struct flow *flow);

#endif
