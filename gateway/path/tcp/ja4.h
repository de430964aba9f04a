/* SPDX-License-Identifier: GPL-3.0-or-later */
/* JA4: a fingerprint of the program behind a TLS ClientHello (github.com/FoxIO-LLC/ja4, technical_details/JA4.md; this
 * client part is BSD 3-Clause and free of patent claims, its siblings JA4S, JA4H, ... are not and have no place here).
 *
 * Three parts: what the hello is like ("t13d1516h2": TLS over TCP, version 1.3, a server name, 15 ciphers, 16
 * extensions, first protocol "h2"), a hash of its ciphers, and a hash of its extensions and signature schemes. Ciphers
 * and extensions are sorted first, since browsers shuffle them; GREASE values (RFC 8701) are left out everywhere, since
 * they are random. */
#ifndef POSTERN_GATEWAY_JA4_H
#define POSTERN_GATEWAY_JA4_H

#include "base/reader.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Length of every fingerprint, and room for it. */
#define JA4_LEN 36
#define JA4_MAX (JA4_LEN + 1)
/* Ciphers, extensions or signature schemes of one hello. IANA knows fewer than 400 of each; a hello that a guest made
 * larger to cost us time has no fingerprint. */
#define JA4_LIST_MAX 512

/* What of a sound hello counts. Lists are as on the wire, two bytes each. */
struct ja4_hello {
	uint16_t version; /* highest offered, as tls_hello.h has it */
	bool sni;         /* a server_name extension was there */
	struct reader ciphers;
	const uint16_t *extensions; /* all types, in order */
	size_t extension_count;
	struct reader signatures; /* of signature_algorithms; empty without one */
	struct reader alpn;       /* first protocol offered; empty without one */
};

/* RFC 8701: one of 0x0a0a, 0x1a1a, ... 0xfafa? */
bool ja4_is_grease(uint16_t value);

/* False (and "") for a list that is too long, and when the library fails. */
bool ja4_make(const struct ja4_hello *hello, char ret_text[JA4_MAX]);

#endif
