/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Theory of operation. Every message of a guest, from either transport, becomes one query object, one reply at most and
 * exactly one record; what floods, or is no query, is counted in a record for many. The order of questions is: may
 * anything be done at all (log writable, limits), is the message in order, is its name a host name, does the policy
 * allow the name, is the type served. Only what passed all of them leads to a packet upstream (CASES C-01), and that
 * packet is written afresh: nothing of the guest's message but the canonical name and the type goes into it. What comes
 * back is judged in gateway/path/dns/dns_lease.c.
 *
 * One timer bounds the whole life. Nothing is cached: an answer always stands for a lease that was just made, so that
 * the guest's TTL cannot outlive it (CASES C-14). */
#include "gateway/path/dns/dns_query.h"

#include "base/clock.h"
#include "gateway/path/count/quota.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* DDR discovery (RFC 9462): a client takes "no such designation" better than "no such name". */
static const struct name query_resolver_arpa = {.len = 13, .text = "resolver.arpa"};

static const char query_no_room[] = "counted while the log was out";

static void
query_free_deferred(struct loop_deferred *deferred)
{
	struct dns_query *query = loop_owner(deferred, struct dns_query, deferred);

	free(query->services);
	free(query->leases);
	free(query);
}

static struct loop *
query_loop(const struct dns_query *query)
{
	return query->server->sandbox->gateway->loop;
}

/* Nothing that is under way for the query comes back to it after this. */
static void
query_cancel(struct dns_query *query)
{
	dns_upstream_cancel(&query->upstream);
	link_cancel(&query->server->sandbox->gateway->link, &query->link);
	loop_timer_stop(query_loop(query), &query->deadline);
}

static void
query_unlink(struct dns_query *query)
{
	struct dns_server *server = query->server;

	for (struct dns_query **at = &server->queries; *at != NULL; at = &(*at)->next) {
		if (*at != query)
			continue;
		*at = query->next;
		server->query_count--;
		break;
	}
}

/* What the client takes in one message (RFC 6891 section 6.2.5). */
static size_t
reply_size_max(const struct dns_query *query)
{
	if (query->origin.transport == IPPROTO_TCP)
		return UINT16_MAX;
	return query->question.udp_size < DNS_UDP_MAX ? query->question.udp_size : DNS_UDP_MAX;
}

static void
query_reply(struct dns_query *query)
{
	bool negative = query->question.has_question && !query->data && !query->hinfo &&
	    (query->rcode == DNS_NXDOMAIN || query->rcode == DNS_NOERROR);
	struct dns_reply reply = {
	    .question = &query->question,
	    .rcode = query->rcode,
	    .negative = negative,
	    .hinfo = query->hinfo,
	    .ttl_s = query->hinfo ? DNS_NEGATIVE_TTL_S : query->ttl_s,
	    .ede = query->ede,
	    .ede_text = query->ede == DNS_EDE_NONE ? NULL : reason_sentence(query->reason),
	    .size_max = reply_size_max(query),
	};
	uint8_t *bytes;
	size_t len;

	if (query->data) {
		reply.chain = query->chain.names;
		reply.chain_count = query->chain.count;
		reply.addrs = query->addrs;
		reply.addr_count = query->service_count > 0 ? 0 : query->addr_count;
		reply.services = query->services;
		reply.service_count = query->service_count;
	}
	/* Without memory there is no reply; the client asks again. The record is made all the same. */
	if (dns_reply_build(&reply, &bytes, &len) < 0)
		return;
	if (query->origin.udp != NULL)
		dns_udp_reply(&query->origin, bytes, len);
	else
		dns_tcp_reply(query->origin.conn, bytes, len);
	free(bytes);
}

/* End the query: reply, record, free at the end of the round. */
static void
dns_query_finish(struct dns_query *query, enum verdict verdict, enum reason reason, uint16_t rcode, uint16_t ede)
{
	struct dns_conn *conn = query->origin.conn;

	query_cancel(query);
	query->state = DNS_QUERY_DONE;
	query->verdict = verdict;
	query->reason = reason;
	query->rcode = rcode;
	/* Recorded as sent: Extended DNS Errors need EDNS. */
	query->ede = query->question.has_edns ? ede : DNS_EDE_NONE;
	query_unlink(query);
	if (query->origin.udp != NULL || conn != NULL)
		query_reply(query);
	dns_record_send(query);
	query->deferred.handler = query_free_deferred;
	loop_defer(query_loop(query), &query->deferred);
	if (conn != NULL)
		dns_tcp_query_done(conn);
}

void
dns_query_finish_allowed(struct dns_query *query, uint16_t rcode, bool data)
{
	query->data = data;
	dns_query_finish(query, VERDICT_ALLOWED, REASON_ALLOWED, rcode, DNS_EDE_NONE);
}

void
dns_query_finish_denied(struct dns_query *query, enum reason reason)
{
	bool designation = reason == REASON_NEVER_NAME &&
	    (name_equal(&query->question.name, &query_resolver_arpa) ||
		name_below(&query->question.name, &query_resolver_arpa));

	dns_query_finish(query, VERDICT_DENIED, reason, designation ? DNS_NOERROR : DNS_NXDOMAIN, DNS_EDE_BLOCKED);
}

void
dns_query_finish_broken(struct dns_query *query, const char *why)
{
	snprintf(query->detail, sizeof(query->detail), "%s", why);
	dns_query_finish(query, VERDICT_FAILED, REASON_INTERNAL_ERROR, DNS_SERVFAIL, DNS_EDE_NOT_READY);
}

/* The resolvers let us down. */
static void
query_finish_upstream(struct dns_query *query, uint16_t ede, const char *why)
{
	snprintf(query->detail, sizeof(query->detail), "%s", why);
	dns_query_finish(query, VERDICT_FAILED, REASON_UPSTREAM_ERROR, DNS_SERVFAIL, ede);
}

static void
query_deadline_handler(struct loop_timer *timer)
{
	struct dns_query *query = loop_owner(timer, struct dns_query, deadline);

	switch (query->state) {
	case DNS_QUERY_ASKING:
		query->upstream_us += clock_mono_us() - query->asked_us;
		query_finish_upstream(query, DNS_EDE_NETWORK_ERROR, "no resolver answered in time");
		break;
	case DNS_QUERY_LEASING:
		dns_query_finish_broken(query, "the keeper did not answer in time");
		break;
	case DNS_QUERY_DONE:
		break;
	}
}

/* Ask upstream for the end of the chain. */
static void
query_ask(struct dns_query *query)
{
	const struct name *name =
	    query->chain.count == 0 ? &query->question.name : &query->chain.names[query->chain.count - 1];
	int rc = dns_upstream_send(query->server->sandbox->gateway->dns_upstream, &query->upstream, name,
	    query->question.type, query->over_tcp);

	query->state = DNS_QUERY_ASKING;
	query->asked_us = clock_mono_us();
	if (rc == -ENOBUFS) {
		snprintf(query->detail, sizeof(query->detail), "too many queries under way in the gateway");
		dns_query_finish(query, VERDICT_LIMITED, REASON_LIMIT_RATE, DNS_SERVFAIL, DNS_EDE_NOT_READY);
	} else if (rc < 0) {
		dns_query_finish_broken(query, "no query could be sent upstream");
	}
}

/* An answer that is not to our question: somebody guessed half of it, or a resolver changes letters' case. TCP tells.
 */
static void
query_mismatch(struct dns_query *query)
{
	if (query->over_tcp) {
		query_finish_upstream(query, DNS_EDE_INVALID_DATA, "the answer does not match the query");
		return;
	}
	query->over_tcp = true;
	query_ask(query);
}

static void
query_answer(struct dns_query *query, const struct dns_answer *answer)
{
	if (answer->kind != DNS_ANSWER_MISMATCH && dns_lease_refuse_chain(query))
		return;
	switch (answer->kind) {
	case DNS_ANSWER_DATA:
		dns_lease_start(query, answer);
		break;
	case DNS_ANSWER_NODATA:
		dns_query_finish_allowed(query, DNS_NOERROR, false);
		break;
	case DNS_ANSWER_NXDOMAIN:
		dns_query_finish_allowed(query, DNS_NXDOMAIN, false);
		break;
	case DNS_ANSWER_CHASE:
		query_ask(query);
		break;
	case DNS_ANSWER_FAILED:
		snprintf(query->detail, sizeof(query->detail), "the resolver answered with code %u", answer->rcode);
		dns_query_finish(
		    query, VERDICT_FAILED, REASON_UPSTREAM_ERROR, DNS_SERVFAIL, DNS_EDE_NO_REACHABLE_AUTHORITY);
		break;
	case DNS_ANSWER_MISMATCH:
		query_mismatch(query);
		break;
	case DNS_ANSWER_BAD:
		query_finish_upstream(query, DNS_EDE_INVALID_DATA, answer->detail);
		break;
	}
}

static void
query_upstream_handler(struct dns_upstream_request *request, enum dns_upstream_status status, const uint8_t *sent,
    size_t sent_len, const uint8_t *bytes, size_t len)
{
	struct dns_query *query = loop_owner(request, struct dns_query, upstream);
	struct dns_answer answer;

	query->upstream_us += clock_mono_us() - query->asked_us;
	/* The policy was edited meanwhile, or a rule ended: what comes of the answer, a question about the chain's next
	 * name to begin with, is the new one's to decide. */
	if (query->turn != query->server->sandbox->turn) {
		dns_query_restart(query);
		return;
	}
	switch (status) {
	case DNS_UPSTREAM_OK:
		dns_message_read_answer(bytes, len, sent, sent_len, &query->question.name, &query->chain, &answer);
		query_answer(query, &answer);
		break;
	case DNS_UPSTREAM_REFUSED:
		query_finish_upstream(
		    query, DNS_EDE_NO_REACHABLE_AUTHORITY, "the resolvers failed, refused or cannot be reached");
		break;
	case DNS_UPSTREAM_NETWORK:
		query_finish_upstream(query, DNS_EDE_NETWORK_ERROR, "no resolver answered in time");
		break;
	case DNS_UPSTREAM_ERROR:
		dns_query_finish_broken(query, "the query could not be sent upstream");
		break;
	}
}

/* Types that are not served are answered here, for names that are allowed (CASES C-20). False: the type is served. */
static bool
query_refuse_type(struct dns_query *query)
{
	switch (query->question.type) {
	case DNS_TYPE_A:
	case DNS_TYPE_AAAA:
	case DNS_TYPE_CNAME:
	case DNS_TYPE_HTTPS:
	case DNS_TYPE_SVCB:
		return false;
	case DNS_TYPE_ANY:
		query->hinfo = true;
		break;
	case DNS_TYPE_AXFR:
	case DNS_TYPE_IXFR:
		dns_query_finish(query, VERDICT_DENIED, REASON_DNS_TYPE, DNS_REFUSED, DNS_EDE_NOT_SUPPORTED);
		return true;
	default:
		break;
	}
	dns_query_finish(query, VERDICT_DENIED, REASON_DNS_TYPE, DNS_NOERROR, DNS_EDE_NOT_SUPPORTED);
	return true;
}

/* An exact rule gives nobody a choice of names; only below a wildcard, or while everything is let through to learn, can
 * the guest write into them. */
static bool
query_name_affordable(struct dns_query *query)
{
	const char *rule = snapshot_rule_text(query->server->sandbox->policy, query->judgement.rule);

	return (strchr(rule, '*') == NULL && !query->judgement.learned) ||
	    dns_budget_name(&query->server->budget, &query->question.name);
}

/* The policy decides on the question, before any packet goes upstream. */
static void
query_decide(struct dns_query *query)
{
	struct sandbox *sandbox = query->server->sandbox;

	query->generation = sandbox->generation;
	query->turn = sandbox->turn;
	query->judgement = verdict_question(sandbox->policy, &query->question.name, clock_real_us());
	if (query->judgement.verdict != VERDICT_ALLOWED) {
		if (query->judgement.detail != NULL)
			snprintf(query->detail, sizeof(query->detail), "%s", query->judgement.detail);
		dns_query_finish_denied(query, query->judgement.reason);
	} else if (query_refuse_type(query)) {
		return;
	} else if (query->question.type == DNS_TYPE_AAAA && !route_has_ipv6(&sandbox->gateway->route)) {
		snprintf(query->detail, sizeof(query->detail), "the host has no IPv6");
		dns_query_finish_allowed(query, DNS_NOERROR, false);
	} else if (!query_name_affordable(query)) {
		snprintf(query->detail, sizeof(query->detail), "too many new names");
		dns_query_finish(query, VERDICT_LIMITED, REASON_LIMIT_RATE, DNS_REFUSED, DNS_EDE_BLOCKED);
	} else if (!quota_name(sandbox, &query->question.name)) {
		snprintf(query->detail, sizeof(query->detail), "the sandbox's unique names per minute");
		dns_query_finish(query, VERDICT_LIMITED, REASON_LIMIT_RATE, DNS_REFUSED, DNS_EDE_BLOCKED);
	} else {
		query_ask(query);
	}
}

void
dns_query_restart(struct dns_query *query)
{
	memset(&query->chain, 0, sizeof(query->chain));
	query->chain.ttl_s = UINT32_MAX;
	query->addr_count = query->service_count = 0;
	query->over_tcp = false;
	query->detail[0] = '\0';
	query_decide(query);
}

static struct dns_query *
query_new(struct dns_server *server, const struct dns_origin *origin, const struct dns_question *question)
{
	struct dns_query *query = calloc(1, sizeof(*query));

	if (query == NULL)
		return NULL;
	query->server = server;
	query->origin = *origin;
	query->question = *question;
	query->generation = server->sandbox->generation;
	query->judgement.rule = SNAPSHOT_NO_RULE;
	query->chain.ttl_s = UINT32_MAX;
	query->upstream.handler = query_upstream_handler;
	query->deadline.handler = query_deadline_handler;
	if (loop_timer_set(query_loop(query), &query->deadline, DNS_QUERY_MS) < 0) {
		free(query);
		return NULL;
	}
	query->next = server->queries;
	server->queries = query;
	server->query_count++;
	return query;
}

/* A well-formed question whose name is no host name: the root, or bytes that no host name has (CASES B-10). */
static void
query_refuse_name(struct dns_query *query)
{
	snprintf(query->detail, sizeof(query->detail), "the name %s", name_error_text(query->question.name_error));
	/* NXDOMAIN for the root would say that no name exists at all (RFC 8020). */
	dns_query_finish(query, VERDICT_DENIED, REASON_DNS_DENIED,
	    query->question.name_error == NAME_EMPTY ? DNS_REFUSED : DNS_NXDOMAIN, DNS_EDE_BLOCKED);
}

/* An answer, but no record of its own, or the flood would only move on to the log. */
static void
query_over(struct dns_server *server, enum dns_over_kind kind, const struct dns_origin *origin,
    const struct dns_question *question, const char *why)
{
	const struct dns_over_answer *answer = &dns_over_answers[kind];
	struct dns_reply reply = {
	    .question = question,
	    .rcode = answer->rcode,
	    .ede = answer->ede,
	    .ede_text = reason_sentence(answer->reason),
	    .size_max = DNS_UDP_PLAIN,
	};
	uint8_t *bytes;
	size_t len;

	dns_budget_over(&server->budget, kind, origin, 1, why);
	if (dns_reply_build(&reply, &bytes, &len) < 0)
		return;
	if (origin->udp != NULL)
		dns_udp_reply(origin, bytes, len);
	else
		dns_tcp_reply(origin->conn, bytes, len);
	free(bytes);
}

/* What cannot be read as a question is recorded as it came, behind the header. */
static void
query_keep_raw(struct dns_query *query, const uint8_t *bytes, size_t len)
{
	size_t keep = len - DNS_HEADER_SIZE < DNS_NAME_WIRE_MAX ? len - DNS_HEADER_SIZE : DNS_NAME_WIRE_MAX;

	if (query->question.has_question)
		return;
	memcpy(query->question.wire, bytes + DNS_HEADER_SIZE, keep);
	query->question.name_wire_len = (uint16_t)keep;
}

/* The first questions: may anything be done, is the message in order, is its name a host name? */
static void
query_begin(struct dns_query *query, enum dns_read read, uint16_t rcode)
{
	if (!recorder_ready(&query->server->sandbox->gateway->recorder)) {
		dns_query_finish(query, VERDICT_FAILED, REASON_AUDIT_UNAVAILABLE, DNS_SERVFAIL, DNS_EDE_NOT_READY);
	} else if (query->server->query_count > DNS_QUERIES_MAX) {
		snprintf(query->detail, sizeof(query->detail), "more than %d queries under way", DNS_QUERIES_MAX);
		dns_query_finish(query, VERDICT_LIMITED, REASON_LIMIT_RATE, DNS_SERVFAIL, DNS_EDE_NOT_READY);
	} else if (read == DNS_READ_ERROR) {
		dns_query_finish(query, VERDICT_DENIED, REASON_DNS_DENIED, rcode, DNS_EDE_NONE);
	} else if (!query->question.name_ok) {
		query_refuse_name(query);
	} else {
		query_decide(query);
	}
}

void
dns_query_take(struct dns_server *server, const struct dns_origin *origin, const uint8_t *bytes, size_t len)
{
	struct dns_question question;
	uint16_t rcode = DNS_FORMERR;
	enum dns_read read = dns_message_read_question(bytes, len, &question, &rcode);
	struct dns_query *query = NULL;
	const char *why = dns_budget_why;

	if (read == DNS_READ_DROP) {
		dns_budget_over(&server->budget, DNS_OVER_NO_QUERY, origin, 1, "a response, or no message at all");
	} else if (!recorder_has_room(&server->sandbox->gateway->recorder)) {
		query_over(server, DNS_OVER_NO_ROOM, origin, &question, query_no_room);
	} else {
		if (!quota_query(server->sandbox))
			why = "the sandbox's DNS queries per second";
		else if (dns_budget_query(&server->budget))
			query = query_new(server, origin, &question);
		if (query == NULL)
			query_over(server, DNS_OVER_RATE, origin, &question, why);
	}
	if (query != NULL) {
		query_keep_raw(query, bytes, len);
		query_begin(query, read, rcode);
	} else if (origin->conn != NULL) {
		dns_tcp_query_done(origin->conn);
	}
}

void
dns_query_refuse_unread(struct dns_server *server, const struct dns_origin *origin, enum verdict verdict,
    enum reason reason, const char *why)
{
	struct dns_question question;
	struct dns_query *query;

	if (!recorder_has_room(&server->sandbox->gateway->recorder)) {
		dns_budget_over(&server->budget, DNS_OVER_NO_ROOM, origin, 1, query_no_room);
		return;
	}
	memset(&question, 0, sizeof(question));
	query = dns_budget_query(&server->budget) ? query_new(server, origin, &question) : NULL;
	if (query == NULL) {
		dns_budget_over(&server->budget, DNS_OVER_RATE, origin, 1, dns_budget_why);
		return;
	}
	query->origin.conn = NULL;
	snprintf(query->detail, sizeof(query->detail), "%s", why);
	dns_query_finish(query, verdict, reason, DNS_REFUSED, DNS_EDE_NONE);
}

void
dns_query_orphan(struct dns_server *server, const struct dns_conn *conn)
{
	for (struct dns_query *query = server->queries; query != NULL; query = query->next)
		if (query->origin.conn == conn)
			query->origin.conn = NULL;
}

void
dns_query_drop_all(struct dns_server *server)
{
	while (server->queries != NULL) {
		struct dns_query *query = server->queries;

		query->origin.udp = NULL;
		query->origin.conn = NULL;
		snprintf(query->detail, sizeof(query->detail), "the sandbox was detached");
		dns_query_finish(query, VERDICT_FAILED, REASON_REVOKED, DNS_SERVFAIL, DNS_EDE_NONE);
	}
}
