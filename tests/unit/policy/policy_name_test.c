/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Host names: the canonical form, its refusals, and the never list of names against the CSV. */
#include "policy/names/name.h"

#include "policy/verdict.h"

#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

struct spelling {
	const char *text, *canonical; /* canonical NULL: an error */
	enum name_error error;
};

static void
expect(const char *text, size_t len, const char *canonical, enum name_error error)
{
	struct name name;
	enum name_error got = name_canonical(text, len, &name);

	if (got != error)
		fail_msg("'%s': %s, not %s", text, name_error_text(got), name_error_text(error));
	if (got != NAME_OK)
		return;
	assert_string_equal(name.text, canonical);
	assert_int_equal(name.len, strlen(canonical));
	for (size_t i = name.len; i < sizeof(name.text); i++)
		assert_int_equal(name.text[i], 0);
}

static void
expect_table(const struct spelling *table, size_t count)
{
	for (size_t i = 0; i < count; i++)
		expect(table[i].text, strlen(table[i].text), table[i].canonical, table[i].error);
}

static struct name
canonical(const char *text)
{
	struct name name;

	if (name_canonical(text, strlen(text), &name) != NAME_OK)
		fail_msg("'%s' is no name", text);
	return name;
}

static void
case_B_03_trailing_dot(void **state)
{
	static const struct spelling table[] = {
	    {"evil.com.", "evil.com", NAME_OK},
	    {"evil.com", "evil.com", NAME_OK},
	    {"ok.com..", NULL, NAME_EMPTY_LABEL},
	    {".ok.com", NULL, NAME_EMPTY_LABEL},
	    {"ok..com", NULL, NAME_EMPTY_LABEL},
	    {".", NULL, NAME_EMPTY},
	    {"..", NULL, NAME_EMPTY_LABEL},
	    {"", NULL, NAME_EMPTY},
	    {"com.", "com", NAME_OK},
	};

	(void)state;
	expect_table(table, sizeof(table) / sizeof(table[0]));
}

static void
case_B_04_case_without_locale(void **state)
{
	static const char *const locales[] = {"C", "tr_TR.UTF-8", "tr_TR", "az_AZ.UTF-8", ""};
	static const struct spelling table[] = {
	    {"EXAMPLE.COM", "example.com", NAME_OK},
	    {"eXample.com", "example.com", NAME_OK},
	    {"WIKIPEDIA.ORG", "wikipedia.org", NAME_OK},
	    {"I.i.I-I_I.Io", "i.i.i-i_i.io", NAME_OK},
	    /* dotless and dotted i of Turkish, in UTF-8 and in ISO 8859-9: no bytes of a name */
	    {"w\xc4\xb1kipedia.org", NULL, NAME_BAD_BYTE},
	    {"W\xc4\xb0KIPEDIA.ORG", NULL, NAME_BAD_BYTE},
	    {"w\xfdkipedia.org", NULL, NAME_BAD_BYTE},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(locales) / sizeof(locales[0]); i++) {
		setlocale(LC_ALL, locales[i]);
		expect_table(table, sizeof(table) / sizeof(table[0]));
	}
	setlocale(LC_ALL, "C");
}

static void
case_B_05_labels_are_compared_whole(void **state)
{
	static const struct {
		const char *name, *parent;
		bool below;
	} cases[] = {
	    {"a.example.com", "example.com", true},
	    {"a.b.example.com", "example.com", true},
	    {"example.com", "example.com", false},
	    {"notexample.com", "example.com", false},
	    {"example.com.evil.net", "example.com", false},
	    {"xexample.com", "example.com", false},
	    {"-example.com", "example.com", false},
	    {"example.co", "example.com", false},
	    {"a.example.co", "example.com", false},
	    {"a.example.comm", "example.com", false},
	    {"a-example.com", "example.com", false},
	    {"com", "example.com", false},
	    {"a.com", "com", true},
	    {"acom.org", "com", false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct name name = canonical(cases[i].name), parent = canonical(cases[i].parent);

		if (name_below(&name, &parent) != cases[i].below)
			fail_msg("%s below %s", cases[i].name, cases[i].parent);
		assert_int_equal(name_equal(&name, &parent), strcmp(cases[i].name, cases[i].parent) == 0);
	}
}

static void
case_B_10_every_byte_value(void **state)
{
	(void)state;
	for (unsigned int byte = 0; byte < 256; byte++) {
		char text[] = "a?b.example", expected[] = "a?b.example";
		uint8_t wire[] = "\3a?b\7example";
		bool in_set = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
		    (byte >= '0' && byte <= '9') || byte == '-' || byte == '_';
		struct name name;

		text[1] = (char)byte;
		wire[2] = (uint8_t)byte;
		expected[1] = (char)(byte >= 'A' && byte <= 'Z' ? byte + 32 : byte);
		expect(text, sizeof(text) - 1, expected, in_set || byte == '.' ? NAME_OK : NAME_BAD_BYTE);
		/* On the wire the dot is no separator but a byte of the label, and refused. */
		assert_int_equal(name_from_wire(wire, sizeof(wire), &name), in_set ? NAME_OK : NAME_BAD_BYTE);
	}
}

static void
case_B_11_nul_at_each_offset(void **state)
{
	static const char host[] = "evil.com.allowed.com";
	uint8_t wire[] = "\4evil\3com\7allowed\3com";
	struct name name;

	(void)state;
	for (size_t i = 0; i < sizeof(host) - 1; i++) {
		char text[sizeof(host)];

		memcpy(text, host, sizeof(host));
		text[i] = '\0';
		assert_int_equal(name_canonical(text, sizeof(host) - 1, &name), NAME_BAD_BYTE);
		assert_int_equal(name_from_user(text, sizeof(host) - 1, &name), NAME_BAD_BYTE);
	}
	assert_int_equal(name_canonical("a.com\0", 6, &name), NAME_BAD_BYTE);
	assert_int_equal(name_canonical("a.com\0.", 7, &name), NAME_BAD_BYTE);
	assert_int_equal(name_from_user("b\xc3\xbc\0.com", 8, &name), NAME_BAD_BYTE);
	for (size_t i = 0; i < sizeof(wire) - 1; i++) {
		uint8_t byte = wire[i];

		wire[i] = 0;
		assert_int_not_equal(name_from_wire(wire, sizeof(wire), &name), NAME_OK);
		wire[i] = byte;
	}
	assert_int_equal(name_from_wire(wire, sizeof(wire), &name), NAME_OK);
	assert_string_equal(name.text, host);
}

/* Labels of size bytes, joined by dots, cut to len. */
static void
long_name(char *text, size_t label, size_t len)
{
	for (size_t i = 0; i < len; i++)
		text[i] = (i + 1) % (label + 1) == 0 ? '.' : 'a';
	text[len] = '\0';
}

static void
case_B_13_lengths(void **state)
{
	static const struct {
		size_t label, len;
		enum name_error error;
	} cases[] = {
	    {63, 63, NAME_OK},
	    {64, 64, NAME_TOO_LONG},
	    {63, 127, NAME_OK},
	    {63, 253, NAME_OK},
	    {63, 254, NAME_TOO_LONG},
	    {63, 255, NAME_TOO_LONG},
	    {63, 300, NAME_TOO_LONG},
	    {1, 253, NAME_OK},
	    {1, 254, NAME_OK}, /* it ends in a dot, which is stripped */
	    {1, 255, NAME_TOO_LONG},
	};
	char text[400];
	struct name name;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		enum name_error got;

		long_name(text, cases[i].label, cases[i].len);
		got = name_canonical(text, cases[i].len, &name);
		if (got != cases[i].error)
			fail_msg("labels of %zu, %zu in all: %s", cases[i].label, cases[i].len, name_error_text(got));
	}
	memset(text, 'a', sizeof(text));
	assert_int_equal(name_canonical(text, sizeof(text), &name), NAME_TOO_LONG);
}

/* count labels of one byte on the wire; the length includes the root. */
static size_t
wire_of_single_bytes(uint8_t *wire, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		wire[2 * i] = 1;
		wire[2 * i + 1] = 'a';
	}
	wire[2 * count] = 0;
	return 2 * count + 1;
}

static void
case_B_13_wire_lengths(void **state)
{
	uint8_t wire[600], label[70] = {63};
	struct name name;

	(void)state;
	assert_int_equal(name_from_wire(wire, wire_of_single_bytes(wire, 127), &name), NAME_OK);
	assert_int_equal(name.len, 253);
	assert_int_equal(name_from_wire(wire, wire_of_single_bytes(wire, 128), &name), NAME_TOO_LONG);
	memset(label + 1, 'a', 64);
	label[64] = 0;
	assert_int_equal(name_from_wire(label, 65, &name), NAME_OK);
	label[0] = 64;
	label[64] = 'a';
	label[65] = 0;
	assert_int_equal(name_from_wire(label, 66, &name), NAME_TOO_LONG);
	/* compression pointers, missing root, bytes behind the root, no bytes at all */
	assert_int_not_equal(name_from_wire((const uint8_t *)"\1a\xc0\x0c", 4, &name), NAME_OK);
	assert_int_not_equal(name_from_wire((const uint8_t *)"\1a\1b", 4, &name), NAME_OK);
	assert_int_not_equal(name_from_wire((const uint8_t *)"\1a\0\0", 4, &name), NAME_OK);
	assert_int_not_equal(name_from_wire((const uint8_t *)"\1a\5bc", 5, &name), NAME_OK);
	assert_int_not_equal(name_from_wire((const uint8_t *)"", 0, &name), NAME_OK);
	assert_int_equal(name_from_wire((const uint8_t *)"\0", 1, &name), NAME_EMPTY);
}

static void
case_A_16_numbers_are_no_names(void **state)
{
	static const uint8_t wire[] = {3, '1', '2', '7', 1, '0', 1, '0', 1, '1', 0};
	static const char *const numeric[] = {"2130706433", "0x7f.1", "0x7f000001", "0177.0.0.1", "127.1", "010.8.8.8",
	    "1.2.3.4", "1.2.3.4.", "127.0.0.0x1", "0x", "0X7F.0X1", "a.b.1", "example.0x7f", "1.2.3.4.5", "999",
	    "example.com.443"};
	static const char *const names[] = {
	    "1.2.3.a", "0xg.com", "0x7f.com", "4chan.org", "1.1.1.1.example", "a.0y1", "3com", "127-1", "1e3", "0x_1"};
	struct name name;

	(void)state;
	for (size_t i = 0; i < sizeof(numeric) / sizeof(numeric[0]); i++) {
		expect(numeric[i], strlen(numeric[i]), NULL, NAME_NUMERIC);
		assert_int_equal(name_from_user(numeric[i], strlen(numeric[i]), &name), NAME_NUMERIC);
	}
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		expect(names[i], strlen(names[i]), names[i], NAME_OK);
	assert_int_equal(name_from_wire(wire, sizeof(wire), &name), NAME_NUMERIC);
}

static void
case_A_16_fullwidth_and_ideographic(void **state)
{
	/* U+FF11 and so on, U+3002, U+FF0E, U+FF61 */
	static const char *const numeric[] = {"\xef\xbc\x91\xef\xbc\x92\xef\xbc\x97.0.0.1",
	    "127\xe3\x80\x82"
	    "0\xe3\x80\x82"
	    "0\xe3\x80\x82"
	    "1",
	    "127\xef\xbc\x8e"
	    "1",
	    "\xef\xbc\x92\xef\xbc\x91\xef\xbc\x93\xef\xbc\x90\xef\xbc\x97\xef\xbc\x90\xef\xbc\x96\xef\xbc\x94\xef\xbc"
	    "\x93"
	    "\xef\xbc\x93",
	    "10\xef\xbd\xa1"
	    "1",
	    "\xef\xbc\x90\xef\xbd\x98\xef\xbc\x97\xef\xbd\x86.\xef\xbc\x91"};
	struct name name;

	(void)state;
	for (size_t i = 0; i < sizeof(numeric) / sizeof(numeric[0]); i++) {
		assert_int_equal(name_from_user(numeric[i], strlen(numeric[i]), &name), NAME_NUMERIC);
		assert_int_equal(name_canonical(numeric[i], strlen(numeric[i]), &name), NAME_BAD_BYTE);
	}
}

static void
names_as_people_type_them(void **state)
{
	static const struct {
		const char *text, *canonical; /* NULL: refused */
	} cases[] = {
	    {"b\xc3\xbc"
	     "cher.example",
		"xn--bcher-kva.example"},
	    {"B\xc3\x9c"
	     "CHER.example.",
		"xn--bcher-kva.example"},
	    {"fa\xc3\x9f.example", "xn--fa-hia.example"},
	    {"example\xe3\x80\x82"
	     "com",
		"example.com"},
	    {"\xef\xbd\x85xample.com", "example.com"},
	    {"xn--bcher-kva.example", "xn--bcher-kva.example"},
	    {"_srv.example.com", "_srv.example.com"},
	    {"*.example.com", NULL},
	    {"\xef\xbc\x8a.example.com", NULL}, /* fullwidth asterisk */
	    {"a\xef\xbc\x8f"
	     "b.com",
		NULL}, /* fullwidth slash */
	    {"a\xe2\x84\x80"
	     "b.com",
		NULL}, /* a/c as one character */
	    {"\xff.com", NULL},
	    {"\xc3.com", NULL},
	    {"\xc0\xae.com", NULL},     /* overlong dot */
	    {"\xed\xa0\x80.com", NULL}, /* half a surrogate pair */
	    {"caf\xc3\xa9.\xe3\x80\x82.com", NULL},
	};
	char text[2048];
	struct name name;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		enum name_error error = name_from_user(cases[i].text, strlen(cases[i].text), &name);

		if ((error == NAME_OK) != (cases[i].canonical != NULL))
			fail_msg("case %zu: %s", i, name_error_text(error));
		if (error == NAME_OK)
			assert_string_equal(name.text, cases[i].canonical);
	}
	for (size_t i = 0; i + 2 <= sizeof(text); i += 2)
		memcpy(text + i, "\xc3\xbc", 2);
	assert_int_equal(name_from_user(text, sizeof(text), &name), NAME_TOO_LONG);
	assert_int_equal(name_from_user(text, 1000, &name), NAME_TOO_LONG);
}

static bool
csv_matches(const char *row, const char *match, const char *name)
{
	size_t row_len = strlen(row), len = strlen(name);
	char padded[600], wanted[300];

	if (strcmp(match, "suffix") == 0)
		return len >= row_len && strcmp(name + len - row_len, row) == 0 &&
		    (len == row_len || name[len - row_len - 1] == '.');
	if (strcmp(match, "label") != 0)
		return strcmp(row, name) == 0;
	snprintf(padded, sizeof(padded), ".%s.", name);
	snprintf(wanted, sizeof(wanted), ".%s.", row);
	return strstr(padded, wanted) != NULL;
}

/* Whether any row of the CSV matches, by means of C strings alone. */
static bool
csv_refuses(const char *name)
{
	FILE *file = fopen("policy/names/names.csv", "r");
	char line[512];
	bool refused = strchr(name, '.') == NULL;

	assert_non_null(file);
	while (fgets(line, sizeof(line), file) != NULL) {
		char *row = strtok(line, ","), *match = strtok(NULL, ",");

		refused = refused || (strcmp(row, "name") != 0 && csv_matches(row, match, name));
	}
	fclose(file);
	return refused;
}

static void
expect_csv(const char *fmt, const char *row)
{
	char text[300];
	struct name name;

	snprintf(text, sizeof(text), fmt, row);
	name = canonical(text);
	if ((name_never(&name) != NULL) != csv_refuses(text))
		fail_msg("%s: the list and the CSV differ", text);
}

static void
case_A_23_every_row_and_its_neighbours(void **state)
{
	static const char *const shapes[] = {
	    "%s", "a.%s", "a.b.%s", "x%s", "%sx", "%s.com", "a.%s.com", "%s-x.com", "a-%s", "a.%s.b.c"};
	const struct never_name *list;
	size_t count;

	(void)state;
	list = name_never_list(&count);
	assert_true(count > 30);
	for (size_t i = 0; i < count; i++)
		for (size_t s = 0; s < sizeof(shapes) / sizeof(shapes[0]); s++)
			expect_csv(shapes[s], list[i].name);
}

static void
case_C_29_and_the_most_specific_row(void **state)
{
	static const struct {
		const char *name, *row; /* NULL: passes */
	} cases[] = {{"metadata.google.internal", "metadata.google.internal"}, {"x.google.internal", "internal"},
	    {"_dns.resolver.arpa", "resolver.arpa"}, {"use-application-dns.net", "use-application-dns.net"},
	    {"mask.icloud.com", "mask.icloud.com"}, {"wpad.corp.example", "wpad"}, {"metadata", "metadata"},
	    {"localhost", "localhost"}, {"a.localhost", "localhost"}, {"1.0.0.127.in-addr.arpa", "in-addr.arpa"},
	    {"github.com", NULL}, {"internal.example.com", NULL}, {"testing", "single-label names"},
	    {"kubernetes.default.svc", "kubernetes.default.svc"}, {"svc.example.com", NULL}, {"notlocal.com", NULL}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct name name = canonical(cases[i].name);
		const struct never_name *row = name_never(&name);

		if ((row != NULL) != (cases[i].row != NULL))
			fail_msg("%s: wrong answer", cases[i].name);
		if (row != NULL)
			assert_string_equal(row->name, cases[i].row);
	}
}

static void
every_error_and_reason_has_words(void **state)
{
	(void)state;
	for (unsigned int error = 0; error < NAME_ERROR_MAX; error++)
		assert_true(strlen(name_error_text((enum name_error)error)) > 5);
	for (unsigned int reason = 0; reason < REASON_MAX; reason++) {
		assert_string_not_equal(reason_text(reason), "?");
		for (unsigned int other = 0; other < reason; other++)
			assert_string_not_equal(reason_text(reason), reason_text(other));
		assert_true(strlen(reason_sentence(reason)) > 10);
		/* Extended DNS errors and 403 bodies are short. */
		assert_true(strlen(reason_sentence(reason)) < 80);
	}
	for (unsigned int verdict = 0; verdict < VERDICT_MAX; verdict++)
		assert_string_not_equal(verdict_text(verdict), "?");
	assert_string_equal(reason_text(REASON_MAX), "?");
	assert_string_equal(reason_text(12345), "?");
	assert_string_equal(verdict_text(VERDICT_MAX), "?");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(case_B_03_trailing_dot),
	    cmocka_unit_test(case_B_04_case_without_locale),
	    cmocka_unit_test(case_B_05_labels_are_compared_whole),
	    cmocka_unit_test(case_B_10_every_byte_value),
	    cmocka_unit_test(case_B_11_nul_at_each_offset),
	    cmocka_unit_test(case_B_13_lengths),
	    cmocka_unit_test(case_B_13_wire_lengths),
	    cmocka_unit_test(case_A_16_numbers_are_no_names),
	    cmocka_unit_test(case_A_16_fullwidth_and_ideographic),
	    cmocka_unit_test(names_as_people_type_them),
	    cmocka_unit_test(case_A_23_every_row_and_its_neighbours),
	    cmocka_unit_test(case_C_29_and_the_most_specific_row),
	    cmocka_unit_test(every_error_and_reason_has_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
