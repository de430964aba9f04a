/* SPDX-License-Identifier: GPL-3.0-or-later */
/* ClientHellos of a real client and hand-made ones, whole and in pieces. */
#include "gateway/path/tcp/tls_hello.h"

#include <openssl/ssl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define BYTES_MAX 262144

struct bytes {
	uint8_t at[BYTES_MAX];
	size_t len;
};

static void
put(struct bytes *b, const void *bytes, size_t len)
{
	assert_true(b->len + len <= sizeof(b->at));
	if (len > 0)
		memcpy(b->at + b->len, bytes, len);
	b->len += len;
}

static void
put_u8(struct bytes *b, unsigned int value)
{
	uint8_t byte = (uint8_t)value;

	put(b, &byte, 1);
}

static void
put_u16(struct bytes *b, size_t value)
{
	put_u8(b, (unsigned int)(value >> 8 & 0xff));
	put_u8(b, (unsigned int)(value & 0xff));
}

static void
put_extension(struct bytes *b, unsigned int type, const void *bytes, size_t len)
{
	put_u16(b, type);
	put_u16(b, len);
	put(b, bytes, len);
}

/* A server_name extension of one entry. */
static void
put_sni(struct bytes *b, const char *name, size_t len)
{
	put_u16(b, 0);
	put_u16(b, len + 5);
	put_u16(b, len + 3);
	put_u8(b, 0);
	put_u16(b, len);
	put(b, name, len);
}

struct shape {
	unsigned int legacy_version; /* 0: TLS 1.2's */
	size_t ciphers;              /* 0: two */
	const struct bytes *extensions;
	bool no_extensions;
};

/* The handshake message, four bytes of head in front. */
static void
make_message(struct bytes *message, struct shape shape)
{
	static const uint8_t random[32] = {7};
	size_t ciphers = shape.ciphers == 0 ? 2 : shape.ciphers;
	size_t body;

	message->len = 0;
	put(message, "\1\0\0\0", 4);
	put_u16(message, shape.legacy_version == 0 ? 0x0303 : shape.legacy_version);
	put(message, random, sizeof(random));
	put_u8(message, 0);
	put_u16(message, ciphers * 2);
	for (size_t i = 0; i < ciphers; i++)
		put_u16(message, 0x1301 + i % 5);
	put(message, "\1\0", 2);
	if (!shape.no_extensions) {
		put_u16(message, shape.extensions->len);
		put(message, shape.extensions->at, shape.extensions->len);
	}
	body = message->len - 4;
	message->at[1] = (uint8_t)(body >> 16);
	message->at[2] = (uint8_t)(body >> 8);
	message->at[3] = (uint8_t)body;
}

/* Cut a message into records: the first of `first` bytes, the others of `size`. */
static void
put_records(struct bytes *b, const struct bytes *message, size_t first, size_t size)
{
	size_t n = first;

	for (size_t at = 0; at < message->len; at += n, n = size) {
		if (n > message->len - at)
			n = message->len - at;
		put_u8(b, 22);
		put_u16(b, 0x0301);
		put_u16(b, n);
		put(b, message->at + at, n);
	}
}

/* Feed all at once, or in steps of `step` bytes; DONE must come with the very last byte when trailing is 0. */
static enum tls_hello_status
feed(struct tls_hello *hello, const struct bytes *b, size_t step)
{
	enum tls_hello_status status = TLS_HELLO_MORE;
	size_t len = 0;

	memset(hello, 0, sizeof(*hello));
	while (status == TLS_HELLO_MORE && len < b->len) {
		len = len + step < b->len ? len + step : b->len;
		status = tls_hello_read(hello, b->at, len);
	}
	tls_hello_clear(hello);
	return status;
}

static void
make_simple(struct bytes *b, const char *name, size_t len)
{
	static struct bytes extensions, message;

	extensions.len = b->len = 0;
	put_sni(&extensions, name, len);
	make_message(&message, (struct shape){.extensions = &extensions});
	put_records(b, &message, 16384, 16384);
}

static int
setup(void **state)
{
	(void)state;
	return tls_hello_setup();
}

static int
teardown(void **state)
{
	(void)state;
	tls_hello_teardown();
	return 0;
}

/* What a client of OpenSSL's says. */
static void
client_hello(struct bytes *b, const char *sni, bool alpn, int version)
{
	SSL_CTX *context = SSL_CTX_new(TLS_client_method());
	BIO *in = BIO_new(BIO_s_mem()), *out = BIO_new(BIO_s_mem());
	char *data;
	long len;
	SSL *ssl;

	assert_non_null(context);
	if (version != 0)
		assert_int_equal(SSL_CTX_set_max_proto_version(context, version), 1);
	ssl = SSL_new(context);
	assert_non_null(ssl);
	SSL_set_bio(ssl, in, out);
	if (sni != NULL)
		assert_int_equal(SSL_set_tlsext_host_name(ssl, sni), 1);
	if (alpn)
		assert_int_equal(SSL_set_alpn_protos(ssl, (const unsigned char *)"\2h2\10http/1.1", 12), 0);
	assert_int_equal(SSL_connect(ssl), -1);
	len = BIO_get_mem_data(out, &data);
	b->len = 0;
	put(b, data, (size_t)len);
	SSL_free(ssl);
	SSL_CTX_free(context);
}

static void
real_client(void **state)
{
	static struct bytes b;
	struct tls_hello hello;

	(void)state;
	client_hello(&b, "WWW.Example.COM", true, 0);
	assert_int_equal(feed(&hello, &b, b.len), TLS_HELLO_DONE);
	assert_int_equal(hello.sni, TLS_HELLO_SNI_NAME);
	assert_string_equal(hello.name.text, "www.example.com");
	assert_string_equal(hello.alpn, "h2,http/1.1");
	assert_false(hello.ech);
	assert_int_equal(hello.legacy_version, 0x0303);
	assert_int_equal(hello.version, 0x0304);
	assert_memory_equal(hello.ja4, "t13d", 4);
	assert_memory_equal(hello.ja4 + 8, "h2_", 3);
	assert_int_equal(hello.at, b.len);

	client_hello(&b, "old.example.com", false, TLS1_2_VERSION);
	assert_int_equal(feed(&hello, &b, b.len), TLS_HELLO_DONE);
	assert_string_equal(hello.name.text, "old.example.com");
	assert_string_equal(hello.alpn, "");
	assert_int_equal(hello.version, 0x0303);
	assert_memory_equal(hello.ja4, "t12d", 4);
	assert_memory_equal(hello.ja4 + 8, "00_", 3);
}

static void
case_D_01_no_sni(void **state)
{
	static struct bytes b, message;
	struct tls_hello hello;

	(void)state;
	client_hello(&b, NULL, true, 0);
	assert_int_equal(feed(&hello, &b, b.len), TLS_HELLO_DONE);
	assert_int_equal(hello.sni, TLS_HELLO_SNI_NONE);
	assert_int_equal(hello.claim_len, 0);

	make_message(&message, (struct shape){.no_extensions = true});
	b.len = 0;
	put_records(&b, &message, 16384, 16384);
	assert_int_equal(feed(&hello, &b, b.len), TLS_HELLO_DONE);
	assert_int_equal(hello.sni, TLS_HELLO_SNI_NONE);
}

static void
case_D_03_split_over_segments(void **state)
{
	static struct bytes b;
	struct tls_hello hello;

	(void)state;
	client_hello(&b, "www.example.com", true, 0);
	for (size_t at = 1; at < b.len; at++) {
		memset(&hello, 0, sizeof(hello));
		assert_int_equal(tls_hello_read(&hello, b.at, at), TLS_HELLO_MORE);
		assert_int_equal(tls_hello_read(&hello, b.at, b.len), TLS_HELLO_DONE);
		assert_string_equal(hello.name.text, "www.example.com");
		tls_hello_clear(&hello);
	}
	for (size_t step = 1; step < 20; step++)
		assert_int_equal(feed(&hello, &b, step), TLS_HELLO_DONE);
}

static void
case_D_04_split_over_records(void **state)
{
	static struct bytes whole, message, b;
	struct tls_hello hello;

	(void)state;
	client_hello(&whole, "www.example.com", true, 0);
	put(&message, whole.at + 5, whole.len - 5);
	for (size_t first = 1; first < message.len; first++) {
		b.len = 0;
		put_records(&b, &message, first, 16384);
		assert_int_equal(feed(&hello, &b, b.len), TLS_HELLO_DONE);
		assert_string_equal(hello.name.text, "www.example.com");
		assert_string_equal(hello.alpn, "h2,http/1.1");
		assert_int_equal(feed(&hello, &b, 7), TLS_HELLO_DONE);
	}
	for (size_t size = 1; size < 12; size++) {
		b.len = 0;
		put_records(&b, &message, size, size);
		assert_int_equal(feed(&hello, &b, b.len), TLS_HELLO_DONE);
		assert_int_equal(feed(&hello, &b, 1), TLS_HELLO_DONE);
		assert_string_equal(hello.name.text, "www.example.com");
	}
	/* An empty record in between. */
	b.len = 0;
	put_records(&b, &message, 100, 16384);
	memmove(b.at + 5 + 100 + 5, b.at + 5 + 100, b.len - 5 - 100);
	memcpy(b.at + 5 + 100, "\x16\3\1\0\0", 5);
	b.len += 5;
	assert_int_equal(feed(&hello, &b, b.len), TLS_HELLO_MALFORMED);
	/* Another type of record in between. */
	b.at[5 + 100] = 20;
	b.at[5 + 100 + 4] = 1;
	assert_int_equal(feed(&hello, &b, b.len), TLS_HELLO_MALFORMED);
}

/* Extensions of padding, and ciphers, until the message is about as long as asked. */
static void
make_big(struct bytes *b, size_t len)
{
	static struct bytes extensions, message;
	static const uint8_t zeros[16384];
	struct shape shape = {.extensions = &extensions};

	extensions.len = 0;
	put_sni(&extensions, "big.example.com", 15);
	for (unsigned int type = 0x4000; extensions.len + 120 < len && extensions.len < 65000; type++) {
		size_t n = len - extensions.len - 100;

		n = n > 65000 - extensions.len ? 65000 - extensions.len : n;
		put_extension(&extensions, type, zeros, n > sizeof(zeros) ? sizeof(zeros) : n);
	}
	if (len > extensions.len + 200)
		shape.ciphers = (len - extensions.len - 60) / 2;
	make_message(&message, shape);
	b->len = 0;
	put_records(b, &message, 16384, 16384);
}

static void
case_D_05_big_hello(void **state)
{
	static const struct {
		size_t len;
		enum tls_hello_status status;
	} rows[] = {{2000, TLS_HELLO_DONE}, {16000, TLS_HELLO_DONE}, {17000, TLS_HELLO_DONE}, {60000, TLS_HELLO_DONE},
	    {65536, TLS_HELLO_DONE}, {69000, TLS_HELLO_DONE}, {70000, TLS_HELLO_MALFORMED},
	    {71680, TLS_HELLO_MALFORMED}};
	static struct bytes b;
	struct tls_hello hello;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		make_big(&b, rows[i].len);
		assert_in_range(b.len, rows[i].len - 200, rows[i].len + 200);
		assert_int_equal(feed(&hello, &b, b.len), rows[i].status);
		assert_int_equal(feed(&hello, &b, 1460), rows[i].status);
		if (rows[i].status == TLS_HELLO_DONE)
			assert_string_equal(hello.name.text, "big.example.com");
	}
	/* In records of one byte the same hello takes six times its bytes: the buffer's bound refuses it. */
	static struct bytes message, dribble;
	make_big(&b, 20000);
	put(&message, b.at + 5, 16384);
	put(&message, b.at + 16394, b.len - 16394);
	put_records(&dribble, &message, 1, 1);
	memset(&hello, 0, sizeof(hello));
	assert_int_equal(tls_hello_read(&hello, dribble.at, TLS_HELLO_BUFFER_MAX), TLS_HELLO_MORE);
	assert_int_equal(tls_hello_read(&hello, dribble.at, TLS_HELLO_BUFFER_MAX + 1), TLS_HELLO_MALFORMED);
	tls_hello_clear(&hello);
}

static void
case_D_06_more_than_one_name(void **state)
{
	static struct bytes extensions, message, b;
	struct tls_hello hello;

	(void)state;
	/* Two extensions, in both orders. */
	for (int order = 0; order < 2; order++) {
		extensions.len = b.len = 0;
		put_sni(&extensions, order == 0 ? "good.example.com" : "evil.example.com", 16);
		put_extension(&extensions, 35, NULL, 0);
		put_sni(&extensions, order == 0 ? "evil.example.com" : "good.example.com", 16);
		make_message(&message, (struct shape){.extensions = &extensions});
		put_records(&b, &message, 16384, 16384);
		assert_int_equal(feed(&hello, &b, b.len), TLS_HELLO_MALFORMED);
		assert_string_equal(hello.detail, "two server_name extensions");
	}
	/* Two entries in one. */
	extensions.len = b.len = 0;
	put_extension(&extensions, 0, "\0\x0c\0\0\3a.b\0\0\3c.d", 14);
	make_message(&message, (struct shape){.extensions = &extensions});
	put_records(&b, &message, 16384, 16384);
	assert_int_equal(feed(&hello, &b, b.len), TLS_HELLO_MALFORMED);
	assert_string_equal(hello.detail, "server_name extension holds more than one name");
	/* Any other extension twice, one that nobody knows too. */
	extensions.len = b.len = 0;
	put_sni(&extensions, "good.example.com", 16);
	put_extension(&extensions, 0x5a5b, "x", 1);
	put_extension(&extensions, 0x5a5b, "y", 1);
	make_message(&message, (struct shape){.extensions = &extensions});
	put_records(&b, &message, 16384, 16384);
	assert_int_equal(feed(&hello, &b, b.len), TLS_HELLO_MALFORMED);
}

static void
case_D_07_degenerate_sni(void **state)
{
	static const struct {
		const char *content;
		size_t len;
	} broken[] = {
	    {"", 0},                /* no list */
	    {"\0\0", 2},            /* empty list */
	    {"\0\3\0\0\0", 5},      /* name of length 0 */
	    {"\0\6\1\0\3a.b", 8},   /* type 1 */
	    {"\0\6\0\0\3a.b\0", 9}, /* bytes behind the list */
	    {"\0\7\0\0\3a.b\0", 9}, /* bytes behind the name */
	    {"\0\6\0\0\4a.b", 8},   /* name longer than the list */
	    {"\0\7\0\0\3a.b", 8},   /* list longer than the extension */
	    {"\0\6\0\0\2a.b", 8},   /* name shorter than the list */
	    {"\0", 1},
	};
	static const struct {
		const char *name;
		size_t len;
		const char *canonical; /* NULL: no host name */
	} names[] = {
	    {"Good.Example.COM", 16, "good.example.com"},
	    {"good.example.com.", 17, "good.example.com"},
	    {"xn--bcher-kva.example", 21, "xn--bcher-kva.example"},
	    {"good.example.com..", 18, NULL},
	    {".", 1, NULL},
	    {"good.example.com\0.evil.com", 26, NULL},
	    {"good.example.com:443", 20, NULL},
	    {"a b.example.com", 15, NULL},
	    {"b\xc3\xbc"
	     "cher.example",
		14, NULL},
	    {"*.example.com", 13, NULL},
	    {"1.2.3.4", 7, NULL},
	    {"::1", 3, NULL},
	    {"[::1]", 5, NULL},
	    {"0x7f.1", 6, NULL},
	};
	static struct bytes extensions, message, b;
	static char longest[300];
	struct tls_hello hello;

	(void)state;
	for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
		extensions.len = b.len = 0;
		put_extension(&extensions, 0, broken[i].content, broken[i].len);
		make_message(&message, (struct shape){.extensions = &extensions});
		put_records(&b, &message, 16384, 16384);
		assert_int_equal(feed(&hello, &b, b.len), TLS_HELLO_MALFORMED);
	}
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		make_simple(&b, names[i].name, names[i].len);
		assert_int_equal(feed(&hello, &b, b.len), TLS_HELLO_DONE);
		assert_int_equal(hello.sni, names[i].canonical == NULL ? TLS_HELLO_SNI_NOT_NAME : TLS_HELLO_SNI_NAME);
		if (names[i].canonical != NULL)
			assert_string_equal(hello.name.text, names[i].canonical);
		assert_int_equal(hello.claim_len, names[i].len);
		assert_memory_equal(hello.claim, names[i].name, names[i].len);
	}
	memset(longest, 'a', sizeof(longest));
	make_simple(&b, longest, sizeof(longest));
	assert_int_equal(feed(&hello, &b, b.len), TLS_HELLO_DONE);
	assert_int_equal(hello.sni, TLS_HELLO_SNI_NOT_NAME);
	assert_int_equal(hello.claim_len, TLS_HELLO_CLAIM_MAX);
}

static void
case_D_08_ech(void **state)
{
	static struct bytes extensions, message, b;
	struct tls_hello hello;

	(void)state;
	for (int outer = 0; outer < 2; outer++) {
		extensions.len = b.len = 0;
		put_extension(
		    &extensions, 0xfe0d, outer == 0 ? "\0\0\1\0\1\7\0\4abcd\0\4efgh" : "\1", outer == 0 ? 18 : 1);
		put_sni(&extensions, "cover.example.com", 17);
		make_message(&message, (struct shape){.extensions = &extensions});
		put_records(&b, &message, 16384, 16384);
		assert_int_equal(feed(&hello, &b, b.len), TLS_HELLO_DONE);
		assert_true(hello.ech);
		assert_string_equal(hello.name.text, "cover.example.com");
	}
}

static void
alpn_text(void **state)
{
	static const struct {
		const char *content;
		size_t len;
		const char *text; /* NULL: malformed */
	} rows[] = {
	    {"\0\3\2h2", 5, "h2"},
	    {"\0\6\2h2\2h3", 8, "h2,h3"},
	    {"\0\5\4a,b\n", 7, "a\\x2cb\\x0a"},
	    {"\0\0", 2, NULL},
	    {"\0\1\0", 3, NULL},
	    {"\0\3\3h2", 5, NULL},
	    {"\0\3\2h2x", 6, NULL},
	    {"", 0, NULL},
	};
	static struct bytes extensions, message, b;
	struct tls_hello hello;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		extensions.len = b.len = 0;
		put_extension(&extensions, 16, rows[i].content, rows[i].len);
		make_message(&message, (struct shape){.extensions = &extensions});
		put_records(&b, &message, 16384, 16384);
		assert_int_equal(feed(&hello, &b, b.len), rows[i].text == NULL ? TLS_HELLO_MALFORMED : TLS_HELLO_DONE);
		if (rows[i].text != NULL)
			assert_string_equal(hello.alpn, rows[i].text);
	}
	/* Longer than the record's field: cut, and still text. */
	extensions.len = b.len = 0;
	put_u16(&extensions, 16);
	put_u16(&extensions, 2 + 201);
	put_u16(&extensions, 201);
	put_u8(&extensions, 200);
	for (int i = 0; i < 200; i++)
		put_u8(&extensions, 1);
	make_message(&message, (struct shape){.extensions = &extensions});
	put_records(&b, &message, 16384, 16384);
	assert_int_equal(feed(&hello, &b, b.len), TLS_HELLO_DONE);
	assert_int_equal(strlen(hello.alpn), 60);
}

static void
case_D_12_nothing_behind_the_hello_is_read(void **state)
{
	static struct bytes b;
	struct tls_hello hello;
	size_t hello_len;

	(void)state;
	make_simple(&b, "good.example.com", 16);
	hello_len = b.len;
	put(&b, "\x17\3\3\0\4junk", 9); /* early data */
	put(&b, "garbage that is no record", 25);
	assert_int_equal(feed(&hello, &b, b.len), TLS_HELLO_DONE);
	assert_int_equal(hello.at, hello_len);
	/* A second handshake message in the hello's own record is none of that. */
	make_simple(&b, "good.example.com", 16);
	put(&b, "\1\0\0\0", 4);
	b.at[4] = (uint8_t)(b.at[4] + 4);
	assert_int_equal(feed(&hello, &b, b.len), TLS_HELLO_MALFORMED);
}

static void
case_D_13_ancient_hellos(void **state)
{
	static const unsigned int versions[] = {0x0002, 0x0200, 0x0300, 0x0100, 0x0403};
	static const char sslv2[] = "\x80\x2e\x01\x00\x02\x00\x15\x00\x00\x00\x10\x01\x00\x80";
	static struct bytes extensions, message, b;
	struct tls_hello hello;

	(void)state;
	put_sni(&extensions, "good.example.com", 16);
	for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
		make_message(&message, (struct shape){.legacy_version = versions[i], .extensions = &extensions});
		b.len = 0;
		put_records(&b, &message, 16384, 16384);
		assert_int_equal(feed(&hello, &b, b.len), TLS_HELLO_MALFORMED);
	}
	make_message(&message, (struct shape){.legacy_version = 0x0301, .extensions = &extensions});
	b.len = 0;
	put_records(&b, &message, 16384, 16384);
	assert_int_equal(feed(&hello, &b, b.len), TLS_HELLO_DONE);
	b.len = 0;
	put(&b, sslv2, sizeof(sslv2) - 1);
	assert_int_equal(feed(&hello, &b, 1), TLS_HELLO_NOT_TLS);
}

/* Also case B-25: what other protocols say first, on port 443. Each must be refused by its first bytes. */
static void
case_D_20_case_B_25_junk(void **state)
{
	static const struct {
		const char *bytes;
		size_t len;
		enum tls_hello_status status;
	} rows[] = {
	    {"\x15\3\1\0\2\2\x28", 7, TLS_HELLO_NOT_TLS},   /* alert */
	    {"\x17\3\3\0\5hello", 10, TLS_HELLO_NOT_TLS},   /* application data */
	    {"\x14\3\1\0\1\1", 6, TLS_HELLO_NOT_TLS},       /* change cipher spec */
	    {"\x18\3\2\0\3\1\x40\0", 8, TLS_HELLO_NOT_TLS}, /* heartbeat */
	    {"\x16\3\1\0\0", 5, TLS_HELLO_NOT_TLS},         /* empty record */
	    {"\x16\3\1\x41\1", 5, TLS_HELLO_NOT_TLS},       /* 16641 */
	    {"\x16\3\1\xff\xff", 5, TLS_HELLO_NOT_TLS},
	    {"\x16\3\1\x40\1", 5, TLS_HELLO_MALFORMED}, /* 16385: no plaintext record */
	    {"\x16\2\0\0\5", 5, TLS_HELLO_NOT_TLS}, {"\x16\4\0\0\5", 5, TLS_HELLO_NOT_TLS},
	    {"\x16\0", 2, TLS_HELLO_NOT_TLS}, {"\x16\xfe\xff\0\0", 5, TLS_HELLO_NOT_TLS}, /* DTLS */
	    {"\x16\3\1\0\5\2", 6, TLS_HELLO_MALFORMED},                                   /* ServerHello */
	    {"\x16\3\1\0\4\0\0\0\0", 9, TLS_HELLO_MALFORMED},                             /* HelloRequest */
	    {"\x16\3\1\0\4\1\0\0\0", 9, TLS_HELLO_MALFORMED},                             /* hello of nothing */
	    {"\x16\3\1\0\4\1\xff\xff\xff", 9, TLS_HELLO_MALFORMED},                       /* hello of 16 MiB */
	    {"\x16\3\1\0\4\1\1\x10\1", 9, TLS_HELLO_MALFORMED},                           /* hello of 69633 */
	    {"\x16\3\1\0\6\1\0\0\2\3\3", 11, TLS_HELLO_MALFORMED},                        /* hello of a version */
	    {"\x80\x2e\1\0\2", 5, TLS_HELLO_NOT_TLS},                                     /* SSLv2 */
	    {"GET / HTTP/1.1\r\n", 16, TLS_HELLO_NOT_TLS}, {"CONNECT a:443 HTTP/1.1\r\n", 24, TLS_HELLO_NOT_TLS},
	    {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 24, TLS_HELLO_NOT_TLS},
	    {"SSH-2.0-OpenSSH_9.2\r\n", 21, TLS_HELLO_NOT_TLS}, {"EHLO me\r\n", 9, TLS_HELLO_NOT_TLS},
	    {"PROXY TCP4 1.2.3.4 5.6.7.8 1 443\r\n", 34, TLS_HELLO_NOT_TLS},
	    {"\r\n\r\n\0\r\nQUIT\n", 12, TLS_HELLO_NOT_TLS},      /* PROXY version 2 */
	    {"\0\0\0\x08\x04\xd2\x16\x2f", 8, TLS_HELLO_NOT_TLS}, /* PostgreSQL SSLRequest */
	    {"\5\1\0", 3, TLS_HELLO_NOT_TLS},                     /* SOCKS 5 */
	    {"\4\1\1\xbb", 4, TLS_HELLO_NOT_TLS},                 /* SOCKS 4 */
	    {"*1\r\n$4\r\nPING\r\n", 14, TLS_HELLO_NOT_TLS},      /* Redis */
	    {"\x13"
	     "BitTorrent protocol",
		20, TLS_HELLO_NOT_TLS},
	    {"\0", 1, TLS_HELLO_NOT_TLS}, {"\xff\xfd\1", 3, TLS_HELLO_NOT_TLS}, /* telnet */
	    {"\x38\1\0\0\0\xfe", 6, TLS_HELLO_NOT_TLS},                         /* OpenVPN */
	};
	static struct bytes b;
	struct tls_hello hello;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		b.len = 0;
		put(&b, rows[i].bytes, rows[i].len);
		assert_int_equal(feed(&hello, &b, b.len), rows[i].status);
		assert_non_null(hello.detail);
		assert_int_equal(feed(&hello, &b, 1), rows[i].status);
	}
}

/* Every prefix of a hello is incomplete, and no change of a byte makes the reader fall over or find another host. */
static void
mutations_never_name_another_host(void **state)
{
	static struct bytes b;
	struct tls_hello hello;

	(void)state;
	make_simple(&b, "good.example.com", 16);
	for (size_t i = 0; i < b.len; i++)
		for (unsigned int bit = 0; bit < 8; bit++) {
			enum tls_hello_status status;

			b.at[i] ^= (uint8_t)(1u << bit);
			status = feed(&hello, &b, b.len);
			assert_int_equal(feed(&hello, &b, 3), status);
			if (status == TLS_HELLO_DONE && hello.sni == TLS_HELLO_SNI_NAME)
				assert_int_equal(hello.name.len, 16);
			b.at[i] ^= (uint8_t)(1u << bit);
		}
}

static void
too_many_extensions(void **state)
{
	static struct bytes extensions, message, b;
	struct tls_hello hello;

	(void)state;
	put_sni(&extensions, "good.example.com", 16);
	for (unsigned int i = 1; i < TLS_HELLO_EXTENSIONS_MAX; i++)
		put_extension(&extensions, 0x3000 + i, NULL, 0);
	make_message(&message, (struct shape){.extensions = &extensions});
	put_records(&b, &message, 16384, 16384);
	assert_int_equal(feed(&hello, &b, b.len), TLS_HELLO_DONE);
	put_extension(&extensions, 0x3000, NULL, 0);
	make_message(&message, (struct shape){.extensions = &extensions});
	b.len = 0;
	put_records(&b, &message, 16384, 16384);
	assert_int_equal(feed(&hello, &b, b.len), TLS_HELLO_MALFORMED);
}

/* Without the context nothing passes. */
static void
without_openssl_everything_is_refused(void **state)
{
	static struct bytes b;
	struct tls_hello hello;

	(void)state;
	make_simple(&b, "good.example.com", 16);
	tls_hello_teardown();
	assert_int_equal(feed(&hello, &b, b.len), TLS_HELLO_MALFORMED);
	assert_int_equal(tls_hello_setup(), 0);
	assert_int_equal(feed(&hello, &b, b.len), TLS_HELLO_DONE);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(real_client),
	    cmocka_unit_test(case_D_01_no_sni),
	    cmocka_unit_test(case_D_03_split_over_segments),
	    cmocka_unit_test(case_D_04_split_over_records),
	    cmocka_unit_test(case_D_05_big_hello),
	    cmocka_unit_test(case_D_06_more_than_one_name),
	    cmocka_unit_test(case_D_07_degenerate_sni),
	    cmocka_unit_test(case_D_08_ech),
	    cmocka_unit_test(alpn_text),
	    cmocka_unit_test(case_D_12_nothing_behind_the_hello_is_read),
	    cmocka_unit_test(case_D_13_ancient_hellos),
	    cmocka_unit_test(case_D_20_case_B_25_junk),
	    cmocka_unit_test(mutations_never_name_another_host),
	    cmocka_unit_test(too_many_extensions),
	    cmocka_unit_test(without_openssl_everything_is_refused),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
