/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The end of a query: its reply, if anybody still waits for one, and its one record. */
#include "gateway/path/dns/dns_query.h"

#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* DDR discovery (RFC 9462): a client takes "no such designation" better than "no such name". */
static const struct name finish_resolver_arpa = {.len = 13, .text = "resolver.arpa"};

/* Frees the query at the end of the round. */
static void
finish_free_handler(struct loop_deferred *deferred)
{
	struct dns_query *query = loop_owner(deferred, struct dns_query, deferred);

	free(query->services);
	free(query->leases);
	free(query);
}

/* What the client takes in one message (RFC 6891 section 6.2.5). */
static size_t
finish_size_max(const struct dns_query *query)
{
	if (query->asker.proto == IPPROTO_TCP)
		return UINT16_MAX;
	return query->question.udp_size < DNS_UDP_MAX ? query->question.udp_size : DNS_UDP_MAX;
}

void
dns_finish_send(const struct dns_asker *asker, const struct dns_reply *reply)
{
	uint8_t *bytes;
	size_t len;

	/* Without memory there is no reply; the client asks again. The record is made all the same. */
	if (asker->via == NULL || dns_reply_build(reply, &bytes, &len) < 0)
		return;
	asker->via->reply(asker->peer, asker, bytes, len);
	free(bytes);
}

/* Builds the reply from the outcome and sends it. */
static void
finish_reply(struct dns_query *query)
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
	    .size_max = finish_size_max(query),
	};

	if (query->data) {
		reply.chain = query->chain.names;
		reply.chain_count = query->chain.count;
		reply.addrs = query->addrs;
		reply.addr_count = query->service_count > 0 ? 0 : query->addr_count;
		reply.services = query->services;
		reply.service_count = query->service_count;
	}
	dns_finish_send(&query->asker, &reply);
}

/* A JSON array of strings that is cut at a whole item. Items are names and addresses: nothing in them needs
 * escaping. */
struct finish_answers {
	char *text;
	size_t size, len;
	bool full;
};

/* Appends an item, unless it does not fit whole. */
static void
finish_answers_add(struct finish_answers *w, const char *type, const char *value)
{
	/* "[" before the first item, "," before others; the closing bracket and the NUL always have room. */
	int n = snprintf(w->text + w->len, w->size - w->len, "%c\"%s %s\"", w->len == 0 ? '[' : ',', type, value);

	if (n < 0 || w->full || w->len + (size_t)n + 2 > w->size) {
		w->text[w->len] = '\0';
		w->full = true;
		return;
	}
	w->len += (size_t)n;
}

/* The chain is recorded also when the answer was refused: it says how the guest would have got there. */
static void
finish_record_answers(const struct dns_query *query, struct record_dns *dns)
{
	struct finish_answers w = {.text = dns->answers, .size = sizeof(dns->answers)};
	char text[ADDR_TEXT_MAX];

	for (size_t i = 0; i < query->chain.count; i++)
		finish_answers_add(&w, "CNAME", query->chain.names[i].text);
	if (query->data && query->service_count == 0)
		for (size_t i = 0; i < query->addr_count; i++)
			finish_answers_add(
			    &w, query->addrs[i].family == 4 ? "A" : "AAAA", addr_format(&query->addrs[i], text));
	if (query->data && query->service_count > 0) {
		finish_answers_add(&w, query->question.type == DNS_TYPE_HTTPS ? "HTTPS" : "SVCB", ".");
		for (size_t i = 0; i < query->addr_count; i++)
			finish_answers_add(&w, "hint", addr_format(&query->addrs[i], text));
	}
	if (query->hinfo)
		finish_answers_add(&w, "HINFO", "RFC8482");
	snprintf(w.text + w.len, w.size - w.len, "%s", w.len == 0 ? "[]" : "]");
}

/* The name as it was asked: canonical where it is one, else the bytes. */
static void
finish_record_qname(const struct dns_question *question, struct record_dns *dns)
{
	if (question->name_ok) {
		dns->qname_len = question->name.len;
		memcpy(dns->qname, question->name.text, question->name.len);
	} else if (!question->has_question || question->name_error != NAME_EMPTY) {
		/* The root needs no bytes: a record without a name is shown as ".". */
		dns->qname_len = question->name_wire_len;
		memcpy(dns->qname, question->wire, question->name_wire_len);
	}
}

void
dns_finish_fill_record(struct sandbox *sandbox, const struct dns_asker *asker, struct record *ret_record)
{
	struct record_dns *dns = &ret_record->dns;

	memset(ret_record, 0, sizeof(*ret_record));
	ret_record->kind = RECORD_DNS;
	dns->id = recorder_id(&sandbox->gateway->recorder);
	dns->sandbox = sandbox->id;
	dns->ts_us = clock_real_us();
	dns->count = 1;
	dns->src = asker->src;
	dns->server = asker->server;
	dns->sport = asker->sport;
	dns->transport = asker->proto;
	dns->generation = sandbox->generation;
}

/* Sends the query's one record. */
static void
finish_record(const struct dns_query *query)
{
	struct sandbox *sandbox = query->server->sandbox;
	struct record record;
	struct record_dns *dns = &record.dns;

	dns_finish_fill_record(sandbox, &query->asker, &record);
	dns->qtype = query->question.type;
	dns->verdict = (uint8_t)query->verdict;
	dns->reason = (uint8_t)query->reason;
	dns->rcode = (uint8_t)query->rcode;
	dns->ede = query->ede;
	dns->ttl_s = query->data ? query->ttl_s : 0;
	dns->upstream_us = query->upstream_us;
	dns->leases = query->leased ? (uint16_t)query->addr_count : 0;
	dns->generation = query->generation;
	memcpy(dns->detail, query->detail, sizeof(dns->detail));
	finish_record_qname(&query->question, dns);
	finish_record_answers(query, dns);
	if (query->judgement.learned)
		snprintf(dns->rule, sizeof(dns->rule), "%s", RECORD_RULE_LEARN);
	if (query->judgement.rule != SNAPSHOT_NO_RULE && query->generation == sandbox->generation)
		snprintf(dns->rule, sizeof(dns->rule), "%s (%s)",
		    snapshot_rule_text(sandbox->policy, query->judgement.rule),
		    snapshot_rule_origin(sandbox->policy, query->judgement.rule));
	balance_send(sandbox->balance, &record, 0, NULL);
}

void
dns_finish(struct dns_query *query, enum verdict verdict, enum reason reason, uint16_t rcode, uint16_t ede)
{
	struct dns_server *server = query->server;
	const struct dns_transport *via = query->asker.via;
	void *peer = query->asker.peer;

	/* Nothing that is under way for the query comes back to it after this. */
	dns_upstream_cancel(&query->upstream);
	link_cancel(&server->sandbox->gateway->link, &query->link);
	loop_timer_stop(server->sandbox->gateway->loop, &query->deadline);
	query->state = DNS_QUERY_DONE;
	query->verdict = verdict;
	query->reason = reason;
	query->rcode = rcode;
	/* Recorded as sent: Extended DNS Errors need EDNS. */
	query->ede = query->question.has_edns ? ede : DNS_EDE_NONE;
	LIST_REMOVE(query, next);
	server->query_count--;
	finish_reply(query);
	finish_record(query);
	query->deferred.handler = finish_free_handler;
	loop_defer(server->sandbox->gateway->loop, &query->deferred);
	if (via != NULL && via->done != NULL)
		via->done(peer);
}

void
dns_finish_allowed(struct dns_query *query, uint16_t rcode, bool data)
{
	query->data = data;
	dns_finish(query, VERDICT_ALLOWED, REASON_ALLOWED, rcode, DNS_EDE_NONE);
}

void
dns_finish_denied(struct dns_query *query, enum reason reason)
{
	bool designation = reason == REASON_NEVER_NAME &&
	    (name_equal(&query->question.name, &finish_resolver_arpa) ||
		name_below(&query->question.name, &finish_resolver_arpa));

	dns_finish(query, VERDICT_DENIED, reason, designation ? DNS_NOERROR : DNS_NXDOMAIN, DNS_EDE_BLOCKED);
}

void
dns_finish_broken(struct dns_query *query, const char *why)
{
	snprintf(query->detail, sizeof(query->detail), "%s", why);
	dns_finish(query, VERDICT_FAILED, REASON_INTERNAL_ERROR, DNS_SERVFAIL, DNS_EDE_NOT_READY);
}

void
dns_finish_upstream(struct dns_query *query, uint16_t ede, const char *why)
{
	snprintf(query->detail, sizeof(query->detail), "%s", why);
	dns_finish(query, VERDICT_FAILED, REASON_UPSTREAM_ERROR, DNS_SERVFAIL, ede);
}
