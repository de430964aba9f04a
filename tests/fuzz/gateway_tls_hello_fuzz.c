/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A guest's first bytes on a TLS port, whole and in pieces: the same answer, and never a name that is not canonical or
 * a fingerprint that is none. */
#include "gateway/path/tcp/tls_hello.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	if (tls_hello_setup() < 0)
		abort();
	return 0;
}

static enum tls_hello_status
feed(struct tls_hello *hello, const uint8_t *bytes, size_t len, size_t step)
{
	enum tls_hello_status status = TLS_HELLO_MORE;

	memset(hello, 0, sizeof(*hello));
	for (size_t at = 0; status == TLS_HELLO_MORE && at < len;) {
		at = at + step < len ? at + step : len;
		status = tls_hello_read(hello, bytes, at);
	}
	tls_hello_clear(hello);
	return status;
}

/* "t13d1516h2_8daaf6152771_e5627efa2ab1", or none for a hello with too long lists. */
static bool
is_fingerprint(const char *text)
{
	size_t len = strlen(text);

	return len == 0 ||
	    (len == JA4_LEN && text[0] == 't' && (text[3] == 'd' || text[3] == 'i') && text[10] == '_' &&
		text[23] == '_' && strspn(text + 4, "0123456789") >= 4 && strspn(text + 11, "0123456789abcdef") == 12 &&
		strspn(text + 24, "0123456789abcdef") == 12);
}

/* The first byte says how the rest is cut. */
int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct tls_hello whole, cut;
	struct name again;
	enum tls_hello_status status;

	if (len < 2 || len > TLS_HELLO_BUFFER_MAX)
		return 0;
	status = feed(&whole, bytes + 1, len - 1, len);
	if (feed(&cut, bytes + 1, len - 1, (size_t)bytes[0] + 1) != status)
		abort();
	if (status == TLS_HELLO_NOT_TLS || status == TLS_HELLO_MALFORMED)
		return whole.detail == NULL ? (abort(), 0) : 0;
	if (status != TLS_HELLO_DONE)
		return 0;
	if (whole.sni != cut.sni || whole.ech != cut.ech || memcmp(whole.alpn, cut.alpn, sizeof(whole.alpn)) != 0)
		abort();
	if (whole.sni == TLS_HELLO_SNI_NAME &&
	    (name_canonical(whole.name.text, whole.name.len, &again) != NAME_OK || !name_equal(&again, &whole.name)))
		abort();
	if (whole.version != cut.version || strcmp(whole.ja4, cut.ja4) != 0 || !is_fingerprint(whole.ja4))
		abort();
	if (whole.at > len - 1)
		abort();
	return 0;
}
