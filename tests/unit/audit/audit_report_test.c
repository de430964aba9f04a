/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The page: what it says, that nothing of the log becomes markup, and that it stays small. */
#include "audit_fixture.h"

#include "audit/query/open.h"
#include "audit/show/report.h"
#include "audit/show/report_html.h"
#include "audit/show/report_style.h"

#include <ctype.h>
#include <openssl/evp.h>
#include <openssl/sha.h>

/* The report of sandbox "task", that the caller frees. */
static char *
report_make(const struct report_options *more)
{
	struct report_options options = {.sandbox = "task", .now_us = FIXTURE_TS, .policy_why = "no policy here"};
	struct open_file file;
	struct error err;
	char *page = NULL;
	size_t size;
	FILE *out = open_memstream(&page, &size);

	if (more != NULL)
		options = *more;
	if (open_read_only(&file, fixture_db, &err) < 0 || report_write(out, file.db, &options, &err) < 0)
		fail_msg("%s", err.text);
	fclose(out);
	open_close(&file);
	return page;
}

static struct store *
report_store(void)
{
	struct store *store = fixture_open(NULL);
	struct record record = fixture_sandbox(FIXTURE_SANDBOX, "task");

	snprintf(record.sandbox.detail, sizeof(record.sandbox.detail),
	    "{\"labels\":{\"team\":\"<i>x</i>\"},\"parent\":{\"name\":\"mother\",\"id\":7}}");
	fixture_add(store, &record);
	return store;
}

static void
report_add(struct store *store, struct record record)
{
	fixture_add(store, &record);
}

/* Is each tag one of ours, and closed where it must be? */
static void
report_check_markup(const char *page)
{
	static const char *const tags[] = {"!DOCTYPE", "html", "head", "meta", "title", "style", "body", "a", "header",
	    "h1", "h2", "p", "br", "strong", "code", "nav", "ul", "li", "b", "main", "section", "figure", "figcaption",
	    "div", "svg", "desc", "g", "line", "text", "rect", "table", "caption", "thead", "tbody", "tr", "th", "td",
	    "time", "details", "summary", "pre", "footer", "span"};

	for (const char *at = strchr(page, '<'); at != NULL; at = strchr(at + 1, '<')) {
		const char *name = at + 1 + (at[1] == '/');
		size_t len = strcspn(name, " >/\n");
		bool known = false;

		for (size_t i = 0; i < sizeof(tags) / sizeof(tags[0]); i++)
			known |= strlen(tags[i]) == len && memcmp(tags[i], name, len) == 0;
		if (!known)
			fail_msg("a tag that is not ours: %.60s", at);
	}
	for (const char *at = page; *at != '\0'; at++)
		if (iscntrl((unsigned char)*at) && *at != '\n')
			fail_msg("a control byte: %02x before %.30s", *at, at + 1);
}

static void
test_it_says_what_is_in_the_log(void **state)
{
	struct store *store = report_store();
	struct record mark = fixture_event(3, EVENT_MARK, "{\"text\":\"step 37: click Export\"}");
	struct report_options options = {.sandbox_id = FIXTURE_SANDBOX,
	    .now_us = FIXTURE_TS,
	    .policy = "deny the never list\nallow *.github.com (p.yaml:4)\n",
	    .policy_id = FIXTURE_SANDBOX,
	    .verdict = "12 records, 1 seal",
	    .verified = true};
	char *page;

	(void)state;
	mark.event.sandbox = FIXTURE_SANDBOX;
	report_add(store, mark);
	report_add(store, fixture_flow(10, "api.github.com"));
	report_add(store, fixture_close(10));
	report_add(store, fixture_flow(11, "open.github.com"));
	report_add(store, fixture_denied(12, "evil.example", 12));
	report_add(store, fixture_dns(13, "abcdefgh.tunnel.example.co.uk", 29));
	fixture_commit(store);
	store_close(store);
	page = report_make(&options);
	assert_non_null(strstr(page, "<h1>Sandbox task</h1>"));
	assert_non_null(strstr(page, "step 37: click Export"));
	assert_non_null(strstr(page, "<td class=\"name\">api.github.com</td>"));
	assert_non_null(strstr(page, "<td class=\"name\">open.github.com</td>"));
	assert_non_null(strstr(page, "<td class=\"name\">evil.example</td>"));
	assert_non_null(strstr(page, "sni_mismatch"));
	assert_non_null(strstr(page, "<td class=\"name\">example.co.uk</td>"));
	assert_non_null(strstr(page, "5.4 MiB")); /* received */
	assert_non_null(strstr(page, "✓ Verified.</strong> 12 records, 1 seal"));
	assert_non_null(strstr(page, "allow *.github.com (p.yaml:4)\n"));
	assert_non_null(strstr(page, "clone of mother"));
	report_check_markup(page);
	free(page);

	/* Another sandbox's policy is not this one's. */
	options.policy_id = 1;
	options.policy_why = "not attached";
	options.verified = false;
	page = report_make(&options);
	assert_null(strstr(page, "p.yaml:4"));
	assert_non_null(strstr(page, "not attached"));
	assert_non_null(strstr(page, "✗ NOT VERIFIED."));
	free(page);
}

static void
test_case_F_30_nothing_of_the_log_becomes_markup(void **state)
{
	static const char name[] = "\"><script>alert(1)</script>\x1b[2J\xff\0&lt;'";
	struct store *store = report_store();
	struct record record = fixture_event(2, EVENT_MARK,
	    "{\"text\":\"<img src=x onerror=alert(1)> \\u202egnp.exe \\u0007 gr\\u00fc\\u00dfe \\ud83d\\ude00 "
	    "</pre>\"}");
	struct report_options options = {.sandbox = "task",
	    .now_us = FIXTURE_TS,
	    .policy = "</pre><script>\x1b",
	    .policy_id = FIXTURE_SANDBOX,
	    .verdict = "<b>'\"&"};
	char *page;

	(void)state;
	record.event.sandbox = FIXTURE_SANDBOX;
	report_add(store, record);
	record = fixture_denied(5, name, sizeof(name) - 1);
	snprintf(record.flow.rule, sizeof(record.flow.rule), "<svg/onload=x>");
	report_add(store, record);
	report_add(store, fixture_dns(6, name, sizeof(name) - 1));
	record = fixture_event(7, EVENT_POLICY, "{\"change\":\"</td><script>\"}");
	record.event.sandbox = FIXTURE_SANDBOX;
	report_add(store, record);
	fixture_commit(store);
	store_close(store);
	page = report_make(&options);
	report_check_markup(page);
	assert_null(strstr(page, "<script"));
	assert_null(strstr(page, "onerror=alert(1)>"));
	assert_null(strstr(page, "\xe2\x80\xae")); /* right-to-left override */
	assert_non_null(strstr(page, "\\u{202e}gnp.exe"));
	assert_non_null(strstr(page, "grüße 😀"));
	assert_non_null(strstr(page, "&quot;&gt;&lt;script&gt;alert(1)&lt;/script&gt;\\x1b[2J\\xff\\x00&amp;lt;&#39;"));
	assert_non_null(strstr(page, "&lt;i&gt;x&lt;/i&gt;"));
	free(page);
}

static void
test_the_policy_of_the_page_names_its_style_sheet(void **state)
{
	uint8_t digest[SHA256_DIGEST_LENGTH];
	char base64[64], want[160];
	const char *style, *end;
	struct store *store = report_store();
	char *page;

	(void)state;
	fixture_commit(store);
	store_close(store);
	page = report_make(NULL);
	style = strstr(page, "<style>") + strlen("<style>");
	end = strstr(style, "</style>");
	SHA256((const unsigned char *)style, (size_t)(end - style), digest);
	EVP_EncodeBlock((unsigned char *)base64, digest, sizeof(digest));
	snprintf(want, sizeof(want),
	    "content=\"default-src 'none'; style-src 'sha256-%s'; base-uri 'none'; form-action 'none'\"", base64);
	assert_non_null(strstr(page, want));
	assert_null(strstr(end, "style="));
	/* Where cells stand below each other, each has its column's title. */
	assert_non_null(strstr(style, "[aria-labelledby=allowed] td:nth-child(1)::before{content:\"Name\"}"));
	assert_non_null(strstr(style, "[aria-labelledby=last] td:nth-child(11)::before{content:\"Rule\"}"));
	assert_null(strstr(page, "http:"));
	assert_null(strstr(page, "https:"));
	free(page);
}

static void
test_a_long_log_makes_no_long_page(void **state)
{
	struct store *store = report_store();
	char *page;

	(void)state;
	for (uint64_t i = 1; i <= 20000; i++) {
		char name[64];

		snprintf(name, sizeof(name), "host-%u.example.org", (unsigned int)(i % 3000));
		report_add(store, i % 3 == 0 ? fixture_denied(i, name, strlen(name)) : fixture_flow(i, name));
		if (i % 1000 == 0)
			fixture_commit(store);
	}
	store_close(store);
	page = report_make(NULL);
	assert_true(strlen(page) < 1000000);
	assert_non_null(strstr(page, "There are more; 500 are shown."));
	assert_non_null(strstr(page, "all other names"));
	report_check_markup(page);
	free(page);
}

static void
test_an_unknown_sandbox_is_said_to_be_unknown(void **state)
{
	struct report_options options = {.sandbox = "nobody", .now_us = FIXTURE_TS, .policy_why = ""};
	struct store *store = report_store();
	struct open_file file;
	struct error err;
	FILE *out = fopen("/dev/null", "w");

	(void)state;
	fixture_commit(store);
	store_close(store);
	assert_int_equal(open_read_only(&file, fixture_db, &err), 0);
	assert_int_equal(report_write(out, file.db, &options, &err), -1);
	assert_int_equal(err.code, ERROR_NOT_FOUND);
	open_close(&file);
	fclose(out);
}

static char *
words(void (*write)(FILE *out, const char *text, size_t len), const char *text, size_t len)
{
	static char result[256];
	FILE *out = fmemopen(result, sizeof(result), "w");

	memset(result, 0, sizeof(result));
	write(out, text, len);
	fclose(out);
	return result;
}

static void
test_broken_utf8_is_shown_byte_by_byte(void **state)
{
	static const struct {
		const char *text, *want;
	} cases[] = {{"a\xc3\xa4z", "a\xc3\xa4z"}, {"\xc3", "\\xc3"}, {"\xc0\xaf", "\\xc0\\xaf"},
	    {"\xed\xa0\x80", "\\xed\\xa0\\x80"}, {"\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"},
	    {"\xe2\x80\x8b", "\\u{200b}"}, {"\xef\xbb\xbf", "\\u{feff}"}, {"\xf3\xa0\x81\x81", "\\u{e0041}"},
	    {"\xc2\x85", "\\u{85}"}, {"tab\tnul", "tab\\x09nul"}, {"back\\slash", "back\\x5cslash"}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_string_equal(words(report_html_utf8, cases[i].text, strlen(cases[i].text)), cases[i].want);
	assert_string_equal(words(report_html_bytes, "\xc3\xa4<&", 4), "\\xc3\\xa4&lt;&amp;");
}

#define REPORT_TEST(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    REPORT_TEST(test_it_says_what_is_in_the_log),
	    REPORT_TEST(test_case_F_30_nothing_of_the_log_becomes_markup),
	    REPORT_TEST(test_the_policy_of_the_page_names_its_style_sheet),
	    REPORT_TEST(test_a_long_log_makes_no_long_page),
	    REPORT_TEST(test_an_unknown_sandbox_is_said_to_be_unknown),
	    cmocka_unit_test(test_broken_utf8_is_shown_byte_by_byte),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
