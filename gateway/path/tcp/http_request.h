/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The client's direction of an HTTP/1 connection, cut into heads that must be judged and bodies that belong to them. */
#ifndef POSTERN_GATEWAY_HTTP_REQUEST_H
#define POSTERN_GATEWAY_HTTP_REQUEST_H

#include "gateway/path/tcp/http_head.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A request head, and the trailers of one body, may be this long (CASES B-24). */
#define HTTP_REQUEST_HEAD_MAX 32768
/* Digits of a chunk size: 60 bits, so that no sum overflows. */
#define HTTP_REQUEST_CHUNK_DIGITS_MAX 15

/* What http_request_next found at the front of the bytes. */
enum http_request_event {
	HTTP_REQUEST_MORE,     /* nothing that could be decided: keep the bytes, come back with more */
	HTTP_REQUEST_HEAD,     /* used bytes are a sound head, described in head: judge it, then call
				* http_request_accept; until then the same answer comes again */
	HTTP_REQUEST_BODY,     /* used bytes belong to the accepted request */
	HTTP_REQUEST_HELD,     /* an Upgrade was accepted: nothing may pass until http_request_upgraded */
	HTTP_REQUEST_OPAQUE,   /* the origin switched protocols: everything from here on may pass unread */
	HTTP_REQUEST_REJECTED, /* head.reason and head.detail say why; final */
};

enum http_request_state {
	HTTP_STATE_HEAD,       /* in a head; scanned, line and seen_cr are valid */
	HTTP_STATE_JUDGE,      /* a head of `scanned` bytes waits for http_request_accept */
	HTTP_STATE_LENGTH,     /* left bytes of body to go */
	HTTP_STATE_CHUNK_SIZE, /* at a chunk's size line */
	HTTP_STATE_CHUNK_DATA, /* left bytes of chunk to go */
	HTTP_STATE_CHUNK_END,  /* at the CRLF after a chunk */
	HTTP_STATE_TRAILER,    /* in the trailers; scanned, line and seen_cr are valid */
	HTTP_STATE_HELD,
	HTTP_STATE_OPAQUE,
	HTTP_STATE_REJECTED,
};

struct http_request {
	enum http_request_state state;
	struct addr dst; /* the connection's original destination */
	uint16_t port;
	bool first;            /* no request was accepted yet */
	struct http_head head; /* of the request under way */
	size_t scanned, line;  /* bytes looked at, start of the current line */
	bool seen_cr, seen_method, seen_request_line;
	uint64_t left;
	bool in_body; /* REJECTED: the fault is in the framing of a request that was accepted */
};

void http_request_init(struct http_request *request, const struct addr *dst, uint16_t port);

/* Look at bytes: all that were received and not used yet. After MORE and HEAD come again with the same bytes (and
 * more); after BODY with those after the used ones. ret_used is set for HEAD and BODY, 0 otherwise. The outcome does
 * not depend on how the bytes are cut. */
enum http_request_event http_request_next(
    struct http_request *request, const uint8_t *bytes, size_t len, size_t *ret_used);

/* The head was judged and may pass: go on after it. */
void http_request_accept(struct http_request *request);

/* After HELD: the origin answered the Upgrade with 101 (or not, then requests follow as before). */
void http_request_upgraded(struct http_request *request, bool switched);

/* Are the len bytes that are left the beginning of a head? */
bool http_request_in_head(const struct http_request *request, size_t len);

#endif
