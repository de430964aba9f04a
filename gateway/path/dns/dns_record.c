/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The record of one DNS query. */
#include "base/clock.h"
#include "gateway/path/dns/dns_query.h"

#include <stdio.h>
#include <string.h>

/* A JSON array of strings that is cut at a whole item. Items are names and addresses: nothing in them needs escaping.
 */
struct answers_writer {
	char *text;
	size_t size, len;
	bool full;
};

static void
answers_add(struct answers_writer *w, const char *type, const char *value)
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

static void
answers_end(struct answers_writer *w)
{
	snprintf(w->text + w->len, w->size - w->len, "%s", w->len == 0 ? "[]" : "]");
}

/* The chain is recorded also when the answer was refused: it says how the guest would have got there. */
static void
record_answers(const struct dns_query *query, struct record_dns *dns)
{
	struct answers_writer w = {.text = dns->answers, .size = sizeof(dns->answers)};
	char text[ADDR_TEXT_MAX];

	for (size_t i = 0; i < query->chain.count; i++)
		answers_add(&w, "CNAME", query->chain.names[i].text);
	if (query->data && query->service_count == 0)
		for (size_t i = 0; i < query->addr_count; i++)
			answers_add(
			    &w, query->addrs[i].family == 4 ? "A" : "AAAA", addr_format(&query->addrs[i], text));
	if (query->data && query->service_count > 0) {
		answers_add(&w, query->question.type == DNS_TYPE_HTTPS ? "HTTPS" : "SVCB", ".");
		for (size_t i = 0; i < query->addr_count; i++)
			answers_add(&w, "hint", addr_format(&query->addrs[i], text));
	}
	if (query->hinfo)
		answers_add(&w, "HINFO", "RFC8482");
	answers_end(&w);
}

static void
record_qname(const struct dns_question *question, struct record_dns *dns)
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
dns_record_send(const struct dns_query *query)
{
	struct sandbox *sandbox = query->server->sandbox;
	struct record record;
	struct record_dns *dns = &record.dns;

	memset(&record, 0, sizeof(record));
	record.kind = RECORD_DNS;
	dns->id = recorder_id(&sandbox->gateway->recorder);
	dns->sandbox = sandbox->id;
	dns->ts_us = clock_real_us();
	dns->count = 1;
	dns->src = query->origin.src;
	dns->server = query->origin.server;
	dns->sport = query->origin.sport;
	dns->qtype = query->question.type;
	dns->transport = query->origin.transport;
	dns->verdict = (uint8_t)query->verdict;
	dns->reason = (uint8_t)query->reason;
	dns->rcode = (uint8_t)query->rcode;
	dns->ede = query->ede;
	dns->ttl_s = query->data ? query->ttl_s : 0;
	dns->upstream_us = query->upstream_us;
	dns->leases = query->leased ? (uint16_t)query->addr_count : 0;
	dns->generation = query->generation;
	memcpy(dns->detail, query->detail, sizeof(dns->detail));
	record_qname(&query->question, dns);
	record_answers(query, dns);
	if (query->judgement.learned)
		snprintf(dns->rule, sizeof(dns->rule), "%s", RECORD_RULE_LEARN);
	if (query->judgement.rule != SNAPSHOT_NO_RULE && query->generation == sandbox->generation)
		snprintf(dns->rule, sizeof(dns->rule), "%s (%s)",
		    snapshot_rule_text(sandbox->policy, query->judgement.rule),
		    snapshot_rule_origin(sandbox->policy, query->judgement.rule));
	balance_send(sandbox->balance, &record, 0, NULL);
}
