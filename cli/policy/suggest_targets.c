/* SPDX-License-Identifier: GPL-3.0-or-later */
/* From rows to targets. */
#include "cli/policy/suggest_targets.h"

#include "audit/record.h"
#include "cli/policy/suggest_site.h"
#include "policy/text/rule.h"
#include "policy/names/shared.h"

#include <netinet/in.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PORT_DNS 53
#define PORT_HTTPS 443

struct suggest *
suggest_targets_new(void)
{
	return calloc(1, sizeof(struct suggest));
}

void
suggest_targets_free(struct suggest *suggest)
{
	if (suggest == NULL)
		return;
	tdestroy(suggest->root, free);
	suggest_site_free(suggest);
	free(suggest);
}

int
suggest_targets_compare(const void *a, const void *b)
{
	const struct suggest_target *left = a, *right = b;

	if (left->named != right->named)
		return left->named ? -1 : 1;
	return left->named ? strcmp(left->name.text, right->name.text)
			   : memcmp(&left->addr, &right->addr, sizeof(left->addr));
}

/* Where the registered domain begins in the name; 0 also when there is none. */
static uint8_t
suggest_domain_of(const struct name *name)
{
	struct name parent = *name;
	const char *at = name->text;

	while (!shared_is_apex(&parent)) {
		at = strchr(at, '.');
		if (at == NULL || name_canonical(at + 1, strlen(at + 1), &parent) != NAME_OK)
			return 0;
		at++;
	}
	return (uint8_t)(at - name->text);
}

bool
suggest_targets_refused(const char *host, struct error *err)
{
	struct rule rule;

	return rule_parse(RULE_ALLOW, host, &rule, err) < 0;
}

static struct suggest_target *
suggest_target_of(struct suggest *suggest, const struct history_target *from, bool named)
{
	struct suggest_target key = {.named = named, .first_us = INT64_MAX}, *target, **found;
	struct error err;

	if (named)
		key.name = from->name;
	else
		key.addr = from->addr;
	found = tfind(&key, &suggest->root, suggest_targets_compare);
	if (found != NULL)
		return *found;
	if (suggest->count == HISTORY_TARGETS_MAX)
		return NULL;
	target = malloc(sizeof(*target));
	if (target != NULL)
		*target = key;
	if (target == NULL || tsearch(target, &suggest->root, suggest_targets_compare) == NULL) {
		free(target);
		suggest->no_memory = true;
		return NULL;
	}
	target->domain_at = named ? suggest_domain_of(&target->name) : 0;
	target->refused = named ? suggest_targets_refused(target->name.text, &err) : addr_never(&target->addr) != NULL;
	suggest->count++;
	return target;
}

/* False for a port that no rule can open, and when there are too many. */
static bool
suggest_add_port(struct suggest_ports *ports, uint8_t proto, uint16_t port)
{
	bool udp = proto == IPPROTO_UDP;
	uint16_t *list = udp ? ports->udp : ports->tcp;
	uint8_t *count = udp ? &ports->udp_count : &ports->tcp_count;
	size_t at = 0;

	if (port == PORT_DNS || (udp && port == PORT_HTTPS))
		return false;
	while (at < *count && list[at] < port)
		at++;
	if (at < *count && list[at] == port)
		return true;
	if (*count == SUGGEST_PORTS_MAX)
		return false;
	memmove(list + at + 1, list + at, (*count - at) * sizeof(*list));
	list[at] = port;
	++*count;
	return true;
}

/* Should the policy allow this row? Others are counted. */
static bool
suggest_wants(struct suggest *suggest, const struct query_row *row, struct history_target *ret_target)
{
	enum history_past past = history_past_of(row);
	bool never_name = row->verdict == VERDICT_DENIED && row->reason == REASON_NEVER_NAME;

	if (past == HISTORY_OTHER && !never_name && row->name_raw.bytes == NULL) {
		suggest->other++;
		return false;
	}
	if (past == HISTORY_DENIED && (row->reason == REASON_RULE_DENY || row->reason == REASON_EXPIRED)) {
		suggest->ruled++;
		return false;
	}
	if (!history_target_of(row, ret_target)) {
		suggest->nameless++;
		return false;
	}
	/* Reverse queries for its own addresses are allowed without a rule. */
	if (past == HISTORY_ALLOWED && ret_target->dns && name_never(&ret_target->name) != NULL)
		return false;
	if (past == HISTORY_DENIED && (!ret_target->named || row->reason != REASON_NO_RULE)) {
		suggest->unproven++;
		return false;
	}
	return true;
}

void
suggest_targets_row(const struct query_row *row, void *context)
{
	struct suggest *suggest = context;
	struct history_target from;
	struct suggest_target *target;
	int64_t last_us = row->last_us.set ? row->last_us.value : row->ts_us;
	struct name chain[SUGGEST_CHAIN_MAX];
	size_t count;
	bool named;

	if (!suggest_wants(suggest, row, &from))
		return;
	/* Under an address rule the name is only claimed by the guest. */
	named = from.named && (from.dns || row->name_source != NAME_SOURCE_CIDR);
	if (!named && from.addr.family == 0) {
		suggest->nameless++;
		return;
	}
	target = suggest_target_of(suggest, &from, named);
	if (target == NULL) {
		suggest->untold++;
		return;
	}
	if (named && !target->refused) {
		count = suggest_site_chain(row, chain);
		target->domain = suggest_site_join(suggest, &target->name, target->domain_at, chain, count, row->ts_us);
		if (target->domain != NULL)
			suggest_site_connected(suggest, target->domain, row);
		if (count > 0)
			target->through = chain[count - 1];
	}
	if (!from.dns && !suggest_add_port(&target->ports, from.proto, from.port))
		history_count(&target->portless, row->count);
	history_count(row->verdict == VERDICT_ALLOWED ? &target->allowed : &target->denied, row->count);
	if (row->ts_us < target->first_us)
		target->first_us = row->ts_us;
	if (last_us > target->last_us)
		target->last_us = last_us;
}
