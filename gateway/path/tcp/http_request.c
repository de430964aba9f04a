/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The client's direction of HTTP/1.
 *
 * Theory of operation. A proxy that judges only the first request of a connection is no filter: the second may name
 * another host on the same shared address. So every byte of the client's direction is accounted for: it is part of a
 * head, which is judged before any of it passes, or of a body, whose end we and the origin must see at the same place.
 * Everything that some parser might frame differently (two lengths, chunk extensions, bare LF, folded lines, leading
 * zeros) is refused rather than repaired, and what passes is passed exactly as it came.
 *
 * Heads, size lines and trailers are held until they are complete and sound; body bytes pass as they come. The machine
 * works byte by byte on the caller's buffer and keeps no copy; the caller's buffer must hold HTTP_REQUEST_HEAD_MAX. */
#include "gateway/path/tcp/http_request.h"

void
http_request_init(struct http_request *request, const struct addr *dst, uint16_t port)
{
	*request = (struct http_request){.state = HTTP_STATE_HEAD, .dst = *dst, .port = port, .first = true};
}

/* Ends the parsing for good, with a reason. */
static enum http_request_event
http_request_reject(struct http_request *request, enum reason reason, const char *detail)
{
	request->in_body = request->state != HTTP_STATE_HEAD;
	request->state = HTTP_STATE_REJECTED;
	request->head.reason = reason;
	request->head.detail = detail;
	return HTTP_REQUEST_REJECTED;
}

/* Likewise for a breach of the syntax. */
static enum http_request_event
http_request_malformed(struct http_request *request, const char *detail)
{
	return http_request_reject(request, REASON_HTTP_MALFORMED, detail);
}

/* Start over on lines: a head or trailers. */
static void
http_request_lines(struct http_request *request, enum http_request_state state)
{
	request->state = state;
	request->scanned = request->line = 0;
	request->seen_cr = false;
	request->seen_method = request->seen_request_line = false;
}

/* The first byte tells most other protocols; a method's bytes tell the rest without waiting for a line's end. */
static enum http_request_event
http_request_early(struct http_request *request, uint8_t byte, size_t at)
{
	enum reason reason = request->first ? REASON_NOT_HTTP : REASON_HTTP_MALFORMED;

	if (at == 0 && byte == 0x16)
		return http_request_reject(request, reason, "TLS on the HTTP port");
	if (!http_head_is_token(byte) && (byte != ' ' || at == 0))
		return http_request_reject(request, reason, "no HTTP request line");
	if (at >= HTTP_HEAD_METHOD_MAX && byte != ' ')
		return http_request_reject(request, reason, "no HTTP method");
	return HTTP_REQUEST_MORE;
}

/* A line of a head is whole. HEAD when it was the empty one at the end. */
static enum http_request_event
http_request_head_line(struct http_request *request, struct reader line)
{
	bool sound;

	if (!request->seen_request_line) {
		request->seen_request_line = true;
		sound = http_head_request_line(&request->head, line, request->first);
	} else if (reader_left(&line) > 0) {
		sound = http_head_field(&request->head, line);
	} else {
		sound = http_head_finish(&request->head, request->first, &request->dst, request->port);
		if (sound)
			return HTTP_REQUEST_HEAD;
	}
	if (!sound)
		return http_request_reject(request, request->head.reason, request->head.detail);
	return HTTP_REQUEST_MORE;
}

/* A line of the trailers is whole. BODY when it was the empty one at the end. */
static enum http_request_event
http_request_trailer_line(struct http_request *request, struct reader line)
{
	if (reader_left(&line) == 0)
		return HTTP_REQUEST_BODY;
	if (!http_head_trailer(&request->head, line))
		return http_request_reject(request, request->head.reason, request->head.detail);
	return HTTP_REQUEST_MORE;
}

/* Lines end with CRLF and hold neither CR nor LF. Scans on; MORE until the block's empty line or a fault. */
static enum http_request_event
http_request_scan(struct http_request *request, const uint8_t *bytes, size_t len)
{
	enum http_request_event event = HTTP_REQUEST_MORE;
	struct reader r = reader_make(bytes, len);

	reader_bytes(&r, request->scanned);
	while (event == HTTP_REQUEST_MORE && reader_left(&r) > 0) {
		uint8_t byte = reader_u8(&r);
		size_t at = request->scanned++;

		if (at >= HTTP_REQUEST_HEAD_MAX)
			return http_request_malformed(request, "request head too long");
		if (request->seen_cr) {
			struct reader line = reader_make(bytes + request->line, at - 1 - request->line);

			if (byte != '\n')
				return http_request_malformed(request, "CR without LF");
			request->seen_cr = false;
			request->line = at + 1;
			event = request->state == HTTP_STATE_HEAD ? http_request_head_line(request, line)
								  : http_request_trailer_line(request, line);
			continue;
		}
		if (request->state == HTTP_STATE_HEAD && !request->seen_request_line &&
		    request->head.method[0] == '\0') {
			event = http_request_early(request, byte, at);
			/* The method's end: http_head_request_line writes the real one. */
			if (byte == ' ')
				request->head.method[0] = ' ';
			continue;
		}
		if (byte == '\r')
			request->seen_cr = true;
		else if (byte == '\n' || byte == '\0')
			return http_request_malformed(request, byte == '\0' ? "NUL in the head" : "LF without CR");
	}
	return event;
}

/* Value of a hexadecimal digit; 16 for another byte. */
static uint8_t
http_request_digit(uint8_t byte)
{
	if (byte >= '0' && byte <= '9')
		return (uint8_t)(byte - '0');
	if (byte >= 'a' && byte <= 'f')
		return (uint8_t)(byte - 'a' + 10);
	if (byte >= 'A' && byte <= 'F')
		return (uint8_t)(byte - 'A' + 10);
	return 16;
}

/* 1*HEXDIG CRLF; no extension, no space. */
static enum http_request_event
http_request_chunk_size(struct http_request *request, const uint8_t *bytes, size_t len, size_t *ret_used)
{
	struct reader r = reader_make(bytes, len);
	uint64_t size = 0;
	size_t digits = 0;
	uint8_t byte = 0;

	while (reader_left(&r) > 0) {
		byte = reader_u8(&r);
		if (http_request_digit(byte) > 15)
			break;
		if (++digits > HTTP_REQUEST_CHUNK_DIGITS_MAX)
			return http_request_malformed(request, "chunk size too long");
		size = size << 4 | http_request_digit(byte);
	}
	if (digits == r.at) /* all of them digits, or none there */
		return HTTP_REQUEST_MORE;
	if (digits == 0 || byte != '\r')
		return http_request_malformed(request, "malformed chunk size or chunk extension");
	if (reader_left(&r) == 0)
		return HTTP_REQUEST_MORE;
	if (reader_u8(&r) != '\n')
		return http_request_malformed(request, "CR without LF");
	*ret_used = r.at;
	request->left = size;
	if (size > 0)
		request->state = HTTP_STATE_CHUNK_DATA;
	else
		http_request_lines(request, HTTP_STATE_TRAILER);
	return HTTP_REQUEST_BODY;
}

/* Reads the CRLF after a chunk's data. */
static enum http_request_event
http_request_chunk_end(struct http_request *request, const uint8_t *bytes, size_t len, size_t *ret_used)
{
	struct reader r = reader_make(bytes, len);

	if (reader_u8(&r) != '\r' || (reader_left(&r) > 0 && reader_u8(&r) != '\n'))
		return http_request_malformed(request, "no CRLF behind a chunk");
	if (len < 2)
		return HTTP_REQUEST_MORE;
	request->state = HTTP_STATE_CHUNK_SIZE;
	*ret_used = 2;
	return HTTP_REQUEST_BODY;
}

/* The next request begins with fresh fields; which connection it is on stays. */
static void
http_request_next_head(struct http_request *request)
{
	request->head = (struct http_head){0};
	http_request_lines(request, HTTP_STATE_HEAD);
}

/* Passes body bytes on, as many as belong to this body or chunk. */
static enum http_request_event
http_request_data(struct http_request *request, size_t len, size_t *ret_used)
{
	size_t n = len < request->left ? len : (size_t)request->left;

	request->left -= n;
	*ret_used = n;
	if (request->left > 0)
		return HTTP_REQUEST_BODY;
	if (request->state == HTTP_STATE_CHUNK_DATA)
		request->state = HTTP_STATE_CHUNK_END;
	else
		http_request_next_head(request);
	return HTTP_REQUEST_BODY;
}

enum http_request_event
http_request_next(struct http_request *request, const uint8_t *bytes, size_t len, size_t *ret_used)
{
	enum http_request_event event;

	*ret_used = 0;
	switch (request->state) {
	case HTTP_STATE_HELD:
		return HTTP_REQUEST_HELD;
	case HTTP_STATE_OPAQUE:
		return HTTP_REQUEST_OPAQUE;
	case HTTP_STATE_REJECTED:
		return HTTP_REQUEST_REJECTED;
	case HTTP_STATE_JUDGE:
		*ret_used = request->scanned;
		return HTTP_REQUEST_HEAD;
	case HTTP_STATE_HEAD:
		event = http_request_scan(request, bytes, len);
		if (event == HTTP_REQUEST_HEAD) {
			request->state = HTTP_STATE_JUDGE;
			*ret_used = request->scanned;
		}
		return event;
	case HTTP_STATE_TRAILER:
		event = http_request_scan(request, bytes, len);
		if (event == HTTP_REQUEST_BODY) {
			*ret_used = request->scanned;
			http_request_next_head(request);
		}
		return event;
	case HTTP_STATE_LENGTH:
	case HTTP_STATE_CHUNK_DATA:
		return len == 0 ? HTTP_REQUEST_MORE : http_request_data(request, len, ret_used);
	case HTTP_STATE_CHUNK_SIZE:
		return http_request_chunk_size(request, bytes, len, ret_used);
	case HTTP_STATE_CHUNK_END:
		return len == 0 ? HTTP_REQUEST_MORE : http_request_chunk_end(request, bytes, len, ret_used);
	}
	return http_request_malformed(request, "internal state");
}

void
http_request_accept(struct http_request *request)
{
	request->first = false;
	if (request->head.websocket) {
		request->state = HTTP_STATE_HELD;
	} else if (request->head.chunked) {
		request->state = HTTP_STATE_CHUNK_SIZE;
		request->head.fields = 0; /* counts trailers from here */
	} else if (request->head.body_len > 0) {
		request->state = HTTP_STATE_LENGTH;
		request->left = request->head.body_len;
	} else {
		http_request_next_head(request);
	}
}

void
http_request_upgraded(struct http_request *request, bool switched)
{
	if (switched)
		request->state = HTTP_STATE_OPAQUE;
	else
		http_request_next_head(request);
}

bool
http_request_in_head(const struct http_request *request, size_t len)
{
	return len > 0 && request->state == HTTP_STATE_HEAD;
}
