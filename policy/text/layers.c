/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policy/text/layers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a layer may be. */
enum layer { LAYER_ORGANISATION, LAYER_PRESET, LAYER_SANDBOX, LAYER_EDITS };

static int
layer_check(enum layer layer, const struct policy *policy, const char *what, struct error *err)
{
	bool learns = layer == LAYER_SANDBOX, includes = layer == LAYER_SANDBOX || layer == LAYER_ORGANISATION;

	if (policy->mode_set && !learns)
		return error_set(err, ERROR_POLICY,
		    "%s: 'mode' is said by a sandbox's own policy only, not by %s; remove it",
		    policy->setting_origins[POLICY_SETTING_MODE], what);
	if (policy->include_count > 0 && !includes)
		return error_set(err, ERROR_POLICY,
		    "%s: presets are included by policies only, not by %s; name both where you include this",
		    policy->includes[0].at, what);
	if (layer != LAYER_ORGANISATION)
		return 0;
	/* It is applied anew at every start, so that a relative expiry would never come. */
	for (size_t i = 0; i < policy->rule_count; i++)
		if (policy->rules[i].expires_after_s != 0)
			return error_set(err, ERROR_POLICY,
			    "%s: an organisation's rule expires at a point in time, as in 2026-12-01T10:00:00Z",
			    policy->rules[i].origin);
	return 0;
}

/* Rules and settings but for name and mode, which are the sandbox's own. */
static int
layer_add(struct policy *all, const struct policy *layer, bool bound, struct error *err)
{
	for (size_t i = 0; i < layer->rule_count; i++) {
		struct rule rule = layer->rules[i];

		rule.bound = bound && rule.action == RULE_ALLOW;
		if (policy_add(all, &rule, err) < 0)
			return -1;
	}
	if (layer->ech_set && layer->ech == POLICY_ECH_DENY && all->ech != POLICY_ECH_DENY) {
		all->ech = layer->ech;
		memcpy(all->setting_origins[POLICY_SETTING_ECH], layer->setting_origins[POLICY_SETTING_ECH],
		    RULE_ORIGIN_MAX);
	}
	all->ech_set = all->ech_set || layer->ech_set;
	all->has_allow = all->has_allow || (layer->has_allow && !bound);
	all->bounded = all->bounded || (layer->has_allow && bound);
	policy_tighten(all, layer);
	return 0;
}

static int
include_add(struct policy *all, const struct preset_dirs *dirs, const struct policy_include *include, bool bound,
    struct error *err)
{
	struct policy preset = {.rules = NULL};
	char what[POLICY_INCLUDE_NAME_MAX + sizeof("preset:")];
	int result;

	snprintf(what, sizeof(what), "preset:%s", include->preset);
	if (preset_read(dirs, include->preset, &preset, err) < 0) {
		if (err != NULL && err->code == ERROR_NOT_FOUND) {
			error_prefix(err, "%s", include->at);
			err->code = ERROR_POLICY;
		}
		return -1;
	}
	result = layer_check(LAYER_PRESET, &preset, what, err);
	if (result == 0)
		result = layer_add(all, &preset, bound, err);
	policy_free(&preset);
	return result;
}

/* All of them, so that one run shows every one that is missing. */
static int
includes_add(
    struct policy *all, const struct preset_dirs *dirs, const struct policy *layer, bool bound, struct error *err)
{
	struct error one = {.code = ERROR_NONE};
	size_t len = 0, failed = 0;

	for (size_t i = 0; i < layer->include_count; i++) {
		if (include_add(all, dirs, &layer->includes[i], bound, &one) == 0)
			continue;
		if (err != NULL && failed++ == 0)
			*err = one;
		else if (err != NULL && len + strlen(one.text) + sizeof("\n") <= sizeof(err->text))
			snprintf(err->text + len, sizeof(err->text) - len, "\n%s", one.text);
		len = err == NULL ? 0 : strlen(err->text);
	}
	return one.code == ERROR_NONE ? 0 : -1;
}

static int
organisation_add(struct policy *all, const struct policy_layers *layers, struct error *err)
{
	if (layers->organisation == NULL)
		return 0;
	if (layer_check(LAYER_ORGANISATION, layers->organisation, "the organisation's policy", err) < 0 ||
	    includes_add(all, layers->presets, layers->organisation, true, err) < 0)
		return -1;
	if (layer_add(all, layers->organisation, true, err) < 0)
		return -1;
	all->organisation_rules = all->rule_count;
	return 0;
}

static int
sandbox_add(struct policy *all, const struct policy_layers *layers, struct error *err)
{
	if (layers->sandbox == NULL)
		return 0;
	if (layer_check(LAYER_SANDBOX, layers->sandbox, "the policy", err) < 0 ||
	    includes_add(all, layers->presets, layers->sandbox, false, err) < 0)
		return -1;
	memcpy(all->name, layers->sandbox->name, sizeof(all->name));
	all->mode = layers->sandbox->mode;
	all->mode_set = layers->sandbox->mode_set;
	memcpy(all->setting_origins[POLICY_SETTING_MODE], layers->sandbox->setting_origins[POLICY_SETTING_MODE],
	    RULE_ORIGIN_MAX);
	return layer_add(all, layers->sandbox, false, err);
}

/* In the order in which policy_format prints them: the same edits give the same block after a restart. */
static int
edits_add(struct policy *all, const struct policy_layers *layers, struct error *err)
{
	static const enum rule_action order[] = {RULE_ALLOW, RULE_DENY};

	if (layers->edits == NULL)
		return 0;
	if (layer_check(LAYER_EDITS, layers->edits, "live edits", err) < 0)
		return -1;
	for (size_t pass = 0; pass < sizeof(order) / sizeof(order[0]); pass++)
		for (size_t i = 0; i < layers->edits->rule_count; i++)
			if (layers->edits->rules[i].action == order[pass] &&
			    policy_add(all, &layers->edits->rules[i], err) < 0)
				return -1;
	return 0;
}

int
layers_merge(const struct policy_layers *layers, struct policy *ret_effective, struct error *err)
{
	struct policy all;

	policy_init(&all);
	if (organisation_add(&all, layers, err) < 0 || sandbox_add(&all, layers, err) < 0 ||
	    edits_add(&all, layers, err) < 0) {
		policy_free(&all);
		return -1;
	}
	if (layers->learn) {
		all.mode = POLICY_MODE_LEARN;
		all.mode_set = true;
	}
	policy_resolve(&all, layers->applied_us);
	*ret_effective = all;
	return 0;
}
