/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A policy as text: what policy_parse reads back to the same. */
#include "policy/text/policy.h"

#include "policy/text/quantity.h"

#include <stdio.h>
#include <stdlib.h>

static void
ports_print(FILE *out, const struct rule *rule)
{
	fprintf(out, "    ports: [");
	for (size_t i = 0; i < rule->range_count; i++) {
		const struct port_range *range = &rule->ranges[i];

		fprintf(out, i == 0 ? "" : ", ");
		if (range->first == range->last)
			fprintf(out, "%u", range->first);
		else
			fprintf(out, "\"%u-%u\"", range->first, range->last);
	}
	fprintf(out, "]\n");
}

/* The soft limit only where it is not the one that follows from the hard one. */
static void
limits_print(FILE *out, const struct limits *limits, const char *indent)
{
	char soft[QUANTITY_TEXT_MAX], hard[QUANTITY_TEXT_MAX];

	if (!limits_any(limits))
		return;
	fprintf(out, "%slimits:\n", indent);
	for (unsigned int i = 0; i < LIMIT_KIND_MAX; i++) {
		enum limit_kind kind = (enum limit_kind)i;
		const struct limit *limit = &limits->of[kind];

		if (limit->hard == 0)
			continue;
		limits_format_amount(kind, limit->hard, hard);
		if (limit->soft == limits_soft_of(limit->hard))
			fprintf(out, "%s  %s: %s\n", indent, limits_kind_text(kind), hard);
		else
			fprintf(out, "%s  %s: {soft: %s, hard: %s}\n", indent, limits_kind_text(kind),
			    limits_format_amount(kind, limit->soft, soft), hard);
	}
}

/* Names and prefixes are quoted always: "*" and ":" mean something else to YAML. */
static void
target_print(FILE *out, const struct rule *rule)
{
	char prefix[ADDR_TEXT_MAX + 4];

	switch (rule->kind) {
	case RULE_HOST:
		fprintf(out, "host: \"%s%s\"", rule->wildcard ? "*." : "", rule->name.text);
		break;
	case RULE_CIDR:
		fprintf(out, "cidr: \"%s\"", addr_prefix_format(&rule->prefix, prefix));
		break;
	case RULE_COUNTRY:
		fprintf(out, "country: \"%.2s\"", rule->country);
		break;
	case RULE_ASN:
		fprintf(out, "asn: %u", rule->asn);
		break;
	}
}

static void
terms_print(FILE *out, const struct rule *rule)
{
	char text[QUANTITY_TEXT_MAX];

	if (rule->expires_after_s != 0)
		fprintf(out, "    expires: %s\n", quantity_format_duration(rule->expires_after_s, text));
	else if (rule->expires_us != 0)
		fprintf(out, "    expires: %s\n", quantity_format_instant(rule->expires_us, text));
	if (rule->uses != 0)
		fprintf(out, "    uses: %u\n", rule->uses);
	limits_print(out, &rule->limits, "    ");
}

static void
rule_print(FILE *out, const struct rule *rule)
{
	fprintf(out, "  - ");
	target_print(out, rule);
	fprintf(out, "\n");
	if (rule->subdomains)
		fprintf(out, "    subdomains: true\n");
	if (rule->shared)
		fprintf(out, "    shared: true\n");
	if (rule->range_count > 0)
		ports_print(out, rule);
	if (rule->proto == IPPROTO_UDP)
		fprintf(out, "    udp: true\n");
	terms_print(out, rule);
}

static void
list_print(FILE *out, const struct policy *policy, enum rule_action action, const char *key)
{
	bool any = false;

	for (size_t i = 0; i < policy->rule_count; i++) {
		if (policy->rules[i].action != action)
			continue;
		if (!any)
			fprintf(out, "%s:\n", key);
		any = true;
		rule_print(out, &policy->rules[i]);
	}
	if (!any && (action == RULE_DENY || policy->has_allow))
		fprintf(out, "%s: []\n", key);
}

static void
settings_print(FILE *out, const struct policy *policy)
{
	fprintf(out, "version: 1\n");
	if (policy->name[0] != '\0')
		fprintf(out, "name: \"%s\"\n", policy->name);
	for (size_t i = 0; i < policy->include_count; i++)
		fprintf(out, "%s\"preset:%s\"%s", i == 0 ? "include: [" : ", ", policy->includes[i].preset,
		    i + 1 == policy->include_count ? "]\n" : "");
	if (policy->mode_set)
		fprintf(out, "mode: %s\n", policy->mode == POLICY_MODE_LEARN ? "learn" : "enforce");
	if (policy->ech_set)
		fprintf(out, "ech: %s\n", policy->ech == POLICY_ECH_DENY ? "deny" : "grease-ok");
	limits_print(out, &policy->limits, "");
}

char *
policy_format(const struct policy *policy)
{
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);
	bool failed;

	if (out == NULL)
		return NULL;
	settings_print(out, policy);
	list_print(out, policy, RULE_ALLOW, "allow");
	list_print(out, policy, RULE_DENY, "deny");
	failed = ferror(out) != 0;
	if (fclose(out) != 0 || failed) {
		free(text);
		return NULL;
	}
	return text;
}
