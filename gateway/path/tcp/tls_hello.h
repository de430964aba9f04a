/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a TLS ClientHello says of itself, read by two parsers that must agree; nothing is ever sent. */
#ifndef POSTERN_GATEWAY_TLS_HELLO_H
#define POSTERN_GATEWAY_TLS_HELLO_H

#include "audit/record.h"
#include "gateway/path/tcp/ja4.h"
#include "policy/names/name.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Longest handshake message. Extensions end at 64 KiB by their length field; beside them there is room for what a
 * client says in earnest, not for a cipher list of another 64 KiB (CASES D-05). */
#define TLS_HELLO_MESSAGE_MAX 69632
/* Bytes of the connection that may be held while the message is incomplete: the message and its record headers. */
#define TLS_HELLO_BUFFER_MAX 98304
/* Extensions of one hello; browsers send about twenty. Bounds the search for duplicates. */
#define TLS_HELLO_EXTENSIONS_MAX 256
/* SNI bytes kept for the record of a refusal. */
#define TLS_HELLO_CLAIM_MAX 255

enum tls_hello_status {
	TLS_HELLO_MORE = 0,  /* everything so far fits a ClientHello; it is not complete */
	TLS_HELLO_DONE,      /* complete, sound, and both parsers read the same: results are set */
	TLS_HELLO_NOT_TLS,   /* the bytes disprove TLS: detail is set */
	TLS_HELLO_MALFORMED, /* TLS by its first bytes, but broken or ambiguous: detail is set */
};

enum tls_hello_sni {
	TLS_HELLO_SNI_NONE = 0,
	TLS_HELLO_SNI_NAME,     /* one host name, canonical in name */
	TLS_HELLO_SNI_NOT_NAME, /* well-formed extension, but its bytes are no host name (an address, a NUL, ...) */
};

/* One hello being read. Start with a zeroed one; tls_hello_clear at the end. */
struct tls_hello {
	/* Progress of the walker. */
	size_t at;              /* bytes of the connection taken so far */
	size_t record_left;     /* bytes of the current record not taken yet */
	uint8_t head[4];        /* handshake type and length */
	uint8_t *message;       /* body of the handshake message; NULL until its length is known; owned */
	size_t taken, body_len; /* bytes of head and body so far; length of the body once head is complete */

	/* Results. */
	enum tls_hello_sni sni;
	struct name name;                   /* SNI_NAME */
	uint8_t claim[TLS_HELLO_CLAIM_MAX]; /* SNI as said, for a refusal's record; cut */
	size_t claim_len;
	bool ech;                   /* extension 0xfe0d was there, GREASE or real */
	char alpn[RECORD_ALPN_MAX]; /* "h2,http/1.1", escaped, cut */
	uint16_t legacy_version;
	uint16_t version;   /* DONE: highest version offered, as on the wire; GREASE does not count */
	char ja4[JA4_MAX];  /* DONE: fingerprint of the client, or "" (gateway/path/tcp/ja4.h) */
	const char *detail; /* static text; why it was refused */
};

/* Make the SSL context that all hellos share and read one built-in hello with it, so that nothing is loaded from files
 * later and a library that behaves otherwise is noticed at the start. Call before confinement; further calls do
 * nothing. Returns 0 or -errno. */
int tls_hello_setup(void);
/* For tests that look for leaks. */
void tls_hello_teardown(void);

/* Read on. bytes are all bytes of the connection since its first one (the caller keeps them; nothing before the end of
 * the last call may have changed), len at most TLS_HELLO_BUFFER_MAX. What follows the hello is not looked at. After any
 * answer but MORE do not call again. */
enum tls_hello_status tls_hello_read(struct tls_hello *hello, const uint8_t *bytes, size_t len);

/* Free what reading took; the results stay. */
void tls_hello_clear(struct tls_hello *hello);

#endif
