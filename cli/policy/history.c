/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/policy/history.h"

#include "base/clock.h"
#include "cli/command.h"
#include "policy/names/country.h"
#include "policy/reason.h"

#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

/* An invalid country or network counts as not known. */
static struct addr_place
history_place_of(const struct query_row *row)
{
	struct addr_place place = {.asn = 0};

	if (row->country.len == 2 && country_is_code(row->country.bytes))
		memcpy(place.country, row->country.bytes, 2);
	if (row->asn.set && row->asn.value > 0 && row->asn.value <= UINT32_MAX)
		place.asn = (uint32_t)row->asn.value;
	return place;
}

bool
history_target_of(const struct query_row *row, struct history_target *ret_target)
{
	struct history_target target = {.dns = row->kind == QUERY_DNS};

	if (row->name_raw.bytes != NULL)
		return false;
	if (row->name.bytes != NULL) {
		/* The column may hold anything: only a text that is canonical already is a name. */
		if (name_canonical(row->name.bytes, row->name.len, &target.name) != NAME_OK ||
		    target.name.len != row->name.len || memcmp(target.name.text, row->name.bytes, target.name.len) != 0)
			return false;
		target.named = true;
	}
	if (target.dns) {
		*ret_target = target;
		return target.named;
	}
	if (row->dst.bytes != NULL && !addr_parse(row->dst.bytes, row->dst.len, &target.addr))
		return false;
	if ((row->proto != IPPROTO_TCP && row->proto != IPPROTO_UDP) || row->dport < 1 || row->dport > UINT16_MAX)
		return false;
	target.proto = (uint8_t)row->proto;
	target.port = (uint16_t)row->dport;
	target.place = history_place_of(row);
	*ret_target = target;
	return target.named || target.addr.family != 0;
}

const char *
history_target_text(const struct history_target *target, char ret_text[HISTORY_TARGET_TEXT_MAX])
{
	const char *proto = target->proto == IPPROTO_UDP ? "udp" : "tcp";
	char address[ADDR_PORT_TEXT_MAX];

	if (target->dns)
		snprintf(ret_text, HISTORY_TARGET_TEXT_MAX, "%s dns", target->name.text);
	else if (target->named)
		snprintf(ret_text, HISTORY_TARGET_TEXT_MAX, "%s:%u/%s", target->name.text, target->port, proto);
	else
		snprintf(ret_text, HISTORY_TARGET_TEXT_MAX, "%s/%s",
		    addr_format_port(&target->addr, target->port, address), proto);
	return ret_text;
}

/* Was a question refused for the addresses of its answer ("deny 1.2.3.0/24 (file:7)")? They are not on record. */
static bool
history_refused_by_address(const struct query_row *row)
{
	static const char deny[] = "deny ";
	char word[RULE_TEXT_MAX];
	struct rule rule;
	size_t at = sizeof(deny) - 1, len = 0;

	if (row->reason == REASON_PLACE_UNKNOWN)
		return true;
	if (row->rule.len < at || memcmp(row->rule.bytes, deny, at) != 0)
		return false;
	while (at < row->rule.len && row->rule.bytes[at] != ' ' && len < sizeof(word) - 1)
		word[len++] = row->rule.bytes[at++];
	word[len] = '\0';
	return rule_parse(RULE_DENY, word, &rule, NULL) == 0 && rule.kind != RULE_HOST;
}

enum history_past
history_past_of(const struct query_row *row)
{
	if (row->verdict == VERDICT_ALLOWED)
		return HISTORY_ALLOWED;
	if (row->verdict != VERDICT_DENIED)
		return HISTORY_OTHER;
	if (row->kind == QUERY_DNS && history_refused_by_address(row))
		return HISTORY_OTHER;
	/* udp_denied: refused in the kernel, where no rule has opened the port. */
	if (row->reason == REASON_NO_RULE || row->reason == REASON_RULE_DENY || row->reason == REASON_NOT_LEASED ||
	    row->reason == REASON_EXPIRED || row->reason == REASON_UDP_DENIED || row->reason == REASON_PLACE_UNKNOWN)
		return HISTORY_DENIED;
	return HISTORY_OTHER;
}

void
history_count(int64_t *count, int64_t more)
{
	if (more > 0 && __builtin_add_overflow(*count, more, count))
		*count = INT64_MAX;
}

void
history_source_finish(struct history_source *source, const char *db, int64_t back_s)
{
	source->db = command_db(db);
	if (source->since_us == HISTORY_SINCE_NONE)
		source->since_us = clock_real_us() - back_s * 1000000;
}

int
history_read(const struct history_source *source, void (*handler)(const struct query_row *row, void *context),
    void *context, struct error *err)
{
	const struct query_filter filter = {
	    .kinds = QUERY_CONNECTION | QUERY_DNS, .sandbox = source->sandbox, .since_us = source->since_us};
	struct query *query = query_open(source->db, err);
	const struct query_row *row;
	bool any = false;
	int rc;

	if (query == NULL)
		return -1;
	rc = query_start(query, &filter, err);
	if (rc == 0)
		for (; (rc = query_next(query, &row, err)) == 1; any = true)
			handler(row, context);
	query_close(query);
	if (rc == 0 && !any)
		return error_set(
		    err, ERROR_NOT_FOUND, "there is no record of %s in that time; see postern log", source->sandbox);
	return rc;
}
