/* SPDX-License-Identifier: GPL-3.0-or-later */
/* DNS messages as they come in: a guest's query and an upstream answer, both read strictly and through base/reader.h.
 *
 * What does not parse to the last byte is refused. Compression pointers go strictly backwards, never into the header,
 * and a guest's question may hold none. The writing side is gateway/path/dns/dns_reply.h. */
#ifndef POSTERN_GATEWAY_DNS_MESSAGE_H
#define POSTERN_GATEWAY_DNS_MESSAGE_H

#include "base/reader.h"
#include "policy/names/addr.h"
#include "policy/names/name.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DNS_HEADER_SIZE 12
/* RFC 1035 2.3.4: a name on the wire, root byte included. */
#define DNS_NAME_WIRE_MAX 255
/* A question on the wire: name, type, class. */
#define DNS_QUESTION_MAX (DNS_NAME_WIRE_MAX + 4)
/* Compression pointers followed in one name: encoders nest about as deep as a name has labels in common with others. */
#define DNS_POINTERS_MAX 32
/* CNAME links from the question to the data (CASES C-09). */
#define DNS_CHAIN_MAX 16
/* CNAME records looked at in one answer, those off the chain included; more is no honest answer. */
#define DNS_CNAMES_MAX 32
/* Addresses in one answer, all of which are judged; more is refused. A 64 KiB message could hold 4,000. */
#define DNS_ADDRS_MAX 1024
/* HTTPS or SVCB records of one answer that are looked at; further ones are left out. */
#define DNS_SERVICES_MAX 8
/* Payload size that we state upstream and serve guests at most over UDP (no fragments on any path: DNS flag day
 * 2020). */
#define DNS_UDP_MAX 1232
/* What a client without EDNS takes (RFC 1035 4.2.1). */
#define DNS_UDP_PLAIN 512
/* Our own upstream query: header, question, OPT without options. */
#define DNS_OPT_SIZE 11
#define DNS_QUERY_MAX (DNS_HEADER_SIZE + DNS_QUESTION_MAX + DNS_OPT_SIZE)

enum dns_type {
	DNS_TYPE_A = 1,
	DNS_TYPE_CNAME = 5,
	DNS_TYPE_SOA = 6,
	DNS_TYPE_HINFO = 13,
	DNS_TYPE_AAAA = 28,
	DNS_TYPE_OPT = 41,
	DNS_TYPE_SVCB = 64,
	DNS_TYPE_HTTPS = 65,
	DNS_TYPE_IXFR = 251,
	DNS_TYPE_AXFR = 252,
	DNS_TYPE_ANY = 255,
};
#define DNS_CLASS_IN 1

enum dns_rcode {
	DNS_NOERROR = 0,
	DNS_FORMERR = 1,
	DNS_SERVFAIL = 2,
	DNS_NXDOMAIN = 3,
	DNS_NOTIMP = 4,
	DNS_REFUSED = 5,
	DNS_BADVERS = 16, /* RFC 6891: upper bits travel in the OPT record */
};

/* A guest's query, as far as it could be read. */
struct dns_question {
	uint16_t id;
	uint8_t opcode;
	bool rd;           /* recursion desired: copied into the reply */
	bool has_question; /* wire, type, class and name are filled */
	bool name_ok;      /* name is filled; else name_error says why not */
	bool has_edns;     /* one OPT record was there: the reply has one too */
	uint16_t udp_size; /* from OPT; DNS_UDP_PLAIN without */
	uint16_t type, class;
	uint16_t name_wire_len;
	uint16_t wire_len;
	uint8_t wire[DNS_QUESTION_MAX]; /* name, type, class byte for byte as asked (0x20 case, CASES C-19) */
	enum name_error name_error;
	struct name name; /* canonical */
};

enum dns_read {
	DNS_READ_OK,
	DNS_READ_ERROR, /* answer with *ret_rcode; nothing goes upstream */
	DNS_READ_DROP,  /* no query at all (a response, or no whole header): no answer, or two servers could play
			   ping-pong */
};

/* Read a guest's query (CASES C-17, C-22). ret_question is always filled as far as possible; *ret_rcode (an enum
 * dns_rcode) is set with DNS_READ_ERROR. A name that is no host name is not an error here: see name_ok. */
enum dns_read dns_message_read_question(
    const void *bytes, size_t len, struct dns_question *ret_question, uint16_t *ret_rcode);

/* The CNAME links followed so far, over all answers to one question. Starts zeroed with ttl_s = UINT32_MAX. */
struct dns_chain {
	uint32_t ttl_s; /* smallest seen */
	size_t count;
	struct name names[DNS_CHAIN_MAX]; /* targets, in order */
};

enum dns_answer_kind {
	DNS_ANSWER_DATA, /* records of the type asked for, at the end of the chain */
	DNS_ANSWER_NODATA,
	DNS_ANSWER_NXDOMAIN,
	DNS_ANSWER_CHASE,    /* the chain goes on outside of this message: ask for its last name */
	DNS_ANSWER_FAILED,   /* an error code */
	DNS_ANSWER_MISMATCH, /* not the answer to our query: id, or question (case included) differ */
	DNS_ANSWER_BAD,      /* malformed, looping, too long; detail says which */
};

struct dns_bytes {
	const uint8_t *bytes; /* into the message */
	size_t len;
};

struct dns_answer {
	enum dns_answer_kind kind;
	uint8_t rcode;      /* of the header */
	const char *detail; /* static text; "" unless BAD */
	size_t addr_count;
	struct addr addrs[DNS_ADDRS_MAX]; /* A, AAAA */
	size_t service_count;
	struct dns_bytes services[DNS_SERVICES_MAX]; /* HTTPS, SVCB: rdata */
};

/* Read the answer to query (the message that dns_message_write_query made). first is the name of the question as a
 * whole: where the chain begins, which query's own name is or which chain has led from. Only records of the answer
 * section on that chain count (CASES C-09, C-24); new links are appended to chain, and chain->ttl_s is lowered. */
void dns_message_read_answer(const void *bytes, size_t len, const void *query, size_t query_len,
    const struct name *first, struct dns_chain *chain, struct dns_answer *ret_answer);

/* Read a name that may be compressed, from a reader over the whole message, into uncompressed wire form. False (and the
 * reader failed) when it breaks a rule (CASES B-13, B-14). */
bool dns_message_read_name(struct reader *message, uint8_t ret_wire[DNS_NAME_WIRE_MAX], size_t *ret_len);

/* A canonical name as wire labels; returns the length. */
size_t dns_message_write_name(const struct name *name, uint8_t ret_wire[DNS_NAME_WIRE_MAX]);

/* Our own query for upstream: recursion desired, our OPT as the last 11 bytes, nothing of the guest's. The letters'
 * case follows the bits of case_bits in turn (draft 0x20; 0: all lower case). Returns the length. */
size_t dns_message_write_query(
    const struct name *name, uint16_t type, uint16_t id, uint64_t case_bits, uint8_t ret_bytes[DNS_QUERY_MAX]);

#endif
