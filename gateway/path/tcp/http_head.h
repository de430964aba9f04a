/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What one HTTP/1 request head means, line by line: strict RFC 9112, and nothing that two parsers may read in two
 * ways. */
#ifndef POSTERN_GATEWAY_HTTP_HEAD_H
#define POSTERN_GATEWAY_HTTP_HEAD_H

#include "base/reader.h"
#include "policy/names/addr.h"
#include "policy/names/name.h"
#include "policy/reason.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Header fields of one head (CASES B-24). */
#define HTTP_HEAD_FIELDS_MAX 100
/* Longest registered method has 17 letters. */
#define HTTP_HEAD_METHOD_MAX 24
/* Host bytes kept for the record of a refusal. */
#define HTTP_HEAD_CLAIM_MAX 255

/* "host[:port]": either a name or an address literal is set. */
struct http_authority {
	struct name name;    /* len 0: a literal */
	struct addr literal; /* family 0: a name */
	uint16_t port;       /* 80 when none was said */
};

struct http_head {
	char method[HTTP_HEAD_METHOD_MAX + 1];
	uint8_t minor; /* HTTP/1.minor: 0 or 1 */
	bool absolute; /* the target named an authority too; it equals the host */
	struct http_authority target, host;
	bool host_seen, length_seen, chunked, websocket;
	uint64_t body_len; /* Content-Length, 0 without */
	unsigned int fields;
	uint8_t claim[HTTP_HEAD_CLAIM_MAX]; /* Host as said, cut */
	size_t claim_len;

	/* Why it was refused: one of HTTP_MALFORMED, NOT_HTTP, HOST_MISMATCH, PROTO_DENIED, and static text. */
	enum reason reason;
	const char *detail;
};

/* Each takes a line without its CRLF and answers whether the head may go on; otherwise reason and detail are set.
 * first: it is the connection's first request: a fault may mean another protocol than HTTP. */
bool http_head_request_line(struct http_head *head, struct reader line, bool first);
bool http_head_field(struct http_head *head, struct reader line);
/* A trailer field: as strict, and nothing that frames or routes. */
bool http_head_trailer(struct http_head *head, struct reader line);
/* The empty line was seen: do the fields fit together, and does the host fit the connection's original destination? */
bool http_head_finish(struct http_head *head, bool first, const struct addr *dst, uint16_t port);

/* RFC 9110 5.6.2 */
bool http_head_is_token(uint8_t byte);

#endif
