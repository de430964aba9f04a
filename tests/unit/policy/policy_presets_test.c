/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The presets that are shipped: each compiles, says one thing, and covers what its tool's vendor documents. Hosts below
 * a registry's domain are made up: it is the domain that counts. Runs in the source tree's root, as tests/run does. */
#include "policy/text/layers.h"
#include "policy/names/shared.h"
#include "policy/compiled/snapshot.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const char *const shipped[] = {"anthropic", "chromium", "crates", "debian", "docker-hub", "doh-deny", "ghcr",
    "github", "gitlab", "go", "google-apis", "huggingface", "npm", "openai", "playwright", "pypi", "ubuntu"};
#define SHIPPED (sizeof(shipped) / sizeof(shipped[0]))

static struct preset_dirs dirs;

static int
dirs_open(void **state)
{
	(void)state;
	return preset_dirs_open("configs/presets", &dirs, NULL);
}

static int
dirs_close(void **state)
{
	(void)state;
	preset_dirs_close(&dirs);
	return 0;
}

/* A sandbox's policy that includes these presets and allows nothing else but what text says. */
static struct snapshot *
opened(const char *const *presets, size_t count, const char *text)
{
	char policy_text[2048] = "version: 1\ninclude: [";
	struct policy policy, effective;
	struct policy_layers layers = {.sandbox = &policy, .presets = &dirs};
	struct snapshot *snapshot;
	struct error err;
	int fd;

	for (size_t i = 0; i < count; i++) {
		strcat(policy_text, i == 0 ? "preset:" : ", preset:");
		strcat(policy_text, presets[i]);
	}
	strcat(policy_text, "]\n");
	strcat(policy_text, text);
	if (policy_parse(policy_text, strlen(policy_text), "task.yaml", &policy, &err) < 0 ||
	    layers_merge(&layers, &effective, &err) < 0)
		fail_msg("%s", err.text);
	fd = snapshot_compile(&effective, &err);
	if (fd < 0)
		fail_msg("%s", err.text);
	snapshot = snapshot_open(fd, &err);
	assert_non_null(snapshot);
	close(fd);
	policy_free(&policy);
	policy_free(&effective);
	return snapshot;
}

static enum reason
ask(const struct snapshot *s, const char *host, uint16_t port)
{
	struct name name;

	assert_int_equal(name_canonical(host, strlen(host), &name), NAME_OK);
	return snapshot_decide_host(s, &name, IPPROTO_TCP, port, 0).reason;
}

static void
the_list_is_what_is_shipped(void **state)
{
	char(*names)[POLICY_INCLUDE_NAME_MAX];
	size_t count;

	(void)state;
	assert_int_equal(preset_list(&dirs, &names, &count, NULL), 0);
	assert_int_equal(count, SHIPPED);
	for (size_t i = 0; i < count; i++)
		assert_string_equal(names[i], shipped[i]);
	free(names);
}

/* One kind of rule, its sources in comments, and nothing that deserves a second look without saying that it is meant.
 */
static void
each_compiles_and_says_one_thing(void **state)
{
	(void)state;
	for (size_t i = 0; i < SHIPPED; i++) {
		struct policy_notes notes = {.notes = NULL};
		struct snapshot *s = opened(&shipped[i], 1, "");
		struct policy policy;
		char *text;
		size_t len;

		assert_int_equal(preset_text(&dirs, shipped[i], &text, &len, NULL), 0);
		assert_non_null(strstr(text, "Source"));
		assert_non_null(strstr(text, "# Revision "));
		assert_int_equal(policy_parse_noted(text, len, shipped[i], &policy, &notes, NULL), 0);
		assert_string_equal(policy.name, shipped[i]);
		assert_true(policy.rule_count > 0);
		assert_int_equal(policy.include_count, 0);
		assert_false(policy.mode_set || policy.ech_set || limits_any(&policy.limits));
		for (size_t r = 0; r < policy.rule_count; r++)
			assert_int_equal(policy.rules[r].action, policy.rules[0].action);
		if (notes.count > 0)
			fail_msg("%s:%u: %s", shipped[i], notes.notes[0].line, notes.notes[0].text);
		assert_int_equal(snapshot_rule_count(s), policy.rule_count);
		notes_free(&notes);
		policy_free(&policy);
		snapshot_free(s);
		free(text);
	}
}

static void
all_go_together(void **state)
{
	struct snapshot *s = opened(shipped, SHIPPED, "");

	(void)state;
	assert_true(snapshot_rule_count(s) > 100);
	snapshot_free(s);
}

static void
documented_hosts_are_covered(void **state)
{
	static const struct {
		const char *preset, *host;
		uint16_t port;
		bool allowed;
	} cases[] = {
	    {"npm", "made-up.npmjs.org", 443, true},
	    {"npm", "npmjs.org", 443, true},
	    {"npm", "made-up.yarnpkg.com", 443, true},
	    {"npm", "nodejs.org", 443, true},
	    {"npm", "notnpmjs.org", 443, false},
	    {"npm", "npmjs.org.example", 443, false},
	    {"npm", "made-up.npmjs.org", 22, false},
	    {"pypi", "pypi.org", 443, true},
	    {"pypi", "made-up.pypi.org", 443, true},
	    {"pypi", "a.made-up.pythonhosted.org", 443, true},
	    {"pypi", "python.org", 443, false},
	    {"go", "made-up.golang.org", 443, true},
	    {"go", "go.dev", 443, true},
	    {"go", "dl.google.com", 443, true},
	    {"go", "google.com", 443, false},
	    {"crates", "made-up.crates.io", 443, true},
	    {"crates", "made-up.rust-lang.org", 443, true},
	    {"crates", "docs.rs", 443, false},
	    {"debian", "made-up.debian.org", 80, true},
	    {"debian", "made-up.debian.org", 443, true},
	    {"debian", "debian.net", 80, false},
	    {"ubuntu", "made-up.ubuntu.com", 80, true},
	    {"ubuntu", "a.made-up.ubuntu.com", 443, true},
	    {"ubuntu", "ppa.launchpadcontent.net", 443, false},
	    {"docker-hub", "made-up.docker.io", 443, true},
	    {"docker-hub", "made-up.docker.com", 443, true},
	    {"docker-hub", "production.cloudflare.docker.com", 443, true},
	    {"docker-hub", "docker-images-prod.6aa30f8b08e16409b46e0173d6de2f56.r2.cloudflarestorage.com", 443, true},
	    {"docker-hub", "someone-else.6aa30f8b08e16409b46e0173d6de2f56.r2.cloudflarestorage.com", 443, false},
	    {"ghcr", "ghcr.io", 443, true},
	    {"ghcr", "made-up.pkg.github.com", 443, true},
	    {"ghcr", "made-up.githubusercontent.com", 443, true},
	    {"ghcr", "github.com", 443, false},
	    {"github", "github.com", 443, true},
	    {"github", "github.com", 22, true},
	    {"github", "ssh.github.com", 443, true},
	    {"github", "api.github.com", 443, true},
	    {"github", "codeload.github.com", 443, true},
	    {"github", "raw.githubusercontent.com", 443, true},
	    {"github", "objects.githubusercontent.com", 443, true},
	    {"github", "release-assets.githubusercontent.com", 443, true},
	    {"github", "github.githubassets.com", 443, true},
	    {"github", "github-cloud.s3.amazonaws.com", 443, true},
	    {"github", "other.s3.amazonaws.com", 443, false},
	    {"github", "someone.github.io", 443, false},
	    {"github", "api.github.com", 22, false},
	    {"gitlab", "gitlab.com", 443, true},
	    {"gitlab", "gitlab.com", 22, true},
	    {"gitlab", "altssh.gitlab.com", 443, true},
	    {"gitlab", "assets.gitlab-static.net", 443, true},
	    {"gitlab", "someone.gitlab.io", 443, false},
	    {"huggingface", "huggingface.co", 443, true},
	    {"huggingface", "cdn-lfs-us-1.hf.co", 443, true},
	    {"huggingface", "cas-server.xethub.hf.co", 443, true},
	    {"huggingface", "someone.hf.space", 443, false},
	    {"playwright", "cdn.playwright.dev", 443, true},
	    {"playwright", "playwright.download.prss.microsoft.com", 443, true},
	    {"playwright", "storage.googleapis.com", 443, true},
	    {"playwright", "bucket.storage.googleapis.com", 443, false},
	    {"chromium", "accounts.google.com", 443, true},
	    {"chromium", "clients2.google.com", 443, true},
	    {"chromium", "update.googleapis.com", 443, true},
	    {"chromium", "update.googleapis.com", 80, true},
	    {"chromium", "optimizationguide-pa.googleapis.com", 443, true},
	    {"chromium", "safebrowsing.googleapis.com", 443, true},
	    {"chromium", "edgedl.me.gvt1.com", 80, true},
	    {"chromium", "www.gstatic.com", 443, true},
	    {"chromium", "www.google.com", 443, false},
	    {"chromium", "storage.googleapis.com", 443, false},
	    {"openai", "api.openai.com", 443, true},
	    {"openai", "auth.openai.com", 443, true},
	    {"openai", "chatgpt.com", 443, true},
	    {"openai", "files.oaiusercontent.com", 443, true},
	    {"openai", "openai.com.example", 443, false},
	    {"anthropic", "api.anthropic.com", 443, true},
	    {"anthropic", "claude.ai", 443, true},
	    {"anthropic", "platform.claude.com", 443, true},
	    {"anthropic", "downloads.claude.ai", 443, true},
	    {"anthropic", "notanthropic.com", 443, false},
	    {"google-apis", "generativelanguage.googleapis.com", 443, true},
	    {"google-apis", "europe-west1-aiplatform.googleapis.com", 443, true},
	    {"google-apis", "oauth2.googleapis.com", 443, true},
	    {"google-apis", "accounts.google.com", 443, true},
	    {"google-apis", "www.google.com", 443, false},
	};
	bool tested[SHIPPED] = {false};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct snapshot *s = opened(&cases[i].preset, 1, "");
		enum reason reason = ask(s, cases[i].host, cases[i].port);

		if (reason != (cases[i].allowed ? REASON_ALLOWED : REASON_NO_RULE))
			fail_msg("%s: %s:%u is %s", cases[i].preset, cases[i].host, cases[i].port, reason_text(reason));
		for (size_t p = 0; p < SHIPPED; p++)
			tested[p] = tested[p] || strcmp(shipped[p], cases[i].preset) == 0;
		snapshot_free(s);
	}
	for (size_t p = 0; p < SHIPPED; p++)
		assert_true(tested[p] || strcmp(shipped[p], "doh-deny") == 0);
}

/* What the notes warn of is what the preset denies. */
static void
doh_deny_is_the_noted_list(void **state)
{
	static const char *const preset = "doh-deny";
	struct snapshot *s = opened(&preset, 1, "allow:\n  - host: google.com\n    subdomains: true\n");
	size_t count, doh = 0;
	const struct noted_name *rows = shared_noted_list(&count);

	(void)state;
	for (size_t i = 0; i < count; i++) {
		char below[NAME_TEXT_MAX];

		if (rows[i].kind != NOTED_DOH)
			continue;
		doh++;
		snprintf(below, sizeof(below), "made-up.%s", rows[i].name);
		if (ask(s, rows[i].name, 443) != REASON_RULE_DENY || ask(s, below, 443) != REASON_RULE_DENY)
			fail_msg("%s is noted and not denied", rows[i].name);
	}
	assert_int_equal(snapshot_rule_count(s), doh + 1);
	assert_int_equal(ask(s, "dns.google.com", 443), REASON_RULE_DENY);
	assert_int_equal(ask(s, "www.google.com", 443), REASON_ALLOWED);
	snapshot_free(s);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(the_list_is_what_is_shipped),
	    cmocka_unit_test(each_compiles_and_says_one_thing),
	    cmocka_unit_test(all_go_together),
	    cmocka_unit_test(documented_hosts_are_covered),
	    cmocka_unit_test(doh_deny_is_the_noted_list),
	};

	return cmocka_run_group_tests(tests, dirs_open, dirs_close);
}
