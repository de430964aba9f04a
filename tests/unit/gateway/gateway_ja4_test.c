/* SPDX-License-Identifier: GPL-3.0-or-later */
/* JA4: the vectors of its description (technical_details/JA4.md), GREASE, and lists that are too long. */
#include "gateway/path/tcp/ja4.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#define WIRE_MAX (2 * (JA4_LIST_MAX + 64))

struct wire {
	uint8_t bytes[WIRE_MAX];
	size_t len;
};

static const uint16_t doc_ciphers[] = {0x1301, 0x1302, 0x1303, 0xc02b, 0xc02f, 0xc02c, 0xc030, 0xcca9, 0xcca8, 0xc013,
    0xc014, 0x009c, 0x009d, 0x002f, 0x0035};
static const uint16_t doc_extensions[] = {0x001b, 0x0000, 0x0033, 0x0010, 0x4469, 0x0017, 0x002d, 0x000d, 0x0005,
    0x0023, 0x0012, 0x002b, 0xff01, 0x000b, 0x000a, 0x0015};
static const uint16_t doc_signatures[] = {0x0403, 0x0804, 0x0401, 0x0503, 0x0805, 0x0501, 0x0806, 0x0601};
#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

static struct reader
wire(struct wire *w, const uint16_t *values, size_t count)
{
	w->len = 0;
	for (size_t i = 0; i < count; i++) {
		w->bytes[w->len++] = (uint8_t)(values[i] >> 8);
		w->bytes[w->len++] = (uint8_t)values[i];
	}
	return reader_make(w->bytes, w->len);
}

static struct ja4_hello
doc_hello(void)
{
	static struct wire ciphers, signatures;

	return (struct ja4_hello){.version = 0x0304,
	    .sni = true,
	    .ciphers = wire(&ciphers, doc_ciphers, COUNT(doc_ciphers)),
	    .extensions = doc_extensions,
	    .extension_count = COUNT(doc_extensions),
	    .signatures = wire(&signatures, doc_signatures, COUNT(doc_signatures)),
	    .alpn = reader_make("h2", 2)};
}

static void
expect(const struct ja4_hello *hello, const char *wanted)
{
	char text[JA4_MAX];

	assert_true(ja4_make(hello, text));
	assert_string_equal(text, wanted);
}

static void
the_description_s_example(void **state)
{
	struct ja4_hello hello = doc_hello();

	(void)state;
	expect(&hello, "t13d1516h2_8daaf6152771_e5627efa2ab1");
	hello.signatures = reader_make(NULL, 0);
	expect(&hello, "t13d1516h2_8daaf6152771_6d807ffa2a79");
}

static void
grease_counts_nowhere(void **state)
{
	static const uint16_t before[] = {0x1a1a}, after[] = {0xfafa, 0x0a0a};
	struct ja4_hello hello = doc_hello();
	struct wire ciphers = {.len = 0}, signatures = {.len = 0}, plain;
	uint16_t extensions[COUNT(doc_extensions) + 2] = {0x3a3a};

	(void)state;
	wire(&ciphers, before, 1);
	wire(&plain, doc_ciphers, COUNT(doc_ciphers));
	memcpy(ciphers.bytes + ciphers.len, plain.bytes, plain.len);
	hello.ciphers = reader_make(ciphers.bytes, ciphers.len + plain.len);
	memcpy(extensions + 1, doc_extensions, sizeof(doc_extensions));
	extensions[COUNT(doc_extensions) + 1] = 0xbaba;
	hello.extensions = extensions;
	hello.extension_count = COUNT(extensions);
	wire(&signatures, doc_signatures, COUNT(doc_signatures));
	wire(&plain, after, 2);
	memcpy(signatures.bytes + signatures.len, plain.bytes, plain.len);
	hello.signatures = reader_make(signatures.bytes, signatures.len + plain.len);
	expect(&hello, "t13d1516h2_8daaf6152771_e5627efa2ab1");
	assert_true(ja4_is_grease(0x0a0a));
	assert_false(ja4_is_grease(0x0a1a));
	assert_false(ja4_is_grease(0x1301));
}

static void
versions(void **state)
{
	static const struct {
		uint16_t version;
		const char *text;
	} rows[] = {{0x0304, "13"}, {0x0303, "12"}, {0x0302, "11"}, {0x0301, "10"}, {0x0300, "s3"}, {0x0305, "00"},
	    {0x7f1c, "00"}};
	struct ja4_hello hello = doc_hello();
	char text[JA4_MAX];

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		hello.version = rows[i].version;
		assert_true(ja4_make(&hello, text));
		assert_memory_equal(text + 1, rows[i].text, 2);
	}
}

static void
first_protocols(void **state)
{
	static const struct {
		const char *bytes;
		size_t len;
		const char *text;
	} rows[] = {{"h2", 2, "h2"}, {"http/1.1", 8, "h1"}, {"", 0, "00"}, {"a", 1, "aa"}, {"\xab", 1, "ab"},
	    {"\xab\xcd", 2, "ad"}, {"\x30\xab", 2, "3b"}, {"\x30\x31\xab\xcd", 4, "3d"}, {"\x30\xab\xcd\x31", 4, "01"},
	    {"a\0", 2, "60"}};
	struct ja4_hello hello = doc_hello();
	char text[JA4_MAX];

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		hello.alpn = reader_make(rows[i].bytes, rows[i].len);
		assert_true(ja4_make(&hello, text));
		assert_memory_equal(text + 8, rows[i].text, 2);
	}
}

static void
next_to_nothing(void **state)
{
	static const uint16_t sni_only[] = {0x0000, 0x0010}, grease[] = {0x2a2a};
	static struct wire ciphers;
	struct ja4_hello hello = {.version = 0x0303, .ciphers = wire(&ciphers, grease, 1)};

	(void)state;
	expect(&hello, "t12i000000_000000000000_000000000000");
	/* These two count, but are not hashed. */
	hello.sni = true;
	hello.extensions = sni_only;
	hello.extension_count = 2;
	expect(&hello, "t12d000200_000000000000_000000000000");
}

static void
long_lists(void **state)
{
	static uint16_t values[JA4_LIST_MAX + 1];
	static struct wire ciphers;
	struct ja4_hello hello = doc_hello();
	char text[JA4_MAX] = "unset";

	(void)state;
	for (size_t i = 0; i < COUNT(values); i++)
		values[i] = (uint16_t)(0x4000 + i);
	hello.ciphers = wire(&ciphers, values, JA4_LIST_MAX);
	assert_true(ja4_make(&hello, text));
	assert_memory_equal(text, "t13d9916h2_", 11);
	assert_int_equal(strlen(text), JA4_LEN);
	hello.ciphers = wire(&ciphers, values, JA4_LIST_MAX + 1);
	assert_false(ja4_make(&hello, text));
	assert_string_equal(text, "");
	hello = doc_hello();
	hello.extensions = values;
	hello.extension_count = COUNT(values);
	assert_false(ja4_make(&hello, text));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(the_description_s_example),
	    cmocka_unit_test(grease_counts_nowhere),
	    cmocka_unit_test(versions),
	    cmocka_unit_test(first_protocols),
	    cmocka_unit_test(next_to_nothing),
	    cmocka_unit_test(long_lists),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
