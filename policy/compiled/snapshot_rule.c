/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a verified block says about itself and about each of its rules. */
#include "policy/compiled/snapshot_format.h"

#include <string.h>

static const struct limits no_limits;

void
snapshot_hash(const struct snapshot *s, char ret_hex[65])
{
	memcpy(ret_hex, s->hash, sizeof(s->hash));
}

enum policy_ech
snapshot_ech(const struct snapshot *s)
{
	return (enum policy_ech)s->view.header->ech;
}

enum policy_mode
snapshot_mode(const struct snapshot *s)
{
	return (enum policy_mode)s->view.header->mode;
}

bool
snapshot_is_bounded(const struct snapshot *s)
{
	return s->view.header->bounded != 0;
}

const struct limits *
snapshot_limits(const struct snapshot *s)
{
	return &s->view.header->limits;
}

size_t
snapshot_rule_count(const struct snapshot *s)
{
	return s->view.rule_count;
}

const char *
snapshot_rule_text(const struct snapshot *s, uint32_t rule)
{
	return rule < s->view.rule_count ? s->view.strings + s->view.rules[rule].text : "";
}

const char *
snapshot_rule_origin(const struct snapshot *s, uint32_t rule)
{
	return rule < s->view.rule_count ? s->view.strings + s->view.rules[rule].origin : "";
}

const char *
snapshot_setting_origin(const struct snapshot *s, enum policy_setting setting)
{
	uint32_t at = s->view.header->setting_origins[setting];

	return at == 0 ? "" : s->view.strings + at - 1;
}

bool
snapshot_rule_is_organisations(const struct snapshot *s, uint32_t rule)
{
	return rule < s->view.header->organisation_rules;
}

bool
snapshot_rule_is_bound(const struct snapshot *s, uint32_t rule)
{
	return rule < s->view.rule_count && s->view.rules[rule].bound != 0;
}

int64_t
snapshot_rule_expires_us(const struct snapshot *s, uint32_t rule)
{
	return rule < s->view.rule_count ? s->view.rules[rule].expires_us : 0;
}

uint32_t
snapshot_rule_uses(const struct snapshot *s, uint32_t rule)
{
	return rule < s->view.rule_count ? s->view.rules[rule].uses : 0;
}

const struct limits *
snapshot_rule_limits(const struct snapshot *s, uint32_t rule)
{
	if (rule >= s->view.rule_count || s->view.rules[rule].limits == 0)
		return &no_limits;
	return &s->view.limits[s->view.rules[rule].limits - 1];
}

uint64_t
snapshot_rule_id(const struct snapshot *s, uint32_t rule)
{
	return rule < s->view.rule_count ? s->view.rules[rule].id : 0;
}

void
snapshot_rule_retire(struct snapshot *s, uint32_t rule)
{
	if (rule < s->view.rule_count && s->retired != NULL)
		s->retired[rule] = true;
}

void
snapshot_rule_reinstate(struct snapshot *s, uint32_t rule)
{
	if (rule < s->view.rule_count && s->retired != NULL)
		s->retired[rule] = false;
}

bool
snapshot_rule_is_live(const struct snapshot *s, uint32_t rule, int64_t now_us)
{
	return rule < s->view.rule_count && snap_rule_lives(s, rule, now_us);
}

int64_t
snapshot_next_expiry_us(const struct snapshot *s, int64_t now_us)
{
	int64_t next_us = 0;

	for (uint32_t i = 0; s->expires && i < s->view.rule_count; i++) {
		int64_t expires_us = s->view.rules[i].expires_us;

		if (expires_us > now_us && (next_us == 0 || expires_us < next_us))
			next_us = expires_us;
	}
	return next_us;
}

uint32_t
snapshot_country_rule(const struct snapshot *s)
{
	return s->country_rule;
}

uint32_t
snapshot_asn_rule(const struct snapshot *s)
{
	return s->asn_rule;
}

const struct addr_range *
snapshot_ranges(const struct snapshot *s, size_t *ret_count)
{
	*ret_count = s->range_count;
	return s->ranges;
}

const uint16_t *
snapshot_udp_ports(const struct snapshot *s, size_t *ret_count)
{
	*ret_count = s->udp_port_count;
	return s->udp_ports;
}
