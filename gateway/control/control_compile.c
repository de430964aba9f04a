/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "gateway/control/control_compile.h"

#include "base/clock.h"
#include "gateway/control/control_edits.h"
#include "gateway/control/control_sandbox.h"
#include "gateway/shared/usage.h"
#include "policy/text/layers.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* -- the cache ------------------------------------------------------------------------------------------------------
 *
 * Keyed by the texts that a policy is compiled from, and, for those that include files, by the block itself. */

/* A text and its length, so that no two rows of texts look the same. */
static bool
cache_key_add(EVP_MD_CTX *digest, const char *text)
{
	size_t len = text == NULL ? SIZE_MAX : strlen(text);

	return EVP_DigestUpdate(digest, &len, sizeof(len)) == 1 &&
	    (text == NULL || EVP_DigestUpdate(digest, text, len) == 1);
}

/* The key of a text (may be NULL) with its file's name, and live edits: with them and the organisation's policy, which
 * does not change, all else is given. False without memory. */
static bool
cache_key(const char *text, const char *file, const struct policy *edits, uint8_t ret_key[CONTROL_COMPILED_KEY])
{
	EVP_MD_CTX *digest = EVP_MD_CTX_new();
	char *edited = control_edits_format(edits);
	unsigned int len = 0;
	bool made;

	made = digest != NULL && edited != NULL && EVP_DigestInit_ex(digest, EVP_sha256(), NULL) == 1 &&
	    cache_key_add(digest, text) && cache_key_add(digest, file) && cache_key_add(digest, edited) &&
	    EVP_DigestFinal_ex(digest, ret_key, &len) == 1 && len == CONTROL_COMPILED_KEY;
	free(edited);
	EVP_MD_CTX_free(digest);
	return made;
}

/* A descriptor of its own for the caller; -1: not there.
 * syscalls: fcntl(F_DUPFD_CLOEXEC) */
static int
cache_find(struct control *control, const uint8_t key[CONTROL_COMPILED_KEY])
{
	struct control_compiled found;
	size_t at = 0;

	while (at < control->compiled_count && memcmp(control->compiled[at].key, key, CONTROL_COMPILED_KEY) != 0)
		at++;
	if (at == control->compiled_count)
		return -1;
	found = control->compiled[at];
	memmove(&control->compiled[1], &control->compiled[0], at * sizeof(found));
	control->compiled[0] = found;
	return fcntl(found.fd, F_DUPFD_CLOEXEC, 0);
}

/* Keeps it; fd stays the caller's. The least recently used make room.
 * syscalls: fcntl(F_DUPFD_CLOEXEC) */
static void
cache_keep(struct control *control, const uint8_t key[CONTROL_COMPILED_KEY], int fd)
{
	struct control_compiled row;
	struct stat st;

	if (fstat(fd, &st) < 0 || st.st_size > CONTROL_COMPILED_BYTES_MAX)
		return;
	row = (struct control_compiled){.fd = fcntl(fd, F_DUPFD_CLOEXEC, 0), .size = (size_t)st.st_size};
	if (row.fd < 0)
		return;
	memcpy(row.key, key, CONTROL_COMPILED_KEY);
	while (control->compiled_count == CONTROL_COMPILED_MAX ||
	    control->compiled_bytes + row.size > CONTROL_COMPILED_BYTES_MAX) {
		const struct control_compiled *last = &control->compiled[--control->compiled_count];

		control->compiled_bytes -= last->size;
		close(last->fd);
	}
	control->compiled_bytes += row.size;
	memmove(&control->compiled[1], &control->compiled[0], control->compiled_count * sizeof(row));
	control->compiled[0] = row;
	control->compiled_count++;
}

/* Takes the same block from the cache when it is there, as most often of sandboxes that include the same presets. */
static int
cache_share(struct control *control, int fd, struct snapshot **snapshot, struct error *err)
{
	uint8_t key[CONTROL_COMPILED_KEY];
	char hash[65];
	int shared;

	snapshot_hash(*snapshot, hash);
	for (size_t i = 0; i < CONTROL_COMPILED_KEY; i++)
		sscanf(hash + 2 * i, "%2hhx", &key[i]);
	shared = cache_find(control, key);
	if (shared < 0) {
		cache_keep(control, key, fd);
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

/* -- compile ------------------------------------------------------------------------------------------------------- */

/* What the compiled policy depends on. */
enum compile_source {
	COMPILE_FROM_TEXT,  /* its texts alone */
	COMPILE_FROM_FILES, /* presets, or databases of places, which may be others the next time */
	COMPILE_FROM_TIME,  /* when it came */
};

static enum compile_source
compile_source_of(const struct control *control, const struct policy *sandbox, const struct policy *edits)
{
	const struct policy *layers[] = {sandbox, edits, &control->organisation};
	enum compile_source source = COMPILE_FROM_TEXT;

	for (size_t i = 0; i < sizeof(layers) / sizeof(layers[0]); i++) {
		if (layers[i]->include_count > 0)
			source = COMPILE_FROM_FILES;
		for (size_t at = 0; at < layers[i]->rule_count; at++) {
			const struct rule *rule = &layers[i]->rules[at];

			if (rule->expires_after_s != 0)
				return COMPILE_FROM_TIME;
			if (rule->kind == RULE_COUNTRY || rule->kind == RULE_ASN)
				source = COMPILE_FROM_FILES;
		}
	}
	return source;
}

/* From texts to a sealed block; the descriptor, or -1. Edits are laid in the order in which they are stored (allow,
 * then deny): the same policy after a restart has the same hash. */
static int
compile_texts(const struct control *control, const char *policy_text, const char *file, int64_t applied_us,
    const struct policy *edits, enum compile_source *ret_source, struct error *err)
{
	static const enum rule_action order[] = {RULE_ALLOW, RULE_DENY};
	struct policy sandbox, ordered, all;
	const struct policy_layers layers = {
	    .organisation = control->has_organisation ? &control->organisation : NULL,
	    .sandbox = policy_text == NULL ? NULL : &sandbox,
	    .edits = &ordered,
	    .presets = &control->presets,
	    .applied_us = applied_us,
	};
	int fd = -1, rc = 0;

	policy_init(&sandbox);
	policy_init(&ordered);
	if (policy_text != NULL)
		rc = policy_parse(policy_text, strlen(policy_text), file, &sandbox, err);
	for (size_t pass = 0; pass < sizeof(order) / sizeof(order[0]); pass++)
		for (size_t i = 0; i < edits->rule_count && rc == 0; i++)
			if (edits->rules[i].action == order[pass])
				rc = policy_add(&ordered, &edits->rules[i], err);
	if (rc == 0)
		rc = layers_merge(&layers, &all, err);
	*ret_source = rc == 0 ? compile_source_of(control, &sandbox, &ordered) : COMPILE_FROM_TIME;
	policy_free(&sandbox);
	policy_free(&ordered);
	if (rc < 0)
		return -1;
	fd = snapshot_compile(&all, err);
	policy_free(&all);
	return fd;
}

int
control_compile(struct control *control, const char *policy_text, const char *policy_file, int64_t applied_us,
    const struct policy *edits, int *ret_fd, struct snapshot **ret_snapshot, struct error *err)
{
	const char *file = policy_file[0] == '\0' ? CONTROL_POLICY_FILE_DEFAULT : policy_file;
	uint8_t key[CONTROL_COMPILED_KEY];
	bool keyed = cache_key(policy_text, file, edits, key);
	int fd = keyed ? cache_find(control, key) : -1;
	size_t counted = 0;
	enum compile_source source = COMPILE_FROM_TIME; /* also when it was found: there is nothing to keep */

	if (fd < 0)
		fd = compile_texts(control, policy_text, file, applied_us, edits, &source, err);
	if (fd < 0)
		return -1;
	*ret_snapshot = snapshot_open(fd, err);
	for (uint32_t rule = 0; *ret_snapshot != NULL && rule < snapshot_rule_count(*ret_snapshot); rule++)
		counted += usage_counts_rule(*ret_snapshot, rule);
	if (counted > USAGE_RULES_MAX)
		error_set(err, ERROR_LIMIT,
		    "%zu rules have uses or limits; at most %d may: put limits on the whole policy", counted,
		    USAGE_RULES_MAX);
	if (*ret_snapshot == NULL || counted > USAGE_RULES_MAX) {
		snapshot_free(*ret_snapshot);
		*ret_snapshot = NULL;
		close(fd);
		return -1;
	}
	if (keyed && source == COMPILE_FROM_TEXT)
		cache_keep(control, key, fd);
	else if (source == COMPILE_FROM_FILES)
		fd = cache_share(control, fd, ret_snapshot, err);
	if (fd < 0)
		return -1;
	*ret_fd = fd;
	return 0;
}

int
control_compile_check_places(const struct control *control, const struct snapshot *snapshot, struct error *err)
{
	const uint32_t rules[] = {
	    [GEO_COUNTRY] = snapshot_country_rule(snapshot),
	    [GEO_ASN] = snapshot_asn_rule(snapshot),
	};
	const char *lacks = geo_lacks(&control->geo, snapshot);

	for (size_t kind = 0; lacks != NULL && kind < GEO_KIND_MAX; kind++)
		if (control->geo.dbs[kind] == NULL && rules[kind] != SNAPSHOT_NO_RULE)
			return error_set(err, ERROR_POLICY, "%s: %s: %s", snapshot_rule_origin(snapshot, rules[kind]),
			    snapshot_rule_text(snapshot, rules[kind]), lacks);
	return 0;
}

/* syscalls: access faccessat faccessat2 */
int
control_compile_setup(struct control *control, struct error *err)
{
	const char *file = control->options->organisation;
	struct snapshot *snapshot = NULL;
	struct policy nothing;
	int fd = -1, rc;

	if (preset_dirs_open(control->options->preset_dir, &control->presets, err) < 0)
		return error_prefix(err, "--preset-dir");
	if (file == NULL && access(POLICY_ORGANISATION_DEFAULT, F_OK) < 0 && errno == ENOENT)
		return 0;
	if (policy_file_read(file != NULL ? file : POLICY_ORGANISATION_DEFAULT, &control->organisation, err) < 0)
		return error_prefix(err,
		    err->code == ERROR_PERMISSION
			? "the organisation's policy (--organisation), which the control role reads as its own user"
			: "the organisation's policy (--organisation)");
	control->has_organisation = true;
	/* As it will be laid under a sandbox without a policy: its mistakes should show now, not at each attach. */
	policy_init(&nothing);
	rc = control_compile(control, NULL, "", clock_real_us(), &nothing, &fd, &snapshot, err);
	if (rc == 0)
		rc = control_compile_check_places(control, snapshot, err);
	snapshot_free(snapshot);
	policy_free(&nothing);
	if (fd >= 0)
		close(fd);
	return rc < 0 ? error_prefix(err, "the organisation's policy (--organisation)") : 0;
}
