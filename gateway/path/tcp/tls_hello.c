/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reading a ClientHello.
 *
 * Theory of operation. The bytes come as the guest cuts them: any TCP segments, any TLS records. A small walker takes
 * them as they come: it checks each record header as soon as its bytes are there (so that what is no TLS is refused at
 * once and not at the deadline), and puts the handshake message together over records. When the message is complete it
 * is parsed twice: by the walker, strictly, with the checked reader, and by OpenSSL through its client-hello callback,
 * fed with the very records the guest sent. Both must agree on what decides (server name, ECH, ALPN, version, ciphers);
 * otherwise some server may read another name than we did, and the hello is malformed.
 *
 * OpenSSL sees each hello once, whole: the SSL object lives for the length of one call and no connection that dribbles
 * costs more than its bytes. The callback answers RETRY, so the library never builds a reply; its write side is a null
 * BIO all the same. It hides extensions it does not know: 0xfe0d is registered as a custom one.
 *
 * A failure of the library (memory) counts as malformed: deny when in doubt. */
#include "gateway/path/tcp/tls_hello.h"

#include "base/escape.h"
#include "base/reader.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdlib.h>
#include <string.h>

#define TLS_RECORD_HANDSHAKE 22
#define TLS_RECORD_HEADER 5
/* RFC 8446 5.1: plaintext records carry at most 2^14 bytes; 256 more is what any record may have. */
#define TLS_RECORD_PLAIN_MAX 16384
#define TLS_RECORD_MAX (TLS_RECORD_PLAIN_MAX + 256)
#define TLS_HANDSHAKE_CLIENT_HELLO 1
#define TLS_VERSION_1_0 0x0301
#define TLS_EXTENSION_SNI 0
#define TLS_EXTENSION_SIGNATURES 13
#define TLS_EXTENSION_ALPN 16
#define TLS_EXTENSION_VERSIONS 43
#define TLS_EXTENSION_ECH 0xfe0d

/* An extension's content as the walker found it; bytes NULL when it was not there. */
struct tls_hello_extension {
	const uint8_t *bytes;
	size_t len;
};

/* What the walker found, for OpenSSL's side to compare with. */
struct tls_hello_walk {
	uint16_t legacy_version;
	struct tls_hello_extension session, ciphers;
	struct tls_hello_extension sni, alpn, ech;
	bool agreed; /* set by the callback */
	/* For the record only; the two parsers need not agree on these. */
	struct tls_hello_extension versions, signatures;
	uint16_t types[TLS_HELLO_EXTENSIONS_MAX]; /* of all extensions, in order */
	size_t type_count;
};

static SSL_CTX *tls_hello_context;

/* The smallest sound hello: TLS 1.2, one cipher, SNI "a.test". */
static const uint8_t tls_hello_sample[] = {0x16, 3, 1, 0, 62, 1, 0, 0, 58, 3, 3, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11,
    12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 0, 0, 2, 0xc0, 0x2f, 1, 0, 0, 15, 0,
    0, 0, 11, 0, 9, 0, 0, 6, 'a', '.', 't', 'e', 's', 't'};

/* Did both parsers find the same bytes, or both none? */
static bool
tls_hello_same(const struct tls_hello_extension *ours, bool theirs_found, const uint8_t *bytes, size_t len)
{
	if (ours->bytes == NULL || !theirs_found)
		return ours->bytes == NULL && !theirs_found;
	return ours->len == len && (len == 0 || memcmp(ours->bytes, bytes, len) == 0);
}

/* Likewise for an extension. */
static bool
tls_hello_same_extension(SSL *ssl, unsigned int type, const struct tls_hello_extension *ours)
{
	const unsigned char *bytes = NULL;
	size_t len = 0;
	bool found = SSL_client_hello_get0_ext(ssl, type, &bytes, &len) == 1;

	return tls_hello_same(ours, found, bytes, len);
}

/* OpenSSL has a whole hello: does it read what the walker read? RETRY stops the handshake here. */
static int
tls_hello_callback(SSL *ssl, int *alert, void *arg)
{
	struct tls_hello_walk *walk = SSL_get_app_data(ssl);
	const unsigned char *session = NULL, *ciphers = NULL;
	size_t session_len = SSL_client_hello_get0_session_id(ssl, &session);
	size_t ciphers_len = SSL_client_hello_get0_ciphers(ssl, &ciphers);

	(void)alert;
	(void)arg;
	walk->agreed = SSL_client_hello_isv2(ssl) == 0 &&
	    SSL_client_hello_get0_legacy_version(ssl) == walk->legacy_version &&
	    tls_hello_same(&walk->session, true, session, session_len) &&
	    tls_hello_same(&walk->ciphers, true, ciphers, ciphers_len) &&
	    tls_hello_same_extension(ssl, TLS_EXTENSION_SNI, &walk->sni) &&
	    tls_hello_same_extension(ssl, TLS_EXTENSION_ALPN, &walk->alpn) &&
	    tls_hello_same_extension(ssl, TLS_EXTENSION_ECH, &walk->ech);
	return SSL_CLIENT_HELLO_RETRY;
}

/* Never reached (the handshake stops before extensions are parsed), but a custom extension needs one. */
static int
tls_hello_parse_ech(SSL *ssl, unsigned int type, unsigned int context, const unsigned char *in, size_t in_len, X509 *x,
    size_t chain, int *alert, void *arg)
{
	(void)ssl;
	(void)type;
	(void)context;
	(void)in;
	(void)in_len;
	(void)x;
	(void)chain;
	(void)alert;
	(void)arg;
	return 1;
}

int
tls_hello_setup(void)
{
	struct tls_hello sample = {0};
	enum tls_hello_status status;
	SSL_CTX *context;

	if (tls_hello_context != NULL)
		return 0;
	context = SSL_CTX_new(TLS_server_method());
	if (context == NULL)
		return -ENOMEM;
	SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_client_hello_cb(context, tls_hello_callback, NULL);
	if (SSL_CTX_add_custom_ext(
		context, TLS_EXTENSION_ECH, SSL_EXT_CLIENT_HELLO, NULL, NULL, NULL, tls_hello_parse_ech, NULL) != 1) {
		SSL_CTX_free(context);
		return -ENOTSUP;
	}
	tls_hello_context = context;
	status = tls_hello_read(&sample, tls_hello_sample, sizeof(tls_hello_sample));
	tls_hello_clear(&sample);
	if (status != TLS_HELLO_DONE || sample.sni != TLS_HELLO_SNI_NAME) {
		tls_hello_teardown();
		return -ENOTSUP;
	}
	return 0;
}

void
tls_hello_teardown(void)
{
	SSL_CTX_free(tls_hello_context);
	tls_hello_context = NULL;
}

/* Notes why the hello is refused; returns status. */
static enum tls_hello_status
tls_hello_refuse(struct tls_hello *hello, enum tls_hello_status status, const char *detail)
{
	hello->detail = detail;
	return status;
}

/* Does OpenSSL, given the guest's own records, find a complete hello that says the same? */
static bool
tls_hello_confirm(struct tls_hello_walk *walk, const uint8_t *bytes, size_t len)
{
	SSL *ssl = tls_hello_context == NULL ? NULL : SSL_new(tls_hello_context);
	BIO *in = BIO_new_mem_buf(bytes, (int)len); /* len <= TLS_HELLO_BUFFER_MAX */
	BIO *out = BIO_new(BIO_s_null());
	bool asked = false;

	walk->agreed = false;
	if (ssl == NULL || in == NULL || out == NULL) {
		BIO_free(in);
		BIO_free(out);
		SSL_free(ssl);
		return false;
	}
	SSL_set_bio(ssl, in, out); /* takes both */
	SSL_set_app_data(ssl, walk);
	asked = SSL_get_error(ssl, SSL_accept(ssl)) == SSL_ERROR_WANT_CLIENT_HELLO_CB;
	SSL_free(ssl);
	ERR_clear_error();
	return asked && walk->agreed;
}

/* Takes the next len bytes; bytes is NULL when there are fewer. */
static struct tls_hello_extension
tls_hello_take(struct reader *r, size_t len)
{
	struct tls_hello_extension taken = {.bytes = reader_bytes(r, len), .len = len};

	return taken;
}

/* Notes an extension's type, and its bytes where they are of use. */
static void
tls_hello_keep_extension(struct tls_hello_walk *walk, uint16_t type, struct tls_hello_extension extension)
{
	walk->types[walk->type_count++] = type;
	if (type == TLS_EXTENSION_SNI)
		walk->sni = extension;
	else if (type == TLS_EXTENSION_ALPN)
		walk->alpn = extension;
	else if (type == TLS_EXTENSION_ECH)
		walk->ech = extension;
	else if (type == TLS_EXTENSION_VERSIONS)
		walk->versions = extension;
	else if (type == TLS_EXTENSION_SIGNATURES)
		walk->signatures = extension;
}

/* Walk the extensions: no type twice, known to anybody or not. Keeps those we need. NULL, or why not. */
static const char *
tls_hello_walk_extensions(struct tls_hello_walk *walk, struct reader *body)
{
	struct reader list = reader_sub(body, reader_u16(body));

	while (reader_left(&list) > 0) {
		uint16_t type = reader_u16(&list);
		struct tls_hello_extension extension = tls_hello_take(&list, reader_u16(&list));

		if (!reader_ok(&list))
			break;
		if (walk->type_count == TLS_HELLO_EXTENSIONS_MAX)
			return "too many extensions";
		for (size_t i = 0; i < walk->type_count; i++)
			if (walk->types[i] == type)
				return type == TLS_EXTENSION_SNI ? "two server_name extensions" : "an extension twice";
		tls_hello_keep_extension(walk, type, extension);
	}
	return reader_done(&list) ? NULL : "extensions run over their length";
}

/* RFC 8446 4.1.2, with nothing left over. NULL, or why not. */
static const char *
tls_hello_walk_body(struct tls_hello_walk *walk, struct reader body)
{
	const char *why = NULL;
	size_t compressions;

	walk->legacy_version = reader_u16(&body);
	reader_bytes(&body, 32);
	walk->session = tls_hello_take(&body, reader_u8(&body));
	walk->ciphers = tls_hello_take(&body, reader_u16(&body));
	compressions = reader_u8(&body);
	reader_bytes(&body, compressions);
	if (!reader_ok(&body))
		return "hello shorter than its fields";
	if (walk->legacy_version < TLS_VERSION_1_0)
		return "SSL 3.0 or older";
	if (walk->legacy_version >> 8 != 3)
		return "unknown legacy version";
	if (walk->session.len > 32 || walk->ciphers.len < 2 || walk->ciphers.len % 2 != 0 || compressions == 0)
		return "a field's length is out of range";
	if (reader_left(&body) > 0)
		why = tls_hello_walk_extensions(walk, &body);
	if (why == NULL && !reader_done(&body))
		why = "bytes behind the extensions";
	return why;
}

/* RFC 6066 3: exactly one entry of type host_name, every length exact. NULL, or why not. */
static const char *
tls_hello_set_sni(struct tls_hello *hello, const struct tls_hello_extension *extension)
{
	struct reader r = reader_make(extension->bytes, extension->len);
	struct reader list, name;
	uint8_t type;

	if (extension->bytes == NULL)
		return NULL;
	list = reader_sub(&r, reader_u16(&r));
	type = reader_u8(&list);
	name = reader_sub(&list, reader_u16(&list));
	if (!reader_done(&r) || !reader_ok(&list) || type != 0 || name.len == 0)
		return "server_name extension is not one host name";
	if (!reader_done(&list))
		return "server_name extension holds more than one name";
	hello->claim_len = name.len < sizeof(hello->claim) ? name.len : sizeof(hello->claim);
	memcpy(hello->claim, name.bytes, hello->claim_len);
	hello->sni =
	    name_canonical(name.bytes, name.len, &hello->name) == NAME_OK ? TLS_HELLO_SNI_NAME : TLS_HELLO_SNI_NOT_NAME;
	return NULL;
}

/* Append to the ALPN text; a comma within a protocol's name is escaped, so that the list reads one way. */
static void
tls_hello_add_alpn(struct tls_hello *hello, size_t *len, const struct reader *protocol)
{
	if (*len > 0 && *len + 1 < sizeof(hello->alpn))
		hello->alpn[(*len)++] = ',';
	for (size_t i = 0; i < protocol->len; i++) {
		char text[8] = "\\x2c";
		size_t text_len = 4;

		if (protocol->bytes[i] != ',')
			text_len = escape_terminal(protocol->bytes + i, 1, text, sizeof(text));
		if (*len + text_len >= sizeof(hello->alpn))
			break;
		memcpy(hello->alpn + *len, text, text_len);
		*len += text_len;
	}
	hello->alpn[*len] = '\0';
}

/* RFC 7301 3.1. NULL, or why not. */
static const char *
tls_hello_set_alpn(struct tls_hello *hello, const struct tls_hello_extension *extension)
{
	struct reader r = reader_make(extension->bytes, extension->len);
	struct reader list;
	size_t len = 0;

	if (extension->bytes == NULL)
		return NULL;
	list = reader_sub(&r, reader_u16(&r));
	if (!reader_done(&r) || reader_left(&list) == 0)
		return "ALPN extension is malformed";
	while (reader_left(&list) > 0) {
		struct reader protocol = reader_sub(&list, reader_u8(&list));

		if (!reader_ok(&list) || protocol.len == 0)
			return "ALPN extension is malformed";
		tls_hello_add_alpn(hello, &len, &protocol);
	}
	return NULL;
}

/* RFC 8446 4.2.1: what the client offers in supported_versions, else in the field that older ones have for it. A list
 * that is out of order is no reason to refuse what a server may well accept: as far as it can be read. */
static uint16_t
tls_hello_version(const struct tls_hello_walk *walk)
{
	struct reader r = reader_make(walk->versions.bytes, walk->versions.len);
	struct reader list = reader_sub(&r, reader_u8(&r));
	uint16_t highest = 0;

	while (reader_left(&list) >= 2) {
		uint16_t version = reader_u16(&list);

		if (!ja4_is_grease(version) && version > highest)
			highest = version;
	}
	return highest == 0 ? walk->legacy_version : highest;
}

/* What the record says of the client; nothing here decides. */
static void
tls_hello_fingerprint(struct tls_hello *hello, const struct tls_hello_walk *walk)
{
	struct reader signatures = reader_make(walk->signatures.bytes, walk->signatures.len);
	struct reader alpn = reader_make(walk->alpn.bytes, walk->alpn.len);
	struct reader protocols = reader_sub(&alpn, reader_u16(&alpn));
	struct ja4_hello said = {.sni = walk->sni.bytes != NULL,
	    .ciphers = reader_make(walk->ciphers.bytes, walk->ciphers.len),
	    .extensions = walk->types,
	    .extension_count = walk->type_count};

	said.version = hello->version = tls_hello_version(walk);
	said.signatures = reader_sub(&signatures, reader_u16(&signatures));
	said.alpn = reader_sub(&protocols, reader_u8(&protocols));
	(void)ja4_make(&said, hello->ja4);
}

/* The message is complete: parse it, twice. */
static enum tls_hello_status
tls_hello_finish(struct tls_hello *hello, const uint8_t *bytes)
{
	struct tls_hello_walk walk = {0};
	const char *why;

	if (hello->record_left > 0)
		return tls_hello_refuse(hello, TLS_HELLO_MALFORMED, "bytes behind the hello in its record");
	why = tls_hello_walk_body(&walk, reader_make(hello->message, hello->body_len));
	hello->legacy_version = walk.legacy_version;
	hello->ech = walk.ech.bytes != NULL;
	if (why == NULL)
		why = tls_hello_set_sni(hello, &walk.sni);
	if (why == NULL)
		why = tls_hello_set_alpn(hello, &walk.alpn);
	if (why == NULL && !tls_hello_confirm(&walk, bytes, hello->at))
		why = "two parsers disagree on the hello";
	if (why != NULL)
		return tls_hello_refuse(hello, TLS_HELLO_MALFORMED, why);
	tls_hello_fingerprint(hello, &walk);
	return TLS_HELLO_DONE;
}

/* What a first byte that starts no handshake record is likely to be. */
static const char *
tls_hello_guess(uint8_t first)
{
	if (first == 21)
		return "an alert instead of a hello";
	if (first == 20 || first == 23 || first == 24)
		return "a TLS record, but no handshake";
	if ((first & 0x80) != 0)
		return "an SSLv2 header or no TLS";
	if (first >= 'A' && first <= 'Z')
		return "plain text instead of TLS";
	return "first byte is no TLS record";
}

/* A record header, as far as it is there: MORE while incomplete, DONE when taken. */
static enum tls_hello_status
tls_hello_take_header(struct tls_hello *hello, struct reader r)
{
	bool first = hello->at == 0;
	enum tls_hello_status bad = first ? TLS_HELLO_NOT_TLS : TLS_HELLO_MALFORMED;
	size_t there = reader_left(&r);
	uint8_t type = reader_u8(&r), major = reader_u8(&r);
	size_t len;

	if (there > 0 && type != TLS_RECORD_HANDSHAKE)
		return tls_hello_refuse(hello, bad, first ? tls_hello_guess(type) : "another record within the hello");
	if (there > 1 && major != 3)
		return tls_hello_refuse(hello, bad, "record version is not TLS");
	if (there < TLS_RECORD_HEADER)
		return TLS_HELLO_MORE;
	reader_u8(&r);
	len = reader_u16(&r);
	if (len == 0 || len > TLS_RECORD_MAX)
		return tls_hello_refuse(hello, bad, len == 0 ? "empty record" : "record too long");
	if (len > TLS_RECORD_PLAIN_MAX)
		return tls_hello_refuse(hello, TLS_HELLO_MALFORMED, "record too long");
	hello->at += TLS_RECORD_HEADER;
	hello->record_left = len;
	return TLS_HELLO_DONE;
}

/* Handshake type and length are known: is it a hello, and how long? */
static enum tls_hello_status
tls_hello_take_head(struct tls_hello *hello)
{
	struct reader r = reader_make(hello->head, hello->taken);

	if (reader_u8(&r) != TLS_HANDSHAKE_CLIENT_HELLO)
		return tls_hello_refuse(hello, TLS_HELLO_MALFORMED, "a handshake message, but no ClientHello");
	if (hello->taken < sizeof(hello->head))
		return TLS_HELLO_MORE;
	hello->body_len = reader_u24(&r);
	if (hello->body_len == 0 || hello->body_len > TLS_HELLO_MESSAGE_MAX)
		return tls_hello_refuse(hello, TLS_HELLO_MALFORMED, "length of the hello is out of range");
	hello->message = malloc(hello->body_len);
	if (hello->message == NULL)
		return tls_hello_refuse(hello, TLS_HELLO_MALFORMED, "out of memory");
	return TLS_HELLO_MORE;
}

/* Take bytes of the current record: first the four of the head, then the body. */
static enum tls_hello_status
tls_hello_take_payload(struct tls_hello *hello, struct reader r)
{
	bool in_head = hello->taken < sizeof(hello->head);
	size_t want =
	    in_head ? sizeof(hello->head) - hello->taken : sizeof(hello->head) + hello->body_len - hello->taken;
	size_t n = reader_left(&r);

	if (n > hello->record_left)
		n = hello->record_left;
	if (n > want)
		n = want;
	if (in_head)
		memcpy(hello->head + hello->taken, reader_bytes(&r, n), n);
	else
		memcpy(hello->message + hello->taken - sizeof(hello->head), reader_bytes(&r, n), n);
	hello->taken += n;
	hello->at += n;
	hello->record_left -= n;
	return in_head ? tls_hello_take_head(hello) : TLS_HELLO_MORE;
}

enum tls_hello_status
tls_hello_read(struct tls_hello *hello, const uint8_t *bytes, size_t len)
{
	if (len > TLS_HELLO_BUFFER_MAX)
		return tls_hello_refuse(hello, TLS_HELLO_MALFORMED, "hello in too many records");
	while (hello->at < len) {
		struct reader r = reader_make(bytes, len);
		enum tls_hello_status status;

		reader_bytes(&r, hello->at);
		if (hello->record_left == 0) {
			status = tls_hello_take_header(hello, r);
			if (status != TLS_HELLO_DONE)
				return status;
			continue;
		}
		status = tls_hello_take_payload(hello, r);
		if (status != TLS_HELLO_MORE)
			return status;
		if (hello->message != NULL && hello->taken == sizeof(hello->head) + hello->body_len)
			return tls_hello_finish(hello, bytes);
	}
	return TLS_HELLO_MORE;
}

void
tls_hello_clear(struct tls_hello *hello)
{
	free(hello->message);
	hello->message = NULL;
}
