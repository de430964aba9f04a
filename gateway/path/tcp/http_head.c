/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "gateway/path/tcp/http_head.h"

#include <string.h>

#define HTTP_PORT 80
/* Decimal digits of INT64_MAX: a Content-Length of so many cannot overflow 64 bits unnoticed. */
#define HTTP_LENGTH_DIGITS_MAX 18
#define HTTP_PORT_DIGITS_MAX 5

/* Notes why the head is refused. Always false. */
static bool
http_refuse(struct http_head *head, enum reason reason, const char *detail)
{
	head->reason = reason;
	head->detail = detail;
	return false;
}

/* Likewise for a breach of the syntax. */
static bool
http_malformed(struct http_head *head, const char *detail)
{
	return http_refuse(head, REASON_HTTP_MALFORMED, detail);
}

bool
http_head_is_token(uint8_t byte)
{
	static const char marks[] = "!#$%&'*+-.^_`|~";

	if ((byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9'))
		return true;
	return byte != 0 && memchr(marks, byte, sizeof(marks) - 1) != NULL;
}

/* Case-insensitive comparison with a lower-case word. */
static bool
http_is(struct reader text, const char *word)
{
	size_t len = strlen(word);

	if (reader_left(&text) != len)
		return false;
	for (size_t i = 0; i < len; i++) {
		uint8_t byte = reader_u8(&text);

		if ((byte >= 'A' && byte <= 'Z' ? byte | 0x20 : byte) != (uint8_t)word[i])
			return false;
	}
	return true;
}

/* Case-sensitive comparison. */
static bool
http_is_exact(struct reader text, const char *word)
{
	size_t len = strlen(word);

	return reader_left(&text) == len && memcmp(reader_bytes(&text, len), word, len) == 0;
}

/* What is before the first stop byte, which is skipped. Fails both when there is none. */
static struct reader
http_until(struct reader *text, uint8_t stop)
{
	struct reader look = *text;
	struct reader part;
	size_t n = 0;

	while (reader_left(&look) > 0 && reader_u8(&look) != stop)
		n++;
	if (n == reader_left(text))
		reader_fail(text);
	part = reader_sub(text, n);
	reader_u8(text);
	return part;
}

/* Without spaces and tabs at both ends. */
static struct reader
http_trim(struct reader text)
{
	size_t from = text.at, to = text.len;

	while (from < to && (text.bytes[from] == ' ' || text.bytes[from] == '\t'))
		from++;
	while (to > from && (text.bytes[to - 1] == ' ' || text.bytes[to - 1] == '\t'))
		to--;
	return reader_make(text.bytes + from, to - from);
}

/* Decimal digits and nothing else, no leading zero, at most digits_max of them. */
static bool
http_number(struct reader text, size_t digits_max, uint64_t *ret_number)
{
	size_t digits = reader_left(&text);
	uint64_t number = 0;

	if (digits == 0 || digits > digits_max)
		return false;
	for (size_t i = 0; i < digits; i++) {
		uint8_t byte = reader_u8(&text);

		if (byte < '0' || byte > '9' || (i == 0 && byte == '0' && digits > 1))
			return false;
		number = number * 10 + (uint64_t)(byte - '0');
	}
	*ret_number = number;
	return true;
}

/* "[v6]" or a host without a colon in front; leaves ":port" or nothing in *text. */
static enum reason
http_authority_host(struct reader *text, struct http_authority *authority, const char **ret_detail)
{
	struct reader look = *text;
	bool bracket = reader_left(&look) > 0 && reader_u8(&look) == '[';
	struct reader host;

	if (bracket) {
		reader_u8(text);
		host = http_until(text, ']');
		if (reader_ok(text) && addr_parse((const char *)host.bytes, host.len, &authority->literal) &&
		    authority->literal.family == 6)
			return REASON_ALLOWED;
		*ret_detail = "brackets around what is no IPv6 address";
		return REASON_HTTP_MALFORMED;
	}
	look = *text;
	http_until(&look, ':');
	host = reader_sub(text, reader_ok(&look) ? look.at - 1 - text->at : reader_left(text));
	if (host.len == 0) {
		*ret_detail = "empty host";
		return REASON_HTTP_MALFORMED;
	}
	if (name_canonical(host.bytes, host.len, &authority->name) == NAME_OK)
		return REASON_ALLOWED;
	authority->name = (struct name){0};
	if (addr_parse((const char *)host.bytes, host.len, &authority->literal) && authority->literal.family == 4)
		return REASON_ALLOWED;
	*ret_detail = "host is no host name";
	return REASON_HOST_MISMATCH;
}

/* The authority of a Host field or an absolute target; all of the reader. ret_detail says why not. The reason is
 * HTTP_MALFORMED for syntax and HOST_MISMATCH for what is no host name. */
static enum reason
http_authority_parse(struct reader text, struct http_authority *ret_authority, const char **ret_detail)
{
	struct http_authority authority = {.port = HTTP_PORT};
	struct reader look = text;
	enum reason reason;
	uint64_t port;

	http_until(&look, '@');
	if (reader_ok(&look)) {
		*ret_detail = "user information in the authority";
		return REASON_HTTP_MALFORMED;
	}
	reason = http_authority_host(&text, &authority, ret_detail);
	if (reason != REASON_ALLOWED)
		return reason;
	if (reader_left(&text) > 0) {
		if (reader_u8(&text) != ':' || !http_number(text, HTTP_PORT_DIGITS_MAX, &port) || port == 0 ||
		    port > 65535) {
			*ret_detail = "malformed port in the authority";
			return REASON_HTTP_MALFORMED;
		}
		authority.port = (uint16_t)port;
	}
	*ret_authority = authority;
	return REASON_ALLOWED;
}

/* The request target: origin-form, "*" for OPTIONS, or absolute-form of scheme http. */
static bool
http_head_target(struct http_head *head, struct reader target)
{
	struct reader look = target;
	size_t authority_len = 0;
	enum reason reason;

	while (reader_left(&look) > 0) {
		uint8_t byte = reader_u8(&look);

		if (byte <= 0x20 || byte >= 0x7f || byte == '#')
			return http_malformed(head, "byte in the request target that must be percent-encoded");
	}
	if (http_is_exact(target, "*"))
		return strcmp(head->method, "OPTIONS") == 0 || http_malformed(head, "target * is for OPTIONS only");
	look = target;
	if (reader_u8(&look) == '/')
		return reader_left(&look) == 0 || reader_u8(&look) != '/' ||
		    http_malformed(head, "request target begins with two slashes");
	look = target;
	if (reader_left(&target) < 7 || !http_is(reader_sub(&look, 7), "http://"))
		return http_malformed(head, "request target is neither a path nor an http URL");
	target = look;
	while (reader_left(&look) > 0) {
		uint8_t byte = reader_u8(&look);

		if (byte == '/' || byte == '?')
			break;
		authority_len++;
	}
	head->absolute = true;
	reason = http_authority_parse(reader_sub(&target, authority_len), &head->target, &head->detail);
	return reason == REASON_ALLOWED || http_refuse(head, reason, head->detail);
}

bool
http_head_request_line(struct http_head *head, struct reader line, bool first)
{
	struct reader rest = line;
	struct reader method = http_until(&rest, ' ');
	struct reader target = http_until(&rest, ' ');
	struct reader prefix;

	if (!reader_ok(&method) || method.len == 0 || method.len > HTTP_HEAD_METHOD_MAX)
		return http_refuse(head, first ? REASON_NOT_HTTP : REASON_HTTP_MALFORMED, "no HTTP request line");
	for (size_t i = 0; i < method.len; i++)
		if (!http_head_is_token(method.bytes[i]))
			return http_refuse(
			    head, first ? REASON_NOT_HTTP : REASON_HTTP_MALFORMED, "no HTTP request line");
	memcpy(head->method, method.bytes, method.len);
	if (strcmp(head->method, "CONNECT") == 0)
		return http_refuse(head, REASON_PROTO_DENIED, "CONNECT is not carried");
	if (strcmp(head->method, "PRI") == 0)
		return http_refuse(head, REASON_PROTO_DENIED, "HTTP/2 without TLS is not carried");
	if (!reader_ok(&target)) {
		if (first && strcmp(head->method, "GET") != 0)
			return http_refuse(head, REASON_NOT_HTTP, "no HTTP request line");
		return http_malformed(head, "request line without a version (HTTP/0.9)");
	}
	prefix = rest;
	if (reader_left(&rest) < 5 || !http_is_exact(reader_sub(&prefix, 5), "HTTP/"))
		return http_refuse(
		    head, first ? REASON_NOT_HTTP : REASON_HTTP_MALFORMED, "no HTTP version in the request line");
	if (http_is_exact(rest, "HTTP/1.1"))
		head->minor = 1;
	else if (http_is_exact(rest, "HTTP/1.0"))
		head->minor = 0;
	else
		return http_malformed(head, "HTTP version is neither 1.0 nor 1.1");
	if (reader_left(&target) == 0)
		return http_malformed(head, "empty request target");
	return http_head_target(head, target);
}

/* Reads Host: once, and it must name a host or an address. */
static bool
http_head_host(struct http_head *head, struct reader value)
{
	enum reason reason;

	if (head->host_seen)
		return http_malformed(head, "more than one Host");
	head->host_seen = true;
	head->claim_len = value.len < sizeof(head->claim) ? value.len : sizeof(head->claim);
	if (head->claim_len > 0)
		memcpy(head->claim, value.bytes, head->claim_len);
	reason = http_authority_parse(value, &head->host, &head->detail);
	return reason == REASON_ALLOWED || http_refuse(head, reason, head->detail);
}

/* Reads Content-Length: once, decimal. */
static bool
http_head_length(struct http_head *head, struct reader value)
{
	if (head->length_seen)
		return http_malformed(head, "more than one Content-Length");
	head->length_seen = true;
	if (!http_number(value, HTTP_LENGTH_DIGITS_MAX, &head->body_len))
		return http_malformed(head, "malformed Content-Length");
	return true;
}

/* Reads Transfer-Encoding: once, exactly chunked. */
static bool
http_head_coding(struct http_head *head, struct reader value)
{
	if (head->chunked)
		return http_malformed(head, "more than one Transfer-Encoding");
	head->chunked = true;
	return http_is(value, "chunked") || http_malformed(head, "Transfer-Encoding is not exactly chunked");
}

/* Reads Upgrade: once, exactly websocket. */
static bool
http_head_upgrade(struct http_head *head, struct reader value)
{
	if (head->websocket || !http_is(value, "websocket"))
		return http_refuse(head, REASON_PROTO_DENIED, "Upgrade to anything but websocket is not carried");
	head->websocket = true;
	return true;
}

/* "name:value" by the rules that all fields obey: name is a token, no space before the colon, no control bytes. */
static bool
http_head_split(struct http_head *head, struct reader line, struct reader *ret_name, struct reader *ret_value)
{
	struct reader name, value;

	if (++head->fields > HTTP_HEAD_FIELDS_MAX)
		return http_malformed(head, "too many header fields");
	if (line.bytes[0] == ' ' || line.bytes[0] == '\t')
		return http_malformed(head, "folded header line");
	name = http_until(&line, ':');
	if (!reader_ok(&name) || name.len == 0)
		return http_malformed(head, "header line without a name and a colon");
	for (size_t i = 0; i < name.len; i++)
		if (!http_head_is_token(name.bytes[i]))
			return http_malformed(head, "byte in a header name that may not be there");
	value = line;
	while (reader_left(&value) > 0) {
		uint8_t byte = reader_u8(&value);

		if ((byte < 0x20 && byte != '\t') || byte == 0x7f)
			return http_malformed(head, "control byte in a header value");
	}
	*ret_name = name;
	*ret_value = http_trim(line);
	return true;
}

static const struct {
	const char *name;
	bool (*handler)(struct http_head *head, struct reader value);
} http_head_fields[] = {
    {"host", http_head_host},
    {"content-length", http_head_length},
    {"transfer-encoding", http_head_coding},
    {"upgrade", http_head_upgrade},
};

#define HTTP_HEAD_FIELD_COUNT (sizeof(http_head_fields) / sizeof(http_head_fields[0]))

bool
http_head_field(struct http_head *head, struct reader line)
{
	struct reader name, value;

	if (!http_head_split(head, line, &name, &value))
		return false;
	for (size_t i = 0; i < HTTP_HEAD_FIELD_COUNT; i++)
		if (http_is(name, http_head_fields[i].name))
			return http_head_fields[i].handler(head, value);
	return true;
}

bool
http_head_trailer(struct http_head *head, struct reader line)
{
	struct reader name, value;

	if (!http_head_split(head, line, &name, &value))
		return false;
	for (size_t i = 0; i < HTTP_HEAD_FIELD_COUNT; i++)
		if (http_is(name, http_head_fields[i].name))
			return http_malformed(head, "framing or routing field in a trailer");
	return true;
}

bool
http_head_finish(struct http_head *head, bool first, const struct addr *dst, uint16_t port)
{
	if (!head->host_seen)
		return http_malformed(head, "no Host");
	if (head->absolute &&
	    (!name_equal(&head->target.name, &head->host.name) ||
		!addr_equal(&head->target.literal, &head->host.literal) || head->target.port != head->host.port))
		return http_refuse(head, REASON_HOST_MISMATCH, "request target and Host name different hosts");
	if (head->chunked && head->length_seen)
		return http_malformed(head, "both Transfer-Encoding and Content-Length");
	if (head->chunked && head->minor == 0)
		return http_malformed(head, "Transfer-Encoding in HTTP/1.0");
	if (head->websocket) {
		if (!first)
			return http_refuse(
			    head, REASON_PROTO_DENIED, "Upgrade is carried on a connection's first request only");
		if (strcmp(head->method, "GET") != 0 || head->minor == 0 || head->chunked || head->body_len > 0)
			return http_refuse(head, REASON_PROTO_DENIED, "Upgrade on anything but a plain HTTP/1.1 GET");
	}
	if (head->host.port != port)
		return http_refuse(head, REASON_HOST_MISMATCH, "Host names another port than the connection's");
	if (head->host.literal.family != 0 && !addr_equal(&head->host.literal, dst))
		return http_refuse(head, REASON_HOST_MISMATCH, "Host is another address than the connection's");
	return true;
}
