/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/policy/policy_compile.h"

#include "base/clock.h"
#include "policy/text/preset.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int
policy_compile_presets(struct preset_dirs *ret_dirs, struct error *err)
{
	return preset_dirs_open(getenv("POSTERN_PRESET_DIR"), ret_dirs, err);
}

/* Merges the layers with the presets and compiles them. Takes the sandbox's policy. */
static struct snapshot *
compile_layers(struct policy_layers *layers, struct policy *policy, struct error *err)
{
	struct preset_dirs dirs = {0};
	struct snapshot *snapshot;
	struct policy all;
	int fd = -1, rc = policy_compile_presets(&dirs, err);

	layers->sandbox = policy;
	layers->presets = &dirs;
	if (rc == 0)
		rc = layers_merge(layers, &all, err);
	policy_free(policy);
	preset_dirs_close(&dirs);
	if (rc < 0)
		return NULL;
	fd = snapshot_compile(&all, err);
	policy_free(&all);
	if (fd < 0)
		return NULL;
	snapshot = snapshot_open(fd, err);
	close(fd);
	return snapshot;
}

struct snapshot *
policy_compile_at(const char *path, int64_t applied_us, struct error *err)
{
	struct policy_layers layers = {.applied_us = applied_us};
	struct policy policy;

	return policy_file_read(path, &policy, err) < 0 ? NULL : compile_layers(&layers, &policy, err);
}

struct snapshot *
policy_compile_text(const char *text, const char *file, int64_t applied_us, struct error *err)
{
	struct policy_layers layers = {.applied_us = applied_us};
	struct policy policy;

	if (policy_parse(text, strlen(text), file, &policy, err) < 0)
		return NULL;
	return compile_layers(&layers, &policy, err);
}

struct snapshot *
policy_compile_between(const char *path, const struct policy *organisation, const struct policy *edits,
    struct policy_notes *notes, struct error *err)
{
	struct policy_layers layers = {.organisation = organisation, .edits = edits, .applied_us = clock_real_us()};
	struct policy policy;

	return policy_file_read_noted(path, &policy, notes, err) < 0 ? NULL : compile_layers(&layers, &policy, err);
}
