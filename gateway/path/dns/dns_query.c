/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What is asked of a guest's message before any packet goes upstream.
 *
 * Theory of operation. Every message of a guest, from either transport, becomes one query object, one reply at most and
 * exactly one record; what floods, or is no query, is counted in a record for many. The order of questions is: may
 * anything be done at all (log writable, limits), is the message in order, is its name a host name, does the policy
 * allow the name, is the type served. Only what passed all of them leads to a packet upstream (CASES C-01), and that
 * packet is written afresh: nothing of the guest's message but the canonical name and the type goes into it. What comes
 * back is read in dns_answer.c and judged in dns_lease.c.
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

static const char query_no_room[] = "counted while the log was out";

/* Time is up: the resolvers or the keeper did not answer. */
static void
query_deadline_handler(struct loop_timer *timer)
{
	struct dns_query *query = loop_owner(timer, struct dns_query, deadline);

	switch (query->state) {
	case DNS_QUERY_ASKING:
		query->upstream_us += clock_mono_us() - query->asked_us;
		dns_finish_upstream(query, DNS_EDE_NETWORK_ERROR, "no resolver answered in time");
		break;
	case DNS_QUERY_LEASING:
		dns_finish_broken(query, "the keeper did not answer in time");
		break;
	case DNS_QUERY_DONE:
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
		dns_finish(query, VERDICT_DENIED, REASON_DNS_TYPE, DNS_REFUSED, DNS_EDE_NOT_SUPPORTED);
		return true;
	default:
		break;
	}
	dns_finish(query, VERDICT_DENIED, REASON_DNS_TYPE, DNS_NOERROR, DNS_EDE_NOT_SUPPORTED);
	return true;
}

/* Names cost nothing under an exact rule. Below a wildcard, and while everything is let through to learn, the guest can
 * write data into them. */
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
		dns_finish_denied(query, query->judgement.reason);
	} else if (query_refuse_type(query)) {
		return;
	} else if (query->question.type == DNS_TYPE_AAAA && !route_has_ipv6(&sandbox->gateway->route)) {
		snprintf(query->detail, sizeof(query->detail), "the host has no IPv6");
		dns_finish_allowed(query, DNS_NOERROR, false);
	} else if (!query_name_affordable(query)) {
		snprintf(query->detail, sizeof(query->detail), "too many new names");
		dns_finish(query, VERDICT_LIMITED, REASON_LIMIT_RATE, DNS_REFUSED, DNS_EDE_BLOCKED);
	} else if (!quota_name(sandbox, &query->question.name)) {
		snprintf(query->detail, sizeof(query->detail), "the sandbox's unique names per minute");
		dns_finish(query, VERDICT_LIMITED, REASON_LIMIT_RATE, DNS_REFUSED, DNS_EDE_BLOCKED);
	} else {
		dns_answer_ask(query);
	}
}

/* Decides again from the start, because the policy changed meanwhile. */
static void
query_restart(struct dns_query *query)
{
	memset(&query->chain, 0, sizeof(query->chain));
	query->chain.ttl_s = UINT32_MAX;
	query->addr_count = query->service_count = 0;
	query->over_tcp = false;
	query->detail[0] = '\0';
	query_decide(query);
}

/* A query on the server's list with its deadline armed. NULL without memory. */
static struct dns_query *
query_new(struct dns_server *server, const struct dns_asker *asker, const struct dns_question *question)
{
	struct dns_query *query = calloc(1, sizeof(*query));

	if (query == NULL)
		return NULL;
	query->server = server;
	query->asker = *asker;
	query->question = *question;
	query->generation = server->sandbox->generation;
	query->judgement.rule = SNAPSHOT_NO_RULE;
	query->chain.ttl_s = UINT32_MAX;
	query->restart = query_restart;
	query->deadline.handler = query_deadline_handler;
	if (loop_timer_set(server->sandbox->gateway->loop, &query->deadline, DNS_QUERY_MS) < 0) {
		free(query);
		return NULL;
	}
	LIST_INSERT_HEAD(&server->queries, query, next);
	server->query_count++;
	return query;
}

/* An answer, but no record of its own, or the flood would only move on to the log. */
static void
query_over(struct dns_server *server, enum dns_over_kind kind, const struct dns_asker *asker,
    const struct dns_question *question, const char *why)
{
	const struct dns_over_answer *answer = &dns_budget_answers[kind];
	struct dns_reply reply = {
	    .question = question,
	    .rcode = answer->rcode,
	    .ede = answer->ede,
	    .ede_text = reason_sentence(answer->reason),
	    .size_max = DNS_UDP_PLAIN,
	};

	dns_budget_over(&server->budget, kind, asker, 1, why);
	dns_finish_send(asker, &reply);
}

/* What cannot be read as a question is recorded as it came, without the header. */
static void
query_keep_raw(struct dns_query *query, const uint8_t *bytes, size_t len)
{
	size_t keep = len - DNS_HEADER_SIZE < DNS_NAME_WIRE_MAX ? len - DNS_HEADER_SIZE : DNS_NAME_WIRE_MAX;

	if (query->question.has_question)
		return;
	memcpy(query->question.wire, bytes + DNS_HEADER_SIZE, keep);
	query->question.name_wire_len = (uint16_t)keep;
}

/* The first checks: log writable, limits, message well-formed, a host name. */
static void
query_begin(struct dns_query *query, enum dns_read read, uint16_t rcode)
{
	if (!recorder_ready(&query->server->sandbox->gateway->recorder)) {
		dns_finish(query, VERDICT_FAILED, REASON_AUDIT_UNAVAILABLE, DNS_SERVFAIL, DNS_EDE_NOT_READY);
	} else if (query->server->query_count > DNS_QUERIES_MAX) {
		snprintf(query->detail, sizeof(query->detail), "more than %d queries under way", DNS_QUERIES_MAX);
		dns_finish(query, VERDICT_LIMITED, REASON_LIMIT_RATE, DNS_SERVFAIL, DNS_EDE_NOT_READY);
	} else if (read == DNS_READ_ERROR) {
		dns_finish(query, VERDICT_DENIED, REASON_DNS_DENIED, rcode, DNS_EDE_NONE);
	} else if (!query->question.name_ok) {
		/* The root, or bytes that no host name has (CASES B-10). NXDOMAIN for the root would say that no name
		 * exists at all (RFC 8020). */
		snprintf(
		    query->detail, sizeof(query->detail), "the name %s", name_error_text(query->question.name_error));
		dns_finish(query, VERDICT_DENIED, REASON_DNS_DENIED,
		    query->question.name_error == NAME_EMPTY ? DNS_REFUSED : DNS_NXDOMAIN, DNS_EDE_BLOCKED);
	} else {
		query_decide(query);
	}
}

void
dns_query_take(struct dns_server *server, const struct dns_asker *asker, const uint8_t *bytes, size_t len)
{
	struct dns_question question;
	uint16_t rcode = DNS_FORMERR;
	enum dns_read read = dns_message_read_question(bytes, len, &question, &rcode);
	struct dns_query *query = NULL;
	const char *why = dns_budget_why;

	if (read == DNS_READ_DROP) {
		dns_budget_over(&server->budget, DNS_OVER_NO_QUERY, asker, 1, "a response, or no message at all");
	} else if (!recorder_has_room(&server->sandbox->gateway->recorder)) {
		query_over(server, DNS_OVER_NO_ROOM, asker, &question, query_no_room);
	} else {
		if (!quota_query(server->sandbox))
			why = "the sandbox's DNS queries per second";
		else if (dns_budget_query(&server->budget))
			query = query_new(server, asker, &question);
		if (query == NULL)
			query_over(server, DNS_OVER_RATE, asker, &question, why);
	}
	if (query != NULL) {
		query_keep_raw(query, bytes, len);
		query_begin(query, read, rcode);
	} else if (asker->via != NULL && asker->via->done != NULL) {
		asker->via->done(asker->peer);
	}
}

void
dns_query_refuse_unread(
    struct dns_server *server, const struct dns_asker *asker, enum verdict verdict, enum reason reason, const char *why)
{
	struct dns_question question;
	struct dns_query *query;

	if (!recorder_has_room(&server->sandbox->gateway->recorder)) {
		dns_budget_over(&server->budget, DNS_OVER_NO_ROOM, asker, 1, query_no_room);
		return;
	}
	memset(&question, 0, sizeof(question));
	query = dns_budget_query(&server->budget) ? query_new(server, asker, &question) : NULL;
	if (query == NULL) {
		dns_budget_over(&server->budget, DNS_OVER_RATE, asker, 1, dns_budget_why);
		return;
	}
	query->asker.via = NULL;
	snprintf(query->detail, sizeof(query->detail), "%s", why);
	dns_finish(query, verdict, reason, DNS_REFUSED, DNS_EDE_NONE);
}

void
dns_query_orphan(struct dns_server *server, const struct dns_conn *conn)
{
	struct dns_query *query;

	LIST_FOREACH(query, &server->queries, next)
	if (query->asker.peer == conn)
		query->asker.via = NULL;
}

void
dns_query_drop_all(struct dns_server *server)
{
	struct dns_query *query;

	while ((query = LIST_FIRST(&server->queries)) != NULL) {
		query->asker.via = NULL;
		snprintf(query->detail, sizeof(query->detail), "the sandbox was detached");
		dns_finish(query, VERDICT_FAILED, REASON_REVOKED, DNS_SERVFAIL, DNS_EDE_NONE);
	}
}
