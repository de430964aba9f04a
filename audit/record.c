/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "audit/record.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

/* An epoch that would not fit above the 31 bits of the counter could never match an id. */
#define RECORD_EPOCH_BITS 33

uint32_t
record_size(uint32_t kind)
{
	size_t head = offsetof(struct record, flow);

	switch ((enum record_kind)kind) {
	case RECORD_FLOW_OPEN:
	case RECORD_REFUSED:
		return (uint32_t)(head + sizeof(struct record_flow));
	case RECORD_FLOW_CLOSE:
	case RECORD_PROGRESS:
		return (uint32_t)(head + sizeof(struct record_close));
	case RECORD_DNS:
		return (uint32_t)(head + sizeof(struct record_dns));
	case RECORD_EVENT:
		return (uint32_t)(head + sizeof(struct record_event));
	case RECORD_SANDBOX:
	case RECORD_SANDBOX_END:
		return (uint32_t)(head + sizeof(struct record_sandbox));
	case RECORD_GAP:
		return (uint32_t)(head + sizeof(struct record_gap));
	case RECORD_ACCOUNT:
		return (uint32_t)(head + sizeof(struct record_account));
	case RECORD_KIND_MAX:
		break;
	}
	return 0;
}

/* Does the text end within its array? */
static bool
record_text_valid(const char *text, size_t size)
{
	return memchr(text, '\0', size) != NULL;
}

static bool
record_addr_valid(const struct addr *addr)
{
	static const uint8_t zero[16];
	size_t used;

	if (addr->family != 0 && addr->family != 4 && addr->family != 6)
		return false;
	used = addr->family == 0 ? 0 : addr->family == 4 ? 4 : 16;
	return memcmp(addr->bytes + used, zero, sizeof(addr->bytes) - used) == 0;
}

/* What was not allowed says why: it is found again by its reason (audit/query/query_lead.c). */
static bool
record_verdict_valid(unsigned int verdict, unsigned int reason)
{
	return verdict < VERDICT_MAX && reason < REASON_MAX && (verdict == VERDICT_ALLOWED || reason != REASON_ALLOWED);
}

static bool
record_flow_valid(const struct record_flow *flow)
{
	if (flow->id == 0 || flow->ts_us <= 0 || flow->last_us < 0 || flow->count == 0)
		return false;
	if (!record_verdict_valid(flow->verdict, flow->reason) || flow->name_source >= NAME_SOURCE_MAX ||
	    flow->end >= END_MAX || (flow->flags & ~(RECORD_FLAG_ECH | RECORD_FLAG_TUNNEL | RECORD_FLAG_LEARN)) != 0)
		return false;
	/* Only what was let through can be open; a refusal that stays open would be closed as a crash later. */
	if (flow->verdict != VERDICT_ALLOWED && flow->end == END_OPEN)
		return false;
	if (flow->dns_us < 0 || flow->hello_us < 0)
		return false;
	return flow->name_len < RECORD_NAME_MAX && record_addr_valid(&flow->src) && record_addr_valid(&flow->dst) &&
	    record_text_valid(flow->rule, sizeof(flow->rule)) &&
	    record_text_valid(flow->detail, sizeof(flow->detail)) &&
	    record_text_valid(flow->alpn, sizeof(flow->alpn)) && record_text_valid(flow->ja4, sizeof(flow->ja4)) &&
	    record_text_valid(flow->http_method, sizeof(flow->http_method)) &&
	    record_text_valid(flow->country, sizeof(flow->country)) &&
	    record_text_valid(flow->as_org, sizeof(flow->as_org));
}

static bool
record_close_valid(const struct record_close *closed, bool is_open)
{
	return closed->id != 0 && closed->ts_us > 0 && closed->duration_us >= 0 && closed->connect_us >= 0 &&
	    closed->first_byte_us >= 0 && (closed->end == END_OPEN) == is_open && closed->end < END_MAX &&
	    record_verdict_valid(closed->verdict, closed->reason) && record_addr_valid(&closed->up_src);
}

static bool
record_dns_valid(const struct record_dns *dns)
{
	return dns->id != 0 && dns->ts_us > 0 && dns->count != 0 && record_verdict_valid(dns->verdict, dns->reason) &&
	    dns->qname_len < RECORD_NAME_MAX && dns->upstream_us >= 0 && record_addr_valid(&dns->src) &&
	    record_addr_valid(&dns->server) && record_text_valid(dns->answers, sizeof(dns->answers)) &&
	    record_text_valid(dns->rule, sizeof(dns->rule)) && record_text_valid(dns->detail, sizeof(dns->detail));
}

static bool
record_event_valid(const struct record_event *event)
{
	return event->id != 0 && event->ts_us > 0 && event->sandbox >= 0 && event->kind > 0 &&
	    event->kind < EVENT_KIND_MAX && record_text_valid(event->detail, sizeof(event->detail));
}

static bool
record_sandbox_valid(const struct record_sandbox *sandbox)
{
	return sandbox->id > 0 && sandbox->ts_us > 0 && record_text_valid(sandbox->name, sizeof(sandbox->name)) &&
	    sandbox->name[0] != '\0' && record_text_valid(sandbox->kind, sizeof(sandbox->kind)) &&
	    record_text_valid(sandbox->detail, sizeof(sandbox->detail));
}

bool
record_valid(const struct record *record, uint32_t size)
{
	if (size < offsetof(struct record, flow) || record->seq <= record->lost || size != record_size(record->kind))
		return false;
	switch ((enum record_kind)record->kind) {
	case RECORD_FLOW_OPEN:
	case RECORD_REFUSED:
		return record_flow_valid(&record->flow);
	case RECORD_FLOW_CLOSE:
	case RECORD_PROGRESS:
		return record_close_valid(&record->close, record->kind == RECORD_PROGRESS);
	case RECORD_DNS:
		return record_dns_valid(&record->dns);
	case RECORD_EVENT:
		return record_event_valid(&record->event);
	case RECORD_SANDBOX:
	case RECORD_SANDBOX_END:
		return record_sandbox_valid(&record->sandbox);
	case RECORD_GAP:
		return record->gap.ts_us > 0 && record->gap.sender_epoch < 1ull << RECORD_EPOCH_BITS &&
		    (record->gap.end == END_GATEWAY_CRASH || record->gap.end == END_DAEMON_CRASH);
	case RECORD_ACCOUNT:
		return record->account.id != 0 && record->account.sandbox > 0 && record->account.ts_us > 0 &&
		    record->account.final <= 1;
	case RECORD_KIND_MAX:
		break;
	}
	return false;
}

static const char *const name_source_words[] = {"none", "lease", "sni", "host", "cidr", "claim", "dns"};
static_assert(sizeof(name_source_words) / sizeof(name_source_words[0]) == NAME_SOURCE_MAX, "a word for each source");

static const char *const end_reason_words[] = {"open", "fin", "rst_guest", "rst_origin", "timeout", "refused",
    "connect_failed", "policy", "next_host", "detached", "shutdown", "gateway_crash", "daemon_crash", "error"};
static_assert(sizeof(end_reason_words) / sizeof(end_reason_words[0]) == END_MAX, "a word for each end");

/* Events count from 1. */
static const char *const event_kind_words[] = {"daemon_start", "daemon_stop", "attach", "detach", "policy",
    "role_crash", "tampered", "audit_resumed", "restored", "audit_replaced", "grant_expired", "grant_used_up",
    "limit_soft", "mark", "audit_alarm", "pruned", "records_lost"};
static_assert(sizeof(event_kind_words) / sizeof(event_kind_words[0]) == EVENT_KIND_MAX - 1, "a word for each event");

const char *
record_name_source_text(unsigned int source)
{
	return source < NAME_SOURCE_MAX ? name_source_words[source] : "?";
}

const char *
record_end_text(unsigned int end)
{
	return end < END_MAX ? end_reason_words[end] : "?";
}

const char *
record_event_text(unsigned int kind)
{
	return kind > 0 && kind < EVENT_KIND_MAX ? event_kind_words[kind - 1] : "?";
}
