/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Organisation, presets, sandbox and edits become one policy: what wins, what bounds, and what each may not say. */
#include "policy/text/layers.h"

#include "policy/compiled/terms.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define HEAD "version: 1\n"

static char dir_path[64];
static struct preset_dirs dirs;

static void
preset_write(const char *file, const char *text)
{
	int fd = openat(dirs.fds[0], file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static int
dir_make(void **state)
{
	(void)state;
	snprintf(dir_path, sizeof(dir_path), "/tmp/postern-presets-XXXXXX");
	assert_non_null(mkdtemp(dir_path));
	assert_int_equal(preset_dirs_open(dir_path, &dirs, NULL), 0);
	preset_write("npm.yaml", HEAD "name: npm\nallow:\n  - host: '*.npmjs.example'\n");
	preset_write("doh.yaml", HEAD "name: doh\ndeny:\n  - host: dns.example\n    subdomains: true\n");
	preset_write("nested.yaml", HEAD "name: nested\ninclude: [preset:npm]\n");
	preset_write("learner.yaml", HEAD "name: learner\nmode: learn\n");
	preset_write("other.yaml", HEAD "name: someone-else\n");
	preset_write("broken.yaml", HEAD "name: broken\nallow: yes\n");
	preset_write("tight.yaml", HEAD "name: tight\nech: deny\nlimits: {connections: 5}\n");
	preset_write("README", "no preset\n");
	preset_write("UPPER.yaml", HEAD);
	return 0;
}

static int
dir_remove(void **state)
{
	static const char *const files[] = {"npm.yaml", "doh.yaml", "nested.yaml", "learner.yaml", "other.yaml",
	    "broken.yaml", "tight.yaml", "README", "UPPER.yaml"};

	(void)state;
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		unlinkat(dirs.fds[0], files[i], 0);
	preset_dirs_close(&dirs);
	rmdir(dir_path);
	return 0;
}

/* Texts may be NULL: no such layer. */
struct texts {
	const char *organisation, *sandbox, *edits;
	bool learn;
};

static const struct policy *
layer_parse(const char *text, const char *file, struct policy *ret_policy)
{
	struct error err;

	*ret_policy = (struct policy){.rules = NULL};
	if (text == NULL)
		return NULL;
	if (policy_parse(text, strlen(text), file, ret_policy, &err) < 0)
		fail_msg("\n%s\n%s", text, err.text);
	return ret_policy;
}

static int
merge(const struct texts *texts, struct policy *ret_effective, struct error *err)
{
	struct policy organisation, sandbox, edits;
	struct policy_layers layers = {
	    .organisation = layer_parse(texts->organisation, "organisation.yaml", &organisation),
	    .sandbox = layer_parse(texts->sandbox, "task.yaml", &sandbox),
	    .edits = layer_parse(texts->edits, "edits.yaml", &edits),
	    .presets = &dirs,
	    .applied_us = INT64_C(1796119200000000),
	    .learn = texts->learn};
	int result = layers_merge(&layers, ret_effective, err);

	policy_free(&organisation);
	policy_free(&sandbox);
	policy_free(&edits);
	return result;
}

static struct policy
merged(const struct texts *texts)
{
	struct policy effective;
	struct error err;

	if (merge(texts, &effective, &err) < 0)
		fail_msg("%s", err.text);
	return effective;
}

static void
expect_refused(const struct texts *texts, const char *says)
{
	struct policy effective = {.rule_count = 12345};
	struct error err = {.code = ERROR_NONE};

	assert_int_equal(merge(texts, &effective, &err), -1);
	assert_int_equal(err.code, ERROR_POLICY);
	assert_int_equal(effective.rule_count, 12345);
	if (strstr(err.text, says) == NULL)
		fail_msg("\"%s\" does not say \"%s\"", err.text, says);
}

static struct snapshot *
opened(const struct texts *texts)
{
	struct policy policy = merged(texts);
	struct snapshot *snapshot;
	struct error err;
	int fd = snapshot_compile(&policy, &err);

	if (fd < 0)
		fail_msg("%s", err.text);
	snapshot = snapshot_open(fd, &err);
	assert_non_null(snapshot);
	close(fd);
	policy_free(&policy);
	return snapshot;
}

static struct decision
host(const struct snapshot *s, const char *text)
{
	struct name name;

	assert_int_equal(name_canonical(text, strlen(text), &name), NAME_OK);
	return snapshot_decide_host(s, &name, IPPROTO_TCP, 443, 0);
}

static void
rules_keep_their_origins(void **state)
{
	static const struct {
		const char *name;
		enum reason reason;
		const char *origin;
	} cases[] = {
	    {"a.npmjs.example", REASON_ALLOWED, "preset:npm.yaml:4"},
	    {"task.example", REASON_ALLOWED, "task.yaml:4"},
	    {"live.example", REASON_ALLOWED, "edits.yaml:3"},
	    {"bad.example", REASON_RULE_DENY, "organisation.yaml:3"},
	    {"x.dns.example", REASON_RULE_DENY, "preset:doh.yaml:4"},
	    {"mute.example", REASON_RULE_DENY, "edits.yaml:6"},
	};
	struct snapshot *s = opened(&(struct texts){.organisation = HEAD "deny:\n  - host: bad.example\n",
	    .sandbox = HEAD "include: [preset:npm, preset:doh]\nallow:\n  - host: task.example\n  - host: bad.example\n"
			    "  - host: x.dns.example\n  - host: mute.example\n",
	    .edits = HEAD "allow:\n  - host: live.example\n  - host: bad.example\ndeny:\n  - host: mute.example\n"});

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct decision decision = host(s, cases[i].name);

		assert_int_equal(decision.reason, cases[i].reason);
		assert_string_equal(snapshot_rule_origin(s, decision.rule), cases[i].origin);
	}
	snapshot_free(s);
}

/* The order holds over layers: nothing below lifts what is denied above. */
static void
case_A_14_denies_of_the_organisation_cannot_be_lifted(void **state)
{
	static const char *const allows[] = {"  - host: bad.example\n", "  - host: '*.bad.example'\n",
	    "  - host: bad.example\n    subdomains: true\n", "  - host: a.bad.example\n",
	    "  - cidr: 9.9.9.9\n    ports: 443\n"};

	(void)state;
	for (size_t i = 0; i < sizeof(allows) / sizeof(allows[0]); i++) {
		for (int as_edit = 0; as_edit < 2; as_edit++) {
			char text[256];
			struct snapshot *s;
			struct addr addr;

			snprintf(text, sizeof(text), HEAD "allow:\n%s", allows[i]);
			s = opened(
			    &(struct texts){.organisation = HEAD "deny:\n  - host: bad.example\n    subdomains: true\n"
								 "  - cidr: 9.9.9.0/24\n",
				.sandbox = as_edit ? NULL : text,
				.edits = as_edit ? text : NULL});
			assert_int_equal(host(s, "bad.example").reason, REASON_RULE_DENY);
			assert_int_equal(host(s, "a.bad.example").reason, REASON_RULE_DENY);
			assert_true(addr_parse("9.9.9.9", 7, &addr));
			assert_int_equal(snapshot_decide_addr(s, &addr, IPPROTO_TCP, 443, 0).reason, REASON_RULE_DENY);
			snapshot_free(s);
		}
	}
}

static void
allow_of_the_organisation_is_a_bound(void **state)
{
	const char *sandbox = HEAD "include: [preset:npm]\nallow:\n  - host: a.corp.example\n  - host: else.example\n";
	const char *edits = HEAD "allow:\n  - host: b.corp.example\n  - host: live.example\n";
	struct snapshot *s = opened(&(struct texts){
	    .organisation = HEAD "allow:\n  - host: '*.corp.example'\n", .sandbox = sandbox, .edits = edits});

	(void)state;
	assert_int_equal(host(s, "a.corp.example").reason, REASON_ALLOWED);
	assert_string_equal(snapshot_rule_origin(s, host(s, "a.corp.example").rule), "task.yaml:4");
	assert_int_equal(host(s, "b.corp.example").reason, REASON_ALLOWED);
	assert_int_equal(host(s, "c.corp.example").reason, REASON_NO_RULE);
	assert_false(host(s, "c.corp.example").out_of_bounds);
	assert_true(host(s, "else.example").out_of_bounds);
	assert_true(host(s, "live.example").out_of_bounds);
	assert_true(host(s, "a.npmjs.example").out_of_bounds);
	snapshot_free(s);
	/* An empty list allows nothing at all; no list bounds nothing. */
	s = opened(&(struct texts){.organisation = HEAD "allow: []\n", .sandbox = sandbox, .edits = edits});
	assert_true(snapshot_is_bounded(s));
	assert_true(host(s, "a.corp.example").out_of_bounds);
	snapshot_free(s);
	s = opened(&(struct texts){.organisation = HEAD "deny: []\n", .sandbox = sandbox, .edits = edits});
	assert_false(snapshot_is_bounded(s));
	assert_int_equal(host(s, "else.example").reason, REASON_ALLOWED);
	snapshot_free(s);
	/* A preset that the organisation includes belongs to its bounds. */
	s = opened(&(struct texts){.organisation = HEAD "include: [preset:npm]\n", .sandbox = sandbox, .edits = edits});
	assert_int_equal(host(s, "a.npmjs.example").reason, REASON_ALLOWED);
	assert_true(host(s, "else.example").out_of_bounds);
	snapshot_free(s);
}

static void
case_B_01_no_layers_allow_nothing(void **state)
{
	static const struct texts none[] = {{.sandbox = NULL}, {.organisation = HEAD "allow:\n  - host: a.example\n"},
	    {.organisation = HEAD "allow:\n  - host: a.example\n", .sandbox = HEAD, .edits = HEAD},
	    {.sandbox = HEAD "include: []\nallow: []\n"}, {.sandbox = HEAD "include: [preset:doh]\n"}};

	(void)state;
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		struct snapshot *s = opened(&none[i]);

		assert_int_equal(host(s, "a.example").verdict, VERDICT_DENIED);
		assert_int_equal(host(s, "a.npmjs.example").verdict, VERDICT_DENIED);
		assert_int_equal(snapshot_mode(s), POLICY_MODE_ENFORCE);
		snapshot_free(s);
	}
}

static void
limits_tighten_and_ech_stays_denied(void **state)
{
	struct policy policy =
	    merged(&(struct texts){.organisation = HEAD "limits: {connections: 100, upload: 10MiB}\n",
		.sandbox = HEAD "ech: grease-ok\ninclude: [preset:tight]\n"
				"limits: {connections: {soft: 1, hard: 200}, upload: 1GiB, download: 5}\n"});

	(void)state;
	assert_int_equal(policy.ech, POLICY_ECH_DENY);
	assert_int_equal(policy.limits.of[LIMIT_CONNECTIONS].hard, 5);
	assert_int_equal(policy.limits.of[LIMIT_CONNECTIONS].soft, 1);
	assert_int_equal(policy.limits.of[LIMIT_UPLOAD].hard, 10 << 20);
	assert_int_equal(policy.limits.of[LIMIT_DOWNLOAD].hard, 5);
	policy_free(&policy);
	policy = merged(&(struct texts){.organisation = HEAD "ech: deny\n", .sandbox = HEAD "ech: grease-ok\n"});
	assert_int_equal(policy.ech, POLICY_ECH_DENY);
	policy_free(&policy);
	policy = merged(&(struct texts){.organisation = HEAD "ech: grease-ok\n", .sandbox = HEAD});
	assert_int_equal(policy.ech, POLICY_ECH_GREASE_OK);
	policy_free(&policy);
}

static void
learning_is_asked_for_by_the_sandbox_alone(void **state)
{
	struct policy policy = merged(&(struct texts){.sandbox = HEAD "mode: learn\n"});

	(void)state;
	assert_int_equal(policy.mode, POLICY_MODE_LEARN);
	policy_free(&policy);
	policy = merged(&(struct texts){.sandbox = HEAD, .learn = true});
	assert_int_equal(policy.mode, POLICY_MODE_LEARN);
	policy_free(&policy);
	policy = merged(&(struct texts){.sandbox = HEAD "mode: enforce\n"});
	assert_int_equal(policy.mode, POLICY_MODE_ENFORCE);
	policy_free(&policy);
	expect_refused(
	    &(struct texts){.organisation = HEAD "mode: learn\n", .sandbox = HEAD}, "the organisation's policy");
	expect_refused(&(struct texts){.organisation = HEAD "mode: enforce\n", .sandbox = HEAD}, "'mode' is said by");
	expect_refused(
	    &(struct texts){.sandbox = HEAD "include: [preset:learner]\n"}, "preset:learner.yaml:3: 'mode' is said by");
	expect_refused(&(struct texts){.sandbox = HEAD, .edits = HEAD "mode: learn\n"}, "edits.yaml:2: 'mode'");
}

static void
includes_are_found_or_explained(void **state)
{
	(void)state;
	expect_refused(&(struct texts){.sandbox = HEAD "include: [preset:npm,\n  preset:npn]\n"},
	    "task.yaml:3:3: no preset 'npn'; there are: broken, doh, learner, nested, npm, other, tight");
	expect_refused(&(struct texts){.organisation = HEAD "include: [preset:nope]\n", .sandbox = HEAD},
	    "organisation.yaml:2:11: no preset 'nope'");
	expect_refused(&(struct texts){.sandbox = HEAD "include: [preset:nested]\n"},
	    "preset:nested.yaml:3:11: presets are included by policies only, not by preset:nested");
	expect_refused(
	    &(struct texts){.sandbox = HEAD "include: [preset:other]\n"}, "preset:other.yaml: its name is not 'other'");
	expect_refused(
	    &(struct texts){.sandbox = HEAD "include: [preset:broken]\n"}, "preset:broken.yaml:3:8: 'allow' is a list");
	expect_refused(&(struct texts){.edits = HEAD "include: [preset:npm]\n"}, "not by live edits");
}

static void
expiries_count_from_when_it_was_applied(void **state)
{
	struct policy policy = merged(&(struct texts){.sandbox = HEAD "allow:\n  - host: a.example\n    expires: 2s\n",
	    .edits = HEAD "allow:\n  - host: b.example\n    expires: 2026-12-01T10:00Z\n"});

	(void)state;
	assert_int_equal(policy.rules[0].expires_us, INT64_C(1796119202000000));
	assert_int_equal(policy.rules[1].expires_us, INT64_C(1796119200000000));
	policy_free(&policy);
	expect_refused(
	    &(struct texts){.organisation = HEAD "deny:\n  - host: a.example\n    expires: 2h\n", .sandbox = HEAD},
	    "organisation.yaml:3: an organisation's rule expires at a point in time");
}

/* The same edits in another order, as after a restart, give the same block. */
static void
order_of_edits_does_not_matter_to_the_hash(void **state)
{
	static const char *const orders[] = {HEAD "deny:\n  - host: b.example\nallow:\n  - host: a.example\n",
	    HEAD "allow:\n  - host: a.example\ndeny:\n  - host: b.example\n"};
	char hash[2][65];

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct policy edits, effective;
		struct policy_layers layers = {.edits = layer_parse(orders[i], "x", &edits)};
		struct snapshot *s;
		int fd;

		for (size_t r = 0; r < edits.rule_count; r++)
			snprintf(edits.rules[r].origin, sizeof(edits.rules[r].origin), "edit");
		assert_int_equal(layers_merge(&layers, &effective, NULL), 0);
		fd = snapshot_compile(&effective, NULL);
		s = snapshot_open(fd, NULL);
		close(fd);
		assert_non_null(s);
		snapshot_hash(s, hash[i]);
		snapshot_free(s);
		policy_free(&edits);
		policy_free(&effective);
	}
	assert_string_equal(hash[0], hash[1]);
}

/* What the lines of a compiled policy say: settings, then rules, each with its origin. */
static void
expect_lines(const struct snapshot *snapshot, const char *const *expected)
{
	char text[TERMS_LINE_MAX], line[TERMS_LINE_MAX + RULE_ORIGIN_MAX];
	size_t at = 0;

	for (unsigned int i = 0; i < POLICY_SETTING_MAX; i++) {
		if (terms_format_setting(snapshot, (enum policy_setting)i, text)[0] == '\0')
			continue;
		snprintf(
		    line, sizeof(line), "%s (%s)", text, snapshot_setting_origin(snapshot, (enum policy_setting)i));
		assert_string_equal(line, expected[at++]);
	}
	for (uint32_t i = 0; i < snapshot_rule_count(snapshot); i++) {
		struct terms terms;

		terms_of_rule(snapshot, i, &terms);
		snprintf(line, sizeof(line), "%s%s%s (%s)",
		    snapshot_rule_is_organisations(snapshot, i) ? "organisation: " : "",
		    snapshot_rule_is_bound(snapshot, i) ? "bound: " : "",
		    terms_format_rule(snapshot_rule_text(snapshot, i), &terms, text),
		    snapshot_rule_origin(snapshot, i));
		assert_string_equal(line, expected[at++]);
	}
	assert_null(expected[at]);
}

static void
what_is_in_force_is_said_with_its_origin(void **state)
{
	static const char *const expected[] = {
	    "mode: learn (task.yaml:4)",
	    "ech: deny (organisation.yaml:2)",
	    "limits: connections 7 (organisation.yaml:3)",
	    "limits: dns_queries_per_second 9 (soft 2) (task.yaml:7)",
	    "limits: upload 2KiB (task.yaml:8)",
	    "organisation: bound: allow *.corp.example (organisation.yaml:5)",
	    "organisation: deny b.example (organisation.yaml:7)",
	    "allow *.npmjs.example (preset:npm.yaml:4)",
	    "allow a.example:22 subdomains until 2026-12-01T12:00:00Z, 3 uses, upload 1KiB (soft 1) (task.yaml:10)",
	    "allow b.example 1 use (task.yaml:16)",
	    NULL,
	};
	struct policy policy =
	    merged(&(struct texts){.organisation = HEAD "ech: deny\nlimits: {connections: 7, upload: 1MiB}\nallow:\n  "
							"- host: '*.corp.example'\ndeny:\n  - host: b.example\n",
		.sandbox =
		    HEAD "name: task\ninclude: [preset:npm]\nmode: learn\nlimits:\n  connections: 8\n"
			 "  dns_queries_per_second: {soft: 2, hard: 9}\n  upload: 2KiB\nallow:\n  - host: a.example\n"
			 "    subdomains: true\n    ports: 22\n    expires: 2h\n    uses: 3\n"
			 "    limits: {upload: {soft: 1, hard: 1KiB}}\n  - host: b.example\n    uses: 1\n"});
	int fd = snapshot_compile(&policy, NULL);
	struct snapshot *snapshot;

	(void)state;
	policy_free(&policy);
	assert_true(fd >= 0);
	snapshot = snapshot_open(fd, NULL);
	close(fd);
	assert_non_null(snapshot);
	expect_lines(snapshot, expected);
	snapshot_free(snapshot);
}

static void
presets_are_listed(void **state)
{
	static const char *const expected[] = {"broken", "doh", "learner", "nested", "npm", "other", "tight"};
	char(*names)[POLICY_INCLUDE_NAME_MAX], *text;
	struct preset_dirs none = {.count = 0}, missing;
	struct policy policy;
	struct error err;
	size_t count, len;

	(void)state;
	assert_int_equal(preset_list(&dirs, &names, &count, NULL), 0);
	assert_int_equal(count, sizeof(expected) / sizeof(expected[0]));
	for (size_t i = 0; i < count; i++)
		assert_string_equal(names[i], expected[i]);
	free(names);
	assert_int_equal(preset_text(&dirs, "npm", &text, &len, NULL), 0);
	assert_int_equal(strlen(text), len);
	assert_non_null(strstr(text, "npmjs"));
	free(text);
	assert_int_equal(preset_read(&none, "npm", &policy, &err), -1);
	assert_int_equal(err.code, ERROR_NOT_FOUND);
	assert_non_null(strstr(err.text, "there are: none"));
	assert_int_equal(preset_read(NULL, "npm", &policy, &err), -1);
	assert_int_equal(preset_read(&dirs, "../npm", &policy, &err), -1);
	assert_int_equal(err.code, ERROR_USAGE);
	assert_int_equal(preset_dirs_open("/nonexistent/presets", &missing, &err), -1);
	assert_int_equal(err.code, ERROR_SYSTEM);
	assert_int_equal(preset_dirs_open(NULL, &missing, &err), 0);
	preset_dirs_close(&missing);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(rules_keep_their_origins),
	    cmocka_unit_test(case_A_14_denies_of_the_organisation_cannot_be_lifted),
	    cmocka_unit_test(allow_of_the_organisation_is_a_bound),
	    cmocka_unit_test(case_B_01_no_layers_allow_nothing),
	    cmocka_unit_test(limits_tighten_and_ech_stays_denied),
	    cmocka_unit_test(learning_is_asked_for_by_the_sandbox_alone),
	    cmocka_unit_test(includes_are_found_or_explained),
	    cmocka_unit_test(expiries_count_from_when_it_was_applied),
	    cmocka_unit_test(order_of_edits_does_not_matter_to_the_hash),
	    cmocka_unit_test(what_is_in_force_is_said_with_its_origin),
	    cmocka_unit_test(presets_are_listed),
	};

	return cmocka_run_group_tests(tests, dir_make, dir_remove);
}
