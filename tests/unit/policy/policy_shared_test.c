/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Whose names a rule lets in: public suffixes, providers' suffixes, look-alikes; and what gets a note only. */
#include "policy/names/lookalike.h"
#include "policy/text/policy.h"
#include "policy/names/shared.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define HEAD "version: 1\n"

static int
parse(const char *fmt, const char *host, struct policy_notes *notes, struct error *err)
{
	struct policy policy;
	char text[512];
	int result;

	snprintf(text, sizeof(text), fmt, host);
	result = policy_parse_noted(text, strlen(text), "p.yaml", &policy, notes, err);
	if (result == 0)
		policy_free(&policy);
	return result;
}

#define WILDCARD HEAD "allow:\n  - host: '*.%s'\n"
#define SUBTREE HEAD "allow:\n  - host: '%s'\n    subdomains: true\n"
#define WILDCARD_SHARED HEAD "allow:\n  - host: '*.%s'\n    shared: true\n"
#define SUBTREE_SHARED HEAD "allow:\n  - host: '%s'\n    subdomains: true\n    shared: true\n"
#define EXACT HEAD "allow:\n  - host: '%s'\n"
#define DENY HEAD "deny:\n  - host: '*.%s'\n"

static void
expect_refused(const char *fmt, const char *host, const char *says)
{
	struct error err = {.code = ERROR_NONE};

	if (parse(fmt, host, NULL, &err) == 0)
		fail_msg("%s was taken", host);
	assert_int_equal(err.code, ERROR_POLICY);
	if (strstr(err.text, says) == NULL || strncmp(err.text, "p.yaml:3:11: ", 13) != 0)
		fail_msg("%s: \"%s\" does not say \"%s\"", host, err.text, says);
}

static void
expect_taken(const char *fmt, const char *host)
{
	struct error err;

	if (parse(fmt, host, NULL, &err) < 0)
		fail_msg("%s: %s", host, err.text);
}

static void
case_B_07_public_suffixes_are_nobodys(void **state)
{
	static const char *const suffixes[] = {"co.uk", "org.uk", "com.au", "co.jp", "kawasaki.jp", "abc.kawasaki.jp",
	    "com.br", "foo.ck", "gov.cn", "k12.ca.us", "xn--fiqs8s", "com"};
	static const char *const dates[] = {"2020-01-01", "2100-01-01"};
	char date[SHARED_DATE_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
		const char *says = strchr(suffixes[i], '.') != NULL ? "public suffix" : "top-level domain";

		/* Saying that it is meant does not help. */
		expect_refused(WILDCARD, suffixes[i], says);
		expect_refused(WILDCARD_SHARED, suffixes[i], says);
		expect_refused(SUBTREE, suffixes[i], says);
		expect_refused(SUBTREE_SHARED, suffixes[i], says);
		expect_taken(DENY, suffixes[i]);
	}
	shared_list_date(date);
	assert_true(strcmp(date, dates[0]) > 0 && strcmp(date, dates[1]) < 0);
}

static void
case_B_07_providers_suffixes_are_many_peoples(void **state)
{
	static const char *const suffixes[] = {"github.io", "githubusercontent.com", "s3.amazonaws.com",
	    "amazonaws.com", "eu-west-1.compute.amazonaws.com", "bucket.s3.eu-west-1.amazonaws.com", "workers.dev",
	    "pages.dev", "blob.core.windows.net", "core.windows.net", "windows.net", "account.blob.core.windows.net",
	    "azureedge.net", "googleapis.com", "storage.googleapis.com", "bucket.storage.googleapis.com",
	    "googleusercontent.com", "r2.cloudflarestorage.com", "r2.dev", "vercel.app", "netlify.app", "herokuapp.com",
	    "cloudfront.net", "firebaseapp.com", "web.app", "appspot.com", "run.app", "hf.space", "gitlab.io",
	    "readthedocs.io", "digitaloceanspaces.com", "backblazeb2.com", "wasabisys.com", "azure.com",
	    "trycloudflare.com", "ngrok.io", "ngrok-free.app", "translate.goog"};

	(void)state;
	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
		expect_refused(WILDCARD, suffixes[i], "names of many parties");
		expect_refused(SUBTREE, suffixes[i], "shared: true");
		expect_taken(WILDCARD_SHARED, suffixes[i]);
		expect_taken(SUBTREE_SHARED, suffixes[i]);
		expect_taken(DENY, suffixes[i]);
	}
}

static void
case_B_07_what_one_party_has_is_fine(void **state)
{
	static const char *const hosts[] = {"example.co.uk", "a.example.co.uk", "github.com", "someone.github.io",
	    "x.someone.github.io", "debian.org", "mine.workers.dev", "mine.vercel.app", "city.kobe.jp", "www.ck",
	    "example", "docs.microsoft.com", "bbci.co.uk", "kyoto.example"};

	(void)state;
	for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++) {
		if (strchr(hosts[i], '.') == NULL)
			continue;
		expect_taken(WILDCARD, hosts[i]);
		expect_taken(SUBTREE, hosts[i]);
	}
	/* One name is one name, whatever lies below it. */
	expect_taken(EXACT, "github.io");
	expect_taken(EXACT, "co.uk");
	expect_taken(EXACT, "storage.googleapis.com");
}

static void
case_B_08_wildcards_in_odd_places(void **state)
{
	static const char *const odd[] = {"a*.x.example", "*x.example", "a.*.x.example", "**", "*.", "*.*", "*",
	    "**.x.example", "*.*.x.example", "x.*", "x.example.*", "x.*.example", "*a.x.example", "a*b.x.example",
	    "*.x*.example", ".*.x.example", "*..x.example", "*.x..example", "*.x.example*", "?.x.example",
	    "[a-z].x.example", "^x.example$", "x.example|y.example", "(x).example", "x+.example", "x{2}.example",
	    "\\\\*.x.example", ".*", "*.1.2.3.4", "*.2600::1", "*.0x7f000001", "*.[2600::1]", "%2a.x.example",
	    "*.x.example:443", "*.x.example/y", "\xef\xbc\x8a.x.example", "*\xef\xbc\x8ex.example"};

	(void)state;
	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		struct error err;
		struct rule rule;

		if (parse(EXACT, odd[i], NULL, &err) == 0)
			fail_msg("'%s' was taken from a file", odd[i]);
		if (strstr(odd[i], ":443") == NULL && rule_parse(RULE_ALLOW, odd[i], &rule, &err) == 0)
			fail_msg("'%s' was taken as a word", odd[i]);
	}
	assert_true(sizeof(odd) / sizeof(odd[0]) >= 30);
}

static void
look_alikes_are_refused(void **state)
{
	static const struct {
		const char *host;
		enum lookalike lookalike;
	} cases[] = {
	    {"g\xd0\xbe\xd0\xbegle.com", LOOKALIKE_LATIN_CYRILLIC},            /* gооgle, both o Cyrillic */
	    {"login.p\xd0\xb0ypal.com", LOOKALIKE_LATIN_CYRILLIC},             /* pаypal */
	    {"xn--ggle-55da.com", LOOKALIKE_LATIN_CYRILLIC},                   /* the first one's A-label */
	    {"example.co\xd0\xbc.net", LOOKALIKE_LATIN_CYRILLIC},              /* coм */
	    {"g\xce\xbfogle.com", LOOKALIKE_LATIN_GREEK},                      /* gοogle, omicron */
	    {"\xd0\xb0\xce\xbf.example", LOOKALIKE_CYRILLIC_GREEK},            /* аο */
	    {"\xd0\xb0\xd1\x80\xd1\x80\xd3\x8f\xd0\xb5.com", LOOKALIKE_WHOLE}, /* аррӏе */
	    {"b\xc3\xbc"
	     "cher.example",
		LOOKALIKE_NONE},
	    {"\xd0\xbf\xd1\x80\xd0\xb8\xd0\xbc\xd0\xb5\xd1\x80.example", LOOKALIKE_NONE},
	    {"\xd1\x81\xd0\xbe\xd1\x80.\xd1\x80\xd1\x84", LOOKALIKE_NONE}, /* сор.рф: the zone is Cyrillic as well */
	    {"\xe4\xbe\x8b\xe3\x81\x88.example", LOOKALIKE_NONE},
	    {"caf\xc3\xa9-24.example", LOOKALIKE_NONE},
	    {"plain.example", LOOKALIKE_NONE},
	    {"xn--.example", LOOKALIKE_NONE},
	    {"xn--999999999.example", LOOKALIKE_NONE},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct name name;
		char wildcard[256];

		assert_int_equal(name_from_user(cases[i].host, strlen(cases[i].host), &name), NAME_OK);
		if (lookalike_of(&name) != cases[i].lookalike)
			fail_msg("%s (%s): %s", cases[i].host, name.text, lookalike_text(lookalike_of(&name)));
		if (cases[i].lookalike == LOOKALIKE_NONE) {
			expect_taken(EXACT, cases[i].host);
			continue;
		}
		expect_refused(EXACT, cases[i].host, "can be taken for another");
		snprintf(wildcard, sizeof(wildcard), "sub.%s", cases[i].host);
		expect_refused(WILDCARD, wildcard, lookalike_text(cases[i].lookalike));
		/* To deny one is what it is good for. */
		expect_taken(DENY, cases[i].host);
	}
}

static void
expect_note(const char *fmt, const char *host, const char *says)
{
	struct policy_notes notes = {.notes = NULL};
	struct error err;

	if (parse(fmt, host, &notes, &err) < 0)
		fail_msg("%s: %s", host, err.text);
	for (size_t i = 0; i < notes.count; i++) {
		if (says != NULL && strstr(notes.notes[i].text, says) != NULL) {
			assert_int_equal(notes.notes[i].line, 3);
			assert_int_equal(notes.notes[i].column, 11);
			notes_free(&notes);
			return;
		}
	}
	if (says != NULL || notes.count > 0)
		fail_msg("%s: %s", host, notes.count == 0 ? "no note" : notes.notes[0].text);
	notes_free(&notes);
}

static void
case_B_06_half_a_pair_gets_a_note(void **state)
{
	(void)state;
	expect_note(WILDCARD, "x.example", "'*.x.example' does not cover x.example itself");
	expect_note(EXACT, "x.example", "'x.example' covers no name below it");
	expect_note(EXACT, "example.co.uk", "covers no name below it");
	expect_note(EXACT, "www.x.example", NULL);
	expect_note(SUBTREE, "x.example", NULL);
	expect_note(HEAD "allow:\n  - host: %s\n  - host: '*.x.example'\n", "x.example", NULL);
	expect_note(HEAD "allow:\n  - host: '*.a.x.example'\n  - host: %s\n    subdomains: true\n", "x.example", NULL);
	expect_note(HEAD "allow:\n  - host: %s\n  - host: www.x.example\n", "x.example", NULL);
	expect_note(HEAD "allow:\n  - host: %s\n  - host: www.y.example\n", "x.example", "covers no name below it");
	expect_note(HEAD "deny:\n  - host: '*.%s'\n", "x.example", NULL);
}

static void
case_B_26_shared_hosts_get_a_note(void **state)
{
	static const char *const hosts[] = {"github.com", "huggingface.co", "storage.googleapis.com",
	    "raw.githubusercontent.com", "gist.github.com", "docs.google.com", "pastebin.com", "webhook.site"};

	(void)state;
	for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++)
		expect_note(EXACT, hosts[i], "may be sent there");
	expect_note(WILDCARD, "google.com", "docs.google.com holds documents");
	expect_note(SUBTREE, "github.com", "github.com holds repositories");
	expect_note(HEAD "allow:\n  - host: %s\n    shared: true\n", "api.github.com", NULL);
	expect_note(HEAD "allow:\n  - host: %s\n    limits: {upload: 1MB}\n", "api.github.com", NULL);
	expect_note(HEAD "allow:\n  - host: %s\n    limits: {download: 1MB}\n", "api.github.com", "may be sent there");
	expect_note(HEAD "deny:\n  - host: %s\n", "github.com", NULL);
}

static void
case_B_28_names_that_embed_addresses_get_a_note(void **state)
{
	static const char *const hosts[] = {"10-0-0-1.nip.io", "127.0.0.1.sslip.io", "readme.localtest.me", "a.lvh.me"};

	(void)state;
	for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++)
		expect_note(EXACT, hosts[i], "whoever asks chooses where it leads");
	expect_note(WILDCARD, "nip.io", "names that hold any address");
	expect_note(EXACT, "notnip.io", "covers no name below it");
}

static void
doors_out_of_the_log_get_a_note(void **state)
{
	(void)state;
	expect_note(EXACT, "dns.google", "DNS over HTTPS");
	expect_note(EXACT, "mozilla.cloudflare-dns.com", "DNS over HTTPS (Cloudflare");
	expect_note(WILDCARD, "opendns.com", "opendns.com answers DNS over HTTPS");
	expect_note(EXACT, "cloudflare-ech.com", "hide where they go");
}

static void
notes_are_bounded(void **state)
{
	size_t size = 1 << 20, len;
	char *text = malloc(size);
	struct policy_notes notes = {.notes = NULL};
	struct policy policy;
	struct error err;

	(void)state;
	assert_non_null(text);
	len = (size_t)snprintf(text, size, HEAD "allow:\n");
	for (unsigned int i = 0; i < 1000; i++)
		len += (size_t)snprintf(text + len, size - len, "  - host: '*.x%u.example'\n", i);
	assert_int_equal(policy_parse_noted(text, len, "p.yaml", &policy, &notes, &err), 0);
	assert_int_equal(notes.count, POLICY_NOTES_MAX);
	assert_int_equal(notes.unshown, 1000 - POLICY_NOTES_MAX);
	notes_free(&notes);
	notes_free(&notes);
	/* Without a text there are no places. */
	notes_collect(&notes, &policy, NULL);
	assert_int_equal(notes.notes[0].line, 0);
	notes_free(&notes);
	policy_free(&policy);
	free(text);
}

static void
lists_are_sorted_and_canonical(void **state)
{
	size_t hosts, noted;
	const struct shared_host *rows = shared_host_list(&hosts);
	const struct noted_name *names = shared_noted_list(&noted);
	struct name name;

	(void)state;
	assert_true(hosts > 50 && noted > 40);
	for (size_t i = 0; i < hosts; i++) {
		assert_int_equal(name_canonical(rows[i].name, strlen(rows[i].name), &name), NAME_OK);
		assert_string_equal(name.text, rows[i].name);
		assert_true(i == 0 || strcmp(rows[i - 1].name, rows[i].name) <= 0);
		assert_true(rows[i].what[0] != '\0');
		if (rows[i].kind == SHARED_HOST)
			assert_non_null(shared_host_find(&name));
		else
			assert_int_not_equal(shared_span_of(&name, NULL), SHARED_SPAN_ONE);
	}
	for (size_t i = 0; i < noted; i++) {
		assert_int_equal(name_canonical(names[i].name, strlen(names[i].name), &name), NAME_OK);
		assert_ptr_equal(shared_noted_find(&name), &names[i]);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(case_B_07_public_suffixes_are_nobodys),
	    cmocka_unit_test(case_B_07_providers_suffixes_are_many_peoples),
	    cmocka_unit_test(case_B_07_what_one_party_has_is_fine),
	    cmocka_unit_test(case_B_08_wildcards_in_odd_places),
	    cmocka_unit_test(look_alikes_are_refused),
	    cmocka_unit_test(case_B_06_half_a_pair_gets_a_note),
	    cmocka_unit_test(case_B_26_shared_hosts_get_a_note),
	    cmocka_unit_test(case_B_28_names_that_embed_addresses_get_a_note),
	    cmocka_unit_test(doors_out_of_the_log_get_a_note),
	    cmocka_unit_test(notes_are_bounded),
	    cmocka_unit_test(lists_are_sorted_and_canonical),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
