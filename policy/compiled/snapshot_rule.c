/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a verified block says about each of its rules. */
#include "policy/compiled/snapshot_format.h"

static const struct limits no_limits;

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
