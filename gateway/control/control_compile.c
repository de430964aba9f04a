/* SPDX-License-Identifier: GPL-3.0-or-later */
/* From the layers of a sandbox's policy to a sealed block; the same block for all who come to the same one, as far as
 * control_compiled.h remembers it. */
#include "gateway/control/control.h"

#include "base/clock.h"
#include "policy/text/layers.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* Name of a policy that came without one. */
#define POLICY_FILE_DEFAULT "policy.yaml"

/* In the order in which they are stored (allow, then deny): the same policy after a restart has the same hash. */
static int
policy_add_edits(struct policy *all, const struct policy *edits, struct error *err)
{
	static const enum rule_action order[] = {RULE_ALLOW, RULE_DENY};

	for (size_t pass = 0; pass < sizeof(order) / sizeof(order[0]); pass++)
		for (size_t i = 0; i < edits->rule_count; i++)
			if (edits->rules[i].action == order[pass] && policy_add(all, &edits->rules[i], err) < 0)
				return -1;
	return 0;
}

/* The effective policy of a sandbox, ready to be compiled. */
static int
policy_lay(const struct control *control, const struct policy *sandbox, const struct policy *edits, int64_t applied_us,
    struct policy *ret_all, struct error *err)
{
	const struct policy_layers layers = {
	    .organisation = control->has_organisation ? &control->organisation : NULL,
	    .sandbox = sandbox,
	    .edits = edits,
	    .presets = &control->presets,
	    .applied_us = applied_us,
	};

	return policy_layers_merge(&layers, ret_all, err);
}

/* What a compiled policy follows from. */
enum policy_source {
	POLICY_FROM_TEXT,  /* from its texts alone */
	POLICY_FROM_FILES, /* from presets, or databases of places, which may be others the next time */
	POLICY_FROM_TIME,  /* from when it was given to us */
};

static enum policy_source
policy_source_of(const struct control *control, const struct policy *sandbox, const struct policy *edits)
{
	const struct policy *layers[] = {sandbox, edits, &control->organisation};
	enum policy_source source = POLICY_FROM_TEXT;

	for (size_t i = 0; i < sizeof(layers) / sizeof(layers[0]); i++) {
		if (layers[i]->include_count > 0)
			source = POLICY_FROM_FILES;
		for (size_t at = 0; at < layers[i]->rule_count; at++) {
			const struct rule *rule = &layers[i]->rules[at];

			if (rule->expires_after_s != 0)
				return POLICY_FROM_TIME;
			if (rule->kind == RULE_COUNTRY || rule->kind == RULE_ASN)
				source = POLICY_FROM_FILES;
		}
	}
	return source;
}

/* From texts to a sealed block; the descriptor, or -1. */
static int
policy_compile(const struct control *control, const char *policy_text, const char *file, int64_t applied_us,
    const struct policy *edits, enum policy_source *ret_source, struct error *err)
{
	struct policy sandbox, ordered, all;
	int fd = -1, rc = 0;

	policy_init(&sandbox);
	policy_init(&ordered);
	if (policy_text != NULL)
		rc = policy_parse(policy_text, strlen(policy_text), file, &sandbox, err);
	if (rc == 0)
		rc = policy_add_edits(&ordered, edits, err);
	if (rc == 0)
		rc = policy_lay(control, policy_text == NULL ? NULL : &sandbox, &ordered, applied_us, &all, err);
	*ret_source = rc == 0 ? policy_source_of(control, &sandbox, &ordered) : POLICY_FROM_TIME;
	policy_free(&sandbox);
	policy_free(&ordered);
	if (rc < 0)
		return -1;
	fd = snapshot_compile(&all, err);
	policy_free(&all);
	return fd;
}

/* When the same block is there already, as most often of those that include the same presets, take that. */
static int
policy_share(struct control *control, int fd, struct snapshot **snapshot, struct error *err)
{
	uint8_t key[CONTROL_COMPILED_KEY];
	int shared;

	control_compiled_block_key(*snapshot, key);
	shared = control_compiled_find(&control->compiled, key);
	if (shared < 0) {
		control_compiled_keep(&control->compiled, key, fd);
		return fd;
	}
	snapshot_free(*snapshot);
	close(fd);
	*snapshot = snapshot_open(shared, err);
	if (*snapshot != NULL)
		return shared;
	close(shared);
	return -1;
}

int
control_policy_compile(struct control *control, const char *policy_text, const char *policy_file, int64_t applied_us,
    const struct policy *edits, int *ret_fd, struct snapshot **ret_snapshot, struct error *err)
{
	const char *file = policy_file[0] == '\0' ? POLICY_FILE_DEFAULT : policy_file;
	uint8_t key[CONTROL_COMPILED_KEY];
	bool keyed = control_compiled_key(policy_text, file, edits, key);
	int fd = keyed ? control_compiled_find(&control->compiled, key) : -1;
	enum policy_source source = POLICY_FROM_TIME; /* or found: then there is nothing to keep */

	if (fd < 0)
		fd = policy_compile(control, policy_text, file, applied_us, edits, &source, err);
	if (fd < 0)
		return -1;
	*ret_snapshot = snapshot_open(fd, err);
	if (*ret_snapshot == NULL || control_usage_check(*ret_snapshot, err) < 0) {
		snapshot_free(*ret_snapshot);
		*ret_snapshot = NULL;
		close(fd);
		return -1;
	}
	if (keyed && source == POLICY_FROM_TEXT)
		control_compiled_keep(&control->compiled, key, fd);
	else if (source == POLICY_FROM_FILES)
		fd = policy_share(control, fd, ret_snapshot, err);
	if (fd < 0)
		return -1;
	*ret_fd = fd;
	return 0;
}

/* Alone, as it will lie under a sandbox without a policy: what is wrong with it should be heard now, not at each
 * attach. */
static int
organisation_check(struct control *control, struct error *err)
{
	struct policy nothing;
	struct snapshot *snapshot = NULL;
	int fd = -1, rc;

	policy_init(&nothing);
	rc = control_policy_compile(control, NULL, "", clock_real_us(), &nothing, &fd, &snapshot, err);
	if (rc == 0)
		rc = control_places_check(control, snapshot, err);
	snapshot_free(snapshot);
	policy_free(&nothing);
	if (fd >= 0)
		close(fd);
	return rc;
}

int
control_policy_setup(struct control *control, struct error *err)
{
	const char *file = control->options->organisation;

	if (preset_dirs_open(control->options->preset_dir, &control->presets, err) < 0)
		return error_prefix(err, "--preset-dir");
	if (file == NULL && access(POLICY_ORGANISATION_DEFAULT, F_OK) < 0 && errno == ENOENT)
		return 0;
	if (policy_read_file(file != NULL ? file : POLICY_ORGANISATION_DEFAULT, &control->organisation, err) < 0)
		return error_prefix(err,
		    err->code == ERROR_PERMISSION
			? "the organisation's policy (--organisation), which the control role reads as its own user"
			: "the organisation's policy (--organisation)");
	control->has_organisation = true;
	return organisation_check(control, err) < 0 ? error_prefix(err, "the organisation's policy (--organisation)")
						    : 0;
}
