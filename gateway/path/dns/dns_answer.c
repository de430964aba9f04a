/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Asks the resolvers for a guest's query, and reads what they answer.
 *
 * Theory of operation. The question that goes out is written afresh, for the name at the end of the CNAME chain so far.
 * The answer is read strictly (dns_message.c). It may lead to a further name, which is asked for in turn; name no data,
 * which ends the query; or name addresses or services, which dns_lease.c opens. An answer that does not match the query
 * was guessed by an attacker, or comes from a resolver that changes letters' case: the question goes out once more,
 * over TCP. The policy may change while a request is under way: then the query is decided again from the start. */
#include "gateway/path/dns/dns_query.h"

#include "base/clock.h"

#include <errno.h>
#include <stdio.h>

/* Goes on with what the answer says. */
static void
answer_take(struct dns_query *query, const struct dns_answer *answer)
{
	if (answer->kind != DNS_ANSWER_MISMATCH && dns_lease_refuse_chain(query))
		return;
	switch (answer->kind) {
	case DNS_ANSWER_DATA:
		dns_lease_start(query, answer);
		break;
	case DNS_ANSWER_NODATA:
		dns_finish_allowed(query, DNS_NOERROR, false);
		break;
	case DNS_ANSWER_NXDOMAIN:
		dns_finish_allowed(query, DNS_NXDOMAIN, false);
		break;
	case DNS_ANSWER_CHASE:
		dns_answer_ask(query);
		break;
	case DNS_ANSWER_FAILED:
		snprintf(query->detail, sizeof(query->detail), "the resolver answered with code %u", answer->rcode);
		dns_finish(query, VERDICT_FAILED, REASON_UPSTREAM_ERROR, DNS_SERVFAIL, DNS_EDE_NO_REACHABLE_AUTHORITY);
		break;
	case DNS_ANSWER_MISMATCH:
		/* Guessed by an attacker, or the resolver changes letters' case. TCP tells. */
		if (query->over_tcp) {
			dns_finish_upstream(query, DNS_EDE_INVALID_DATA, "the answer does not match the query");
		} else {
			query->over_tcp = true;
			dns_answer_ask(query);
		}
		break;
	case DNS_ANSWER_BAD:
		dns_finish_upstream(query, DNS_EDE_INVALID_DATA, answer->detail);
		break;
	}
}

/* The request upstream has ended: reads the answer, if it brought one. */
static void
answer_handler(struct dns_upstream_request *request, enum dns_upstream_status status, const uint8_t *sent,
    size_t sent_len, const uint8_t *bytes, size_t len)
{
	struct dns_query *query = loop_owner(request, struct dns_query, upstream);
	struct dns_answer answer;

	query->upstream_us += clock_mono_us() - query->asked_us;
	/* The policy was edited meanwhile, or a rule ended: what comes of the answer, a question about the chain's next
	 * name to begin with, is the new one's to decide. */
	if (query->turn != query->server->sandbox->turn) {
		query->restart(query);
		return;
	}
	switch (status) {
	case DNS_UPSTREAM_OK:
		dns_message_read_answer(bytes, len, sent, sent_len, &query->question.name, &query->chain, &answer);
		answer_take(query, &answer);
		break;
	case DNS_UPSTREAM_REFUSED:
		dns_finish_upstream(
		    query, DNS_EDE_NO_REACHABLE_AUTHORITY, "the resolvers failed, refused or cannot be reached");
		break;
	case DNS_UPSTREAM_NETWORK:
		dns_finish_upstream(query, DNS_EDE_NETWORK_ERROR, "no resolver answered in time");
		break;
	case DNS_UPSTREAM_ERROR:
		dns_finish_broken(query, "the query could not be sent upstream");
		break;
	}
}

void
dns_answer_ask(struct dns_query *query)
{
	const struct name *name =
	    query->chain.count == 0 ? &query->question.name : &query->chain.names[query->chain.count - 1];
	int rc;

	query->upstream.handler = answer_handler;
	rc = dns_upstream_send(query->server->sandbox->gateway->dns_upstream, &query->upstream, name,
	    query->question.type, query->over_tcp);
	query->state = DNS_QUERY_ASKING;
	query->asked_us = clock_mono_us();
	if (rc == -ENOBUFS) {
		snprintf(query->detail, sizeof(query->detail), "too many queries under way in the gateway");
		dns_finish(query, VERDICT_LIMITED, REASON_LIMIT_RATE, DNS_SERVFAIL, DNS_EDE_NOT_READY);
	} else if (rc < 0) {
		dns_finish_broken(query, "no query could be sent upstream");
	}
}
