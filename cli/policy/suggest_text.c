/* SPDX-License-Identifier: GPL-3.0-or-later */
/* From targets to a policy's text. They are sorted by site, registered domain and ports, so that what one page brought
 * in and those which make a wildcard stand together, and written in that order. rule_parse, which also reads
 * policies, decides what cannot be a rule (never list, look-alikes); the whole text is parsed and compiled before it is
 * printed. */
#include "cli/policy/suggest_text.h"

#include "audit/record.h"
#include "audit/show/render.h"
#include "base/escape.h"
#include "policy/text/policy.h"
#include "policy/names/shared.h"
#include "policy/compiled/snapshot.h"

#include <inttypes.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Hosts of one registered domain with the same ports that make a wildcard. */
#define SUGGEST_SIBLINGS_MIN 3
/* Hosts named in a wildcard's comment, and names named among those left out. */
#define SUGGEST_NAMED_MAX 32

#define PORT_HTTP 80
#define PORT_HTTPS 443

/* The targets in the order of the text. */
struct suggest_list {
	struct suggest_target *items; /* copies */
	size_t count, size;
};

/* Copies a target. Ports 80 and 443 alone, or none (only questions), become a rule without ports. */
static void
suggest_collect(const void *node, VISIT visit, void *context)
{
	struct suggest_list *list = context;
	struct suggest_target *item;
	struct suggest_ports *ports;
	bool standard;

	if ((visit != postorder && visit != leaf) || list->count == list->size)
		return;
	item = &list->items[list->count++];
	*item = **(const struct suggest_target *const *)node;
	ports = &item->ports;
	standard = item->named && (ports->tcp_count > 0 || ports->udp_count == 0);
	for (size_t i = 0; i < ports->tcp_count; i++)
		standard = standard && (ports->tcp[i] == PORT_HTTP || ports->tcp[i] == PORT_HTTPS);
	if (!standard)
		return;
	memset(ports->tcp, 0, sizeof(ports->tcp));
	ports->tcp_count = 0;
	ports->standard = 1;
}

static const char *
suggest_domain(const struct suggest_target *target)
{
	return target->name.text + target->domain_at;
}

/* Does it belong to a site of several domains? */
static bool
suggest_has_company(const struct suggest_target *target)
{
	return target->domain != NULL && target->domain->site->members > 1;
}

/* Domains that stand alone first; then by site, and there the site's own domain first. */
static int
suggest_order_sites(const struct suggest_target *left, const struct suggest_target *right)
{
	const struct suggest_domain *a = left->domain, *b = right->domain;
	int order = suggest_has_company(left) - suggest_has_company(right);

	if (order == 0 && suggest_has_company(left))
		order = strcmp(a->site->text, b->site->text);
	if (order == 0)
		order = (a->site != a) - (b->site != b);
	return order != 0 ? order : strcmp(a->text, b->text);
}

/* What can be allowed first, names first; by site and domain; in it the domain itself, then names by their ports. */
static int
suggest_order(const void *a, const void *b)
{
	const struct suggest_target *left = a, *right = b;
	int order;

	if (left->refused != right->refused)
		return left->refused ? 1 : -1;
	if (left->named != right->named)
		return left->named ? -1 : 1;
	order = left->domain != NULL ? suggest_order_sites(left, right) : 0;
	if (order == 0)
		order = (left->domain_at != 0) - (right->domain_at != 0);
	if (order == 0)
		order = memcmp(&left->ports, &right->ports, sizeof(left->ports));
	return order != 0 ? order : suggest_targets_compare(left, right);
}

/* How many targets from the first one on go into one rule? More than one: hosts below one domain, with the same ports,
 * of which one was let through already: names that a guest only resolved must not open a domain of its choice. */
static size_t
suggest_siblings(const struct suggest_target *first, size_t count)
{
	char wildcard[NAME_TEXT_MAX + 3];
	struct name domain;
	struct error err;
	bool known = first->allowed > 0;
	size_t siblings = 1;

	if (!first->named || first->domain_at == 0)
		return 1;
	while (siblings < count && first[siblings].named && !first[siblings].refused &&
	    strcmp(suggest_domain(first), suggest_domain(&first[siblings])) == 0 &&
	    memcmp(&first->ports, &first[siblings].ports, sizeof(first->ports)) == 0)
		known |= first[siblings++].allowed > 0;
	snprintf(wildcard, sizeof(wildcard), "*.%s", suggest_domain(first));
	if (siblings < SUGGEST_SIBLINGS_MIN || !known ||
	    name_canonical(suggest_domain(first), strlen(suggest_domain(first)), &domain) != NAME_OK ||
	    shared_span_of(&domain, NULL) != SHARED_SPAN_ONE || suggest_targets_refused(wildcard, &err))
		return 1;
	return siblings;
}

/* The comment after a rule or a sibling: how often it was allowed and denied so far. */
static void
suggest_write_tally(FILE *out, const struct suggest_target *target)
{
	char first[40], last[40];

	if (target->allowed > 0)
		fprintf(out, "allowed %" PRId64 "%s", target->allowed, target->denied > 0 ? ", " : "");
	if (target->denied > 0)
		fprintf(out, "denied %" PRId64, target->denied);
	fprintf(out, " so far; %.19sZ to %.19sZ", render_time_utc(target->first_us, first),
	    render_time_utc(target->last_us, last));
	if (target->through.len > 0)
		fprintf(out, "; an alias of %s", target->through.text);
	if (target->portless > 0)
		fprintf(out, "; %" PRId64 " more at ports left out", target->portless);
	fputc('\n', out);
}

static void
suggest_write_ports(FILE *out, const uint16_t *ports, size_t count)
{
	fprintf(out, "    ports: [");
	for (size_t i = 0; i < count; i++)
		fprintf(out, "%s%u", i == 0 ? "" : ", ", ports[i]);
	fprintf(out, "]\n");
}

/* One rule, or two when UDP is among it: "host: ..." and its ports. Returns how many. */
static size_t
suggest_write_rule(FILE *out, const char *what, const struct suggest_target *target)
{
	const struct suggest_ports *ports = &target->ports;
	size_t rules = 0;

	if (ports->standard || ports->tcp_count > 0) {
		fprintf(out, "  - %s  # ", what);
		suggest_write_tally(out, target);
		if (ports->tcp_count > 0)
			suggest_write_ports(out, ports->tcp, ports->tcp_count);
		rules++;
	}
	if (ports->udp_count > 0) {
		fprintf(out, "  - %s  # ", what);
		suggest_write_tally(out, target);
		suggest_write_ports(out, ports->udp, ports->udp_count);
		fprintf(out, "    udp: true\n");
		rules++;
	}
	return rules;
}

/* "*.domain" for all of them, after comments that list them. */
static size_t
suggest_write_wildcard(FILE *out, const struct suggest_target *items, size_t count)
{
	struct suggest_target all = items[0];
	char what[NAME_TEXT_MAX + 16];

	all.through.len = 0; /* each has its own */

	for (size_t i = 0; i < count && i < SUGGEST_NAMED_MAX; i++) {
		fprintf(out, "  # %s: ", items[i].name.text);
		suggest_write_tally(out, &items[i]);
	}
	if (count > SUGGEST_NAMED_MAX)
		fprintf(out, "  # and %zu more of these\n", count - SUGGEST_NAMED_MAX);
	for (size_t i = 1; i < count; i++) {
		history_count(&all.allowed, items[i].allowed);
		history_count(&all.denied, items[i].denied);
		history_count(&all.portless, items[i].portless);
		all.first_us = items[i].first_us < all.first_us ? items[i].first_us : all.first_us;
		all.last_us = items[i].last_us > all.last_us ? items[i].last_us : all.last_us;
	}
	snprintf(what, sizeof(what), "host: \"*.%s\"", suggest_domain(&items[0]));
	return suggest_write_rule(out, what, &all);
}

/* The comment above the first rule of a site of several domains, and after its last rule. */
static void
suggest_write_site(FILE *out, const struct suggest_target *before, const struct suggest_target *target)
{
	const struct suggest_domain *site = suggest_has_company(target) ? target->domain->site : NULL;

	if (before != NULL && suggest_has_company(before) && site == before->domain->site)
		return;
	if (site != NULL)
		fprintf(out,
		    "  # -- %s, and what was first resolved within %d s after a connection to it, or shares an alias\n",
		    site->text, SUGGEST_SITE_S);
	else if (before != NULL && suggest_has_company(before))
		fprintf(out, "  # -- addresses\n");
}

static void
suggest_write_rules(FILE *out, const struct suggest_list *list)
{
	char what[NAME_TEXT_MAX + 16], address[ADDR_TEXT_MAX];
	size_t rules = 0, step;

	fprintf(out, "version: 1\nallow:\n");
	for (size_t i = 0; i < list->count && !list->items[i].refused; i += step) {
		suggest_write_site(out, i == 0 ? NULL : &list->items[i - 1], &list->items[i]);
		step = suggest_siblings(&list->items[i], list->count - i);
		if (list->items[i].named)
			snprintf(what, sizeof(what), "host: \"%s\"", list->items[i].name.text);
		else
			snprintf(what, sizeof(what), "cidr: \"%s/%u\"", addr_format(&list->items[i].addr, address),
			    list->items[i].addr.family == 4 ? 32u : 128u);
		rules += step > 1 ? suggest_write_wildcard(out, &list->items[i], step)
				  : suggest_write_rule(out, what, &list->items[i]);
	}
	/* A list may be empty, but not absent after its key. */
	if (rules == 0)
		fprintf(out, "  []\n");
}

/* Writes comments on targets that are not suggested, with the reason. */
static void
suggest_write_refused(FILE *out, const struct suggest_list *list)
{
	size_t at = 0, shown = 0;

	while (at < list->count && !list->items[at].refused)
		at++;
	for (; at < list->count && shown < SUGGEST_NAMED_MAX; at++, shown++) {
		const struct suggest_target *target = &list->items[at];
		char address[ADDR_TEXT_MAX], safe[ERROR_TEXT_MAX];
		struct error err = {.text = "on the never list"};

		if (target->named)
			(void)suggest_targets_refused(target->name.text, &err);
		escape_terminal(err.text, strlen(err.text), safe, sizeof(safe));
		fprintf(out, "# left out: %s: %s\n",
		    target->named ? target->name.text : addr_format(&target->addr, address), safe);
	}
	if (at < list->count)
		fprintf(out, "# left out: %zu more that no rule can allow\n", list->count - at);
}

static void
suggest_write(
    FILE *out, const struct suggest *suggest, const struct suggest_list *list, const char *sandbox, int64_t since_us)
{
	const struct {
		int64_t count;
		const char *what;
	} counts[] = {
	    {suggest->nameless, "about names and addresses that no rule can name"},
	    {suggest->unproven, "to addresses that it had not resolved"},
	    {suggest->ruled, "refused by a deny rule or by a rule's end"},
	    {suggest->other, "refused or failed for other reasons"},
	    {suggest->untold, "about still other hosts"},
	};
	char safe[4 * RECORD_SANDBOX_NAME_MAX + 1], since[40];

	escape_terminal(sandbox, strlen(sandbox), safe, sizeof(safe));
	fprintf(out,
	    "# What %s tried since %.19sZ, denied attempts included.\n"
	    "# Read every line before you apply it: a guest can try anything.\n",
	    safe, render_time_utc(since_us, since));
	suggest_write_rules(out, list);
	suggest_write_refused(out, list);
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
		if (counts[i].count > 0)
			fprintf(out, "# left out: %" PRId64 " record%s %s\n", counts[i].count,
			    counts[i].count == 1 ? "" : "s", counts[i].what);
}

/* Parses and compiles the text as posternd will. */
static int
suggest_check(const char *text, size_t len, struct error *err)
{
	struct policy policy;
	int fd;

	if (policy_parse(text, len, "the suggestion", &policy, err) < 0)
		return -1;
	fd = snapshot_compile(&policy, err);
	policy_free(&policy);
	if (fd < 0)
		return error_prefix(err, "the suggestion");
	close(fd);
	return 0;
}

char *
suggest_text_format(const struct suggest *suggest, const char *sandbox, int64_t since_us, struct error *err)
{
	struct suggest_list list = {.items = calloc(suggest->count + 1, sizeof(*list.items)), .size = suggest->count};
	char *text = NULL;
	size_t len = 0;
	FILE *out = list.items == NULL || suggest->no_memory ? NULL : open_memstream(&text, &len);
	int rc;

	if (out == NULL) {
		free(list.items);
		error_set(err, ERROR_SYSTEM, "out of memory");
		return NULL;
	}
	twalk_r(suggest->root, suggest_collect, &list);
	qsort(list.items, list.count, sizeof(*list.items), suggest_order);
	suggest_write(out, suggest, &list, sandbox, since_us);
	free(list.items);
	rc = fclose(out) != 0 ? error_set(err, ERROR_SYSTEM, "out of memory") : suggest_check(text, len, err);
	if (rc < 0) {
		free(text);
		return NULL;
	}
	return text;
}
