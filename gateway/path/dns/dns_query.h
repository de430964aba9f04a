/* SPDX-License-Identifier: GPL-3.0-or-later */
/* One query of a guest, from its arrival to its reply and its record. */
#ifndef POSTERN_GATEWAY_DNS_QUERY_H
#define POSTERN_GATEWAY_DNS_QUERY_H

#include "base/loop.h"
#include "gateway/path/dns/dns.h"
#include "gateway/path/dns/dns_message.h"
#include "gateway/path/dns/dns_reply.h"
#include "gateway/path/dns/dns_upstream.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* From arrival to reply; below the 5 s after which stub resolvers ask again. */
#define DNS_QUERY_MS 4500
/* Addresses of one answer that are leased and handed to the guest. */
#define DNS_LEASE_ADDRS_MAX 64
/* (protocol, port) pairs leased for one name; policies with more lose the highest ones. */
#define DNS_LEASE_PORTS_MAX 256

/* What is under way in each state, and what ends it:
 *
 *   ASKING   upstream request under way     upstream handler, deadline
 *   LEASING  link request under way         keeper's answer, deadline
 *   DONE     replied, recorded, unlinked    freed at the end of the round
 *
 * A query that is decided on the spot goes from its birth to DONE in one call. */
enum dns_query_state { DNS_QUERY_ASKING, DNS_QUERY_LEASING, DNS_QUERY_DONE };

struct dns_query {
	LIST_ENTRY(dns_query) next;
	struct dns_server *server;
	struct dns_asker asker;
	struct dns_question question;
	enum dns_query_state state;
	struct loop_timer deadline;
	struct loop_deferred deferred;
	void (*restart)(struct dns_query *query); /* decide again from the start: the policy changed meanwhile */

	/* The decision, and under which policy generation it was made. */
	struct judgement judgement;
	struct addr denied_addr; /* the first address that a deny rule took away; family 0: none was */
	struct decision denial;  /* of denied_addr */
	uint32_t generation;
	uint32_t turn; /* the sandbox's, then */

	/* Upstream. */
	struct dns_upstream_request upstream;
	bool over_tcp;       /* UDP brought an answer that did not match */
	int64_t asked_us;    /* clock_mono_us of the request under way */
	int64_t upstream_us; /* total */
	struct dns_chain chain;

	/* What the guest gets, and the leases for it. */
	size_t addr_count;
	struct addr addrs[DNS_LEASE_ADDRS_MAX];
	struct dns_rdata *services; /* owned; room for DNS_SERVICES_MAX */
	size_t service_count;
	uint32_t ttl_s;      /* in the answer */
	uint32_t lifetime_s; /* of the lease, without grace */
	struct link_request link;
	struct tap_lease *leases; /* owned */
	size_t lease_count, lease_sent;

	/* The outcome. */
	enum verdict verdict;
	enum reason reason;
	uint16_t rcode; /* enum dns_rcode */
	uint16_t ede;   /* DNS_EDE_* */
	bool data;      /* the answer holds chain and records */
	bool leased;    /* addrs are in the lease table */
	bool hinfo;
	char detail[128];
};

/* dns_answer.c: ask upstream for the end of the chain; the answer is read, leased and finished from there. */
void dns_answer_ask(struct dns_query *query);

/* dns_lease.c: judge the answer's addresses, lease what is left of them, then finish. */
void dns_lease_start(struct dns_query *query, const struct dns_answer *answer);
/* Is a CNAME target on the never list? Then the query is finished. */
bool dns_lease_refuse_chain(struct dns_query *query);

/* dns_finish.c: end the query in any state: reply, record, free at the end of the round. */
void dns_finish(struct dns_query *query, enum verdict verdict, enum reason reason, uint16_t rcode, uint16_t ede);
/* As allowed, with or without data. */
void dns_finish_allowed(struct dns_query *query, uint16_t rcode, bool data);
void dns_finish_denied(struct dns_query *query, enum reason reason);
/* Our own fault: SERVFAIL, internal_error. why goes to the record. */
void dns_finish_broken(struct dns_query *query, const char *why);
/* The resolvers failed: SERVFAIL, upstream_error. */
void dns_finish_upstream(struct dns_query *query, uint16_t ede, const char *why);
/* Send a reply to where a message came from, if one still can be. */
void dns_finish_send(const struct dns_asker *asker, const struct dns_reply *reply);
/* Make a record of kind RECORD_DNS: a new id, the time, the count 1, the asker. */
void dns_finish_fill_record(struct sandbox *sandbox, const struct dns_asker *asker, struct record *ret_record);

#endif
