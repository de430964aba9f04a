/* SPDX-License-Identifier: GPL-3.0-or-later */
/* DNS messages written byte by byte, good and bad ones, for the tests of the gateway's DNS path. */
#ifndef POSTERN_TESTS_UNIT_GATEWAY_DNS_WIRE_H
#define POSTERN_TESTS_UNIT_GATEWAY_DNS_WIRE_H

#include "gateway/path/dns/dns_message.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

struct wire {
	size_t len;
	uint8_t bytes[65535];
};

static inline void
wire_put(struct wire *w, const void *bytes, size_t len)
{
	assert_true(w->len + len <= sizeof(w->bytes));
	if (len > 0)
		memcpy(w->bytes + w->len, bytes, len);
	w->len += len;
}

static inline void
wire_u8(struct wire *w, unsigned int value)
{
	uint8_t byte = (uint8_t)value;

	wire_put(w, &byte, 1);
}

static inline void
wire_u16(struct wire *w, unsigned int value)
{
	wire_u8(w, value >> 8 & 0xff);
	wire_u8(w, value & 0xff);
}

static inline void
wire_u32(struct wire *w, uint32_t value)
{
	wire_u16(w, value >> 16);
	wire_u16(w, value & 0xffff);
}

static inline void
wire_header(struct wire *w, unsigned int id, unsigned int flags, unsigned int qd, unsigned int an, unsigned int ns,
    unsigned int ar)
{
	w->len = 0;
	wire_u16(w, id);
	wire_u16(w, flags);
	wire_u16(w, qd);
	wire_u16(w, an);
	wire_u16(w, ns);
	wire_u16(w, ar);
}

/* "www.example.com" as labels; "" is the root. */
static inline void
wire_name(struct wire *w, const char *text)
{
	while (*text != '\0') {
		size_t n = strcspn(text, ".");

		wire_u8(w, (unsigned int)n);
		wire_put(w, text, n);
		text += n + (text[n] == '.');
	}
	wire_u8(w, 0);
}

static inline void
wire_question(struct wire *w, const char *name, unsigned int type, unsigned int class)
{
	wire_name(w, name);
	wire_u16(w, type);
	wire_u16(w, class);
}

/* Owner, type, class IN, ttl; then rdata with its length. */
static inline void
wire_rr(struct wire *w, const char *owner, unsigned int type, uint32_t ttl_s, const void *rdata, size_t len)
{
	wire_question(w, owner, type, DNS_CLASS_IN);
	wire_u32(w, ttl_s);
	wire_u16(w, (unsigned int)len);
	wire_put(w, rdata, len);
}

static inline void
wire_cname(struct wire *w, const char *owner, uint32_t ttl_s, const char *target)
{
	struct wire *rdata = calloc(1, sizeof(*rdata));

	wire_name(rdata, target);
	wire_rr(w, owner, DNS_TYPE_CNAME, ttl_s, rdata->bytes, rdata->len);
	free(rdata);
}

static inline void
wire_addr(struct wire *w, const char *owner, uint32_t ttl_s, const char *text)
{
	struct addr addr;

	assert_true(addr_parse(text, strlen(text), &addr));
	wire_rr(w, owner, addr.family == 4 ? DNS_TYPE_A : DNS_TYPE_AAAA, ttl_s, addr.bytes, addr.family == 4 ? 4 : 16);
}

static inline void
wire_opt(struct wire *w, unsigned int size, uint32_t ttl, const void *options, size_t len)
{
	wire_u8(w, 0);
	wire_u16(w, DNS_TYPE_OPT);
	wire_u16(w, size);
	wire_u32(w, ttl);
	wire_u16(w, (unsigned int)len);
	wire_put(w, options, len);
}

static inline void
wire_soa(struct wire *w, const char *owner)
{
	static const uint8_t rdata[22] = {0};

	wire_rr(w, owner, DNS_TYPE_SOA, 60, rdata, sizeof(rdata));
}

/* An ordinary query: RD, one question, EDNS when size > 0. */
static inline void
wire_query(struct wire *w, unsigned int id, const char *name, unsigned int type, unsigned int edns_size)
{
	wire_header(w, id, 0x0100, 1, 0, 0, edns_size > 0);
	wire_question(w, name, type, DNS_CLASS_IN);
	if (edns_size > 0)
		wire_opt(w, edns_size, 0, NULL, 0);
}

static inline struct name
name_of(const char *text)
{
	struct name name;

	assert_int_equal(name_canonical(text, strlen(text), &name), NAME_OK);
	return name;
}

#endif
