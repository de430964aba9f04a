/* SPDX-License-Identifier: GPL-3.0-or-later */
/* One TCP connection of a sandbox, from accept to its closing record. */
#ifndef POSTERN_GATEWAY_FLOW_H
#define POSTERN_GATEWAY_FLOW_H

#include "gateway/path/judge.h"
#include "gateway/path/gateway.h"
#include "gateway/path/tcp/http_request.h"
#include "gateway/path/count/quota.h"
#include "gateway/path/tcp/relay.h"
#include "gateway/path/tcp/tls_hello.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A refused HTTP client gets this long to read its answer, and may send this much more meanwhile. */
#define FLOW_LINGER_MS 2000
#define FLOW_LINGER_BYTES_MAX 262144
/* A quiet peer is asked after a minute whether it is there, and then every quarter of a minute. */
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

enum flow_mode {
	FLOW_RAW,  /* the server may speak first: judged by lease or address rule alone */
	FLOW_TLS,  /* port 443: the ClientHello is read */
	FLOW_HTTP, /* port 80: every request is read */
};

/* Entered only in this order (states may be left out). What each promises:
 *
 * READING   guest readable is watched; nothing was sent anywhere, no record exists. Left by flow_open (allowed) or
 *           flow_refuse (record complete). Timer: GATEWAY_HEAD_MS. Inspected modes only.
 * OPENING   verdict allowed; the opening record is under way (durable), connect is under way (connected). The guest is
 *           watched for a reset only. No payload byte was passed on. Left by flow_establish when both are done, or by
 *           flow_end. Timer: GATEWAY_CONNECT_MS.
 * RELAYING  payload passes. The kernel's keepalive and user timeout end dead peers. FLOW_HTTP: while the record of
 *           another host's request is under way, the request waits, timer GATEWAY_CONNECT_MS; while a later head is
 *           incomplete, timer GATEWAY_HEAD_MS. No timer otherwise.
 * LINGERING HTTP refusal: record complete, answer sent and FIN behind it; what the guest still sends is dropped. No
 *           origin. Timer: FLOW_LINGER_MS.
 * ENDED     descriptors closed, records complete, off the list; only the memory waits for the end of the round. */
enum flow_state {
	FLOW_READING,
	FLOW_OPENING,
	FLOW_RELAYING,
	FLOW_LINGERING,
	FLOW_ENDED,
};

/* Both ends of the connection as the guest made it; dst is where it goes, and nothing else is ever dialled. */
struct flow_ends {
	struct addr src, dst;
	uint16_t sport, dport;
};

/* What flow_record_refused says beside the verdict; zeroed for nothing. */
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
	struct flow *first;
	size_t count;
	size_t buffered; /* bytes of all flows' buffers, each counted beyond FLOW_BUFFER_FIRST */
};

struct flow_buffer {
	uint8_t *bytes; /* owned */
	size_t len, size;
};

/* TCP segments on the guest's side. */
struct flow_segments {
	uint32_t out, in; /* from the guest, to it; they wrap */
};

struct flow_http {
	struct http_request parser;
	size_t ready;        /* bytes at the buffer's front that may pass */
	int64_t read_us;     /* clock_mono_us of the last read from the guest */
	int64_t head_us;     /* likewise, of the read that brought the first byte of a head still incomplete; else 0 */
	bool status_awaited; /* an Upgrade was allowed; the start of the origin's answer decides what follows */
	bool status_partial; /* less than that start was there once; SO_RCVLOWAT waits for all of it */
	bool pending;        /* another host's request was allowed; its record is under way */
};

/* FLOW_TLS: what the first hello said, until it is known whether a second one will, and the second one. */
struct flow_retry {
	size_t first_len; /* of the first hello, with its record headers */
	enum tls_hello_sni sni;
	struct name name;
	bool ech;
	bool wanted;            /* the origin's answer asks for a second one; before, that answer is awaited */
	bool partial;           /* less than the start of an answer was there once; SO_RCVLOWAT waits for all of it */
	bool found;             /* the second one begins behind skipped bytes */
	size_t skipped;         /* of flow->in: whole records before it */
	struct tls_hello hello; /* the second one */
};

struct flow {
	struct flow *next, **link; /* in list */
	struct flow_list *list;    /* NULL once ENDED */
	struct sandbox *sandbox;
	enum flow_state state;
	enum flow_mode mode;
	struct flow_ends ends;
	int guest_fd, origin_fd; /* owned; the sources' own fields are -1 while they are not watched */
	struct loop_source guest, origin;
	struct loop_timer timer;
	struct loop_deferred deferred;

	struct judgement verdict; /* behind the current record */
	uint64_t record_id;       /* the open record; 0: none */
	struct recorder_wait wait;
	int64_t opened_us;  /* clock_mono_us of the open record */
	int64_t began_us;   /* likewise: accepted, or the first byte of the request that the record is about was read */
	int64_t dialled_us; /* likewise: connect was called */
	int64_t connect_us, first_byte_us; /* as in struct record_close */
	struct addr up_src;                /* our own end of the connection to the origin */
	uint16_t up_sport;
	struct flow_segments segments; /* of records before the open one */
	struct interim interim;
	uint8_t flags; /* RECORD_FLAG_* */
	bool durable, connected;
	struct quota_ticket ticket; /* held while a record is open */

	struct tls_hello *hello;    /* FLOW_TLS while READING; owned */
	struct flow_retry *retry;   /* FLOW_TLS from the verdict until the flow is opaque; owned */
	struct flow_http *http;     /* FLOW_HTTP until the flow is opaque; owned */
	struct flow_buffer in;      /* guest's bytes not passed on yet */
	size_t lingered;            /* LINGERING: bytes dropped */
	struct relay_way out, back; /* guest to origin, origin to guest */
};

/* flow.c */

/* Take an accepted connection (fd owned from now on) and begin. The caller has checked limits and recorder. On failure
 * the guest is reset and the attempt recorded. */
void flow_start(struct flow_list *list, int guest_fd, const struct flow_ends *ends);
/* Close everything now; the open record is closed as end. reset: both sides see RST. Safe in any handler. */
void flow_end(struct flow *flow, enum end_reason end, enum verdict verdict, enum reason reason, bool reset);
/* Detach or shutdown, in any state: as flow_end, and an attempt that has no record yet gets its one. */
void flow_detach(struct flow *flow, enum end_reason end);
/* The verdict is "allowed": record and connect. Refuses by itself where that fails. */
void flow_open(struct flow *flow, const struct judgement *verdict, const struct flow_said *said);
/* The verdict is not "allowed": record, and tell the guest: RST, or an answer where HTTP was spoken. */
void flow_refuse(struct flow *flow, const struct judgement *verdict, const struct flow_said *said);
/* RELAYING: move bytes in the named directions, then watch what each waits for. May end the flow. */
void flow_pump(struct flow *flow, bool out, bool back);
/* Make the flow's buffer this big (never smaller), within FLOW_BUFFERED_MAX. Is there room for one more byte then? */
bool flow_buffer_reserve(struct flow *flow, size_t size);
void flow_buffer_free(struct flow *flow);
/* The buffered bytes go first through flow->out. */
void flow_buffer_to_prefix(struct flow *flow);

/* flow_socket.c: their sockets. */

/* No delay, keepalive, and a reset as the end: for both ends of a connection. Accepted sockets inherit them from their
 * listener. */
void flow_set_options(int fd);
/* Close with RST: whatever is still in the send buffer is not delivered. */
void flow_close_reset(int fd);
/* Close with FIN: the kernel goes on delivering what is in the send buffer. */
void flow_close_in_order(int fd);
/* A socket for the origin, in the host's namespace. -1 with errno. */
int flow_origin_socket(const struct flow_ends *ends);

/* What the kernel counted on the guest's socket: all segments but the SYN that made it, those without payload and those
 * sent again included. False when it does not say. */
bool flow_count_segments(int fd, struct flow_segments *ret_segments);

/* flow_record.c: records and verdicts of flows. */

/* Microseconds since a clock_mono_us; at least 1, since 0 says "did not happen". */
int64_t flow_since_us(int64_t began_us);

/* Are there too many refusals of this sandbox for one more record of its own? Then it has been counted
 * (gateway/path/tcp/proxy.c). */
bool proxy_counts_refusal(
    struct sandbox *sandbox, const struct flow_ends *ends, enum verdict verdict, enum reason reason);
/* The one, complete record of an attempt that is not let through; or its place in a count. */
void flow_record_refused(struct sandbox *sandbox, const struct flow_ends *ends, const struct judgement *verdict,
    const struct flow_said *said);
/* Open the flow's record by flow->verdict; wait fires when it is durable. 0 or -errno. */
int flow_record_open(struct flow *flow, const struct flow_said *said);
/* Close it, if one is open, with the bytes counted so far, and count from zero. */
void flow_record_close(struct flow *flow, enum end_reason end, enum verdict verdict, enum reason reason);
/* Does the sandbox's present policy still allow what flow->verdict allowed? Leases are not asked. */
bool flow_still_allowed(const struct flow *flow);

/* flow_meter.c: what flows use up. */

/* The verdict is "allowed": may it be used once more? False: *verdict says why not. */
bool flow_quota_open(struct flow *flow, struct judgement *verdict);
/* Another request's verdict takes the place of the one before, on the same connection. */
bool flow_quota_next(struct flow *flow, struct judgement *verdict);
/* RELAYING, before a turn: how much may move. False when nothing may: the flow was ended. */
bool flow_quota_budget(struct flow *flow, bool out, bool back);
/* RELAYING, after it: count what did. False when that was beyond a limit: the flow was ended. */
bool flow_quota_count(struct flow *flow);

/* flow_tls.c: the hello of FLOW_TLS. */

/* READING: more bytes are in flow->in. Opens, refuses, or returns to wait for more. */
void flow_tls_read(struct flow *flow);
/* READING: deadline, or the guest went away, before the hello was complete. */
void flow_tls_incomplete(struct flow *flow, const char *detail);

/* flow_retry.c: the second hello of FLOW_TLS. */

/* READING, the first hello is done: keep what the second one must say again. False without memory. */
bool flow_retry_expect(struct flow *flow);
void flow_retry_free(struct flow *flow);
/* The first hello goes out, and nothing behind it. False without memory. */
bool flow_retry_start(struct flow *flow);
/* RELAYING: write it, read and hold what comes behind, judge a second hello when one is wanted. Sets flow->out.status,
 * or ends the flow, or frees flow->retry: the flow is opaque then. */
void flow_retry_pump(struct flow *flow);
/* RELAYING, not wanted yet: look at the origin's first bytes. True when that is decided; the flow may have ended. */
bool flow_retry_answer(struct flow *flow);
/* RELAYING: the timer ran out on a second hello. Ends the flow. */
void flow_retry_late(struct flow *flow);

/* flow_http.c: the client's direction of FLOW_HTTP. */

/* READING: more bytes are in flow->in. Opens, refuses, or returns to wait for more. */
void flow_http_read(struct flow *flow);
/* READING: deadline, or the guest went away, before the head was complete. */
void flow_http_incomplete(struct flow *flow, const char *detail);
/* RELAYING: read, judge, pass on. Sets and returns flow->out.status, or ends the flow (state tells). */
enum relay_status flow_http_pump(struct flow *flow);
/* RELAYING, status_awaited: look at the origin's first bytes. True when that is decided (and sets what follows). */
bool flow_http_status(struct flow *flow);
/* The record of another host's request is durable: let the request pass. */
void flow_http_resume(struct flow *flow);
/* OPENING, RELAYING: no more bytes will be read or passed on. When some of those that came begin a request which was
 * never judged, or is for another host, that attempt gets its record; a request is named once. For a flow without http:
 * nothing. */
void flow_http_abandon(struct flow *flow);
/* RELAYING: the timer ran out on a later head, or on a record. Ends the flow. */
void flow_http_late(struct flow *flow);
/* Send an answer that explains the refusal. False when that is not possible. */
bool flow_http_answer(struct flow *flow, const struct judgement *verdict, const struct flow_said *said);

#endif
