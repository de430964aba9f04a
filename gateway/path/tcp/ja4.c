/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "gateway/path/tcp/ja4.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define JA4_EXTENSION_SNI 0x0000
#define JA4_EXTENSION_ALPN 0x0010
/* Counts have two digits. */
#define JA4_COUNT_MAX 99
#define JA4_HASH_LEN 12
#define JA4_SHA256_BYTES 32
/* Extensions, "_", signature schemes: four digits and a separator each. */
#define JA4_TEXT_MAX (2 * JA4_LIST_MAX * 5 + 1)

/* Values without GREASE. */
struct ja4_list {
	uint16_t values[JA4_LIST_MAX];
	size_t count;
};

struct ja4_text {
	char bytes[JA4_TEXT_MAX];
	size_t len;
};

bool
ja4_is_grease(uint16_t value)
{
	return (value & 0x0f0f) == 0x0a0a && value >> 8 == (value & 0xff);
}

/* False when there is no room. */
static bool
ja4_list_add(struct ja4_list *list, uint16_t value)
{
	if (ja4_is_grease(value))
		return true;
	if (list->count == JA4_LIST_MAX)
		return false;
	list->values[list->count++] = value;
	return true;
}

/* Reads 16-bit values without GREASE. False: too many. */
static bool
ja4_list_read(struct ja4_list *list, struct reader wire)
{
	list->count = 0;
	while (reader_left(&wire) >= 2)
		if (!ja4_list_add(list, reader_u16(&wire)))
			return false;
	return true;
}

/* Order of values, for qsort. */
static int
ja4_compare(const void *left, const void *right)
{
	const uint16_t *a = left, *b = right;

	return (*a > *b) - (*a < *b);
}

/* Sorts the values. */
static void
ja4_list_sort(struct ja4_list *list)
{
	qsort(list->values, list->count, sizeof(list->values[0]), ja4_compare);
}

/* "1301,1302"; before: what stands before the first one. */
static void
ja4_text_add(struct ja4_text *text, const struct ja4_list *list, char before)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < list->count; i++) {
		char separator = i > 0 ? ',' : before;

		if (separator != '\0')
			text->bytes[text->len++] = separator;
		for (int shift = 12; shift >= 0; shift -= 4)
			text->bytes[text->len++] = digits[list->values[i] >> shift & 0xf];
	}
}

/* The first digits of the text's SHA-256; zeros for an empty one, so that "none" is seen as such. */
static bool
ja4_hash(const struct ja4_text *text, char ret_hash[JA4_HASH_LEN + 1])
{
	uint8_t digest[JA4_SHA256_BYTES];
	unsigned int len = sizeof(digest);

	if (text->len == 0) {
		memcpy(ret_hash, "000000000000", JA4_HASH_LEN + 1);
		return true;
	}
	if (EVP_Digest(text->bytes, text->len, digest, &len, EVP_sha256(), NULL) != 1)
		return false;
	for (size_t i = 0; i < JA4_HASH_LEN / 2; i++)
		snprintf(ret_hash + 2 * i, 3, "%02x", digest[i]);
	return true;
}

/* Two characters for a TLS version. */
static const char *
ja4_version(uint16_t version)
{
	switch (version) {
	case 0x0304:
		return "13";
	case 0x0303:
		return "12";
	case 0x0302:
		return "11";
	case 0x0301:
		return "10";
	case 0x0300:
		return "s3";
	default: /* on the wire: anything */
		return "00";
	}
}

/* Is the byte a letter or digit of ASCII? */
static bool
ja4_is_alphanumeric(uint8_t byte)
{
	return (byte >= '0' && byte <= '9') || (byte >= 'A' && byte <= 'Z') || (byte >= 'a' && byte <= 'z');
}

/* First and last character of the protocol; of its hexadecimal form when one of the two is no letter or digit. */
static void
ja4_alpn(struct reader protocol, char ret_pair[3])
{
	size_t len = reader_left(&protocol);
	const uint8_t *bytes = reader_bytes(&protocol, len);
	uint8_t first = len == 0 ? '0' : bytes[0], last = len == 0 ? '0' : bytes[len - 1];

	if (ja4_is_alphanumeric(first) && ja4_is_alphanumeric(last))
		snprintf(ret_pair, 3, "%c%c", first, last);
	else
		snprintf(ret_pair, 3, "%x%x", first >> 4, last & 0xf);
}

/* A count as it is printed: at most 99. */
static unsigned int
ja4_count(size_t count)
{
	return count < JA4_COUNT_MAX ? (unsigned int)count : JA4_COUNT_MAX;
}

/* The second part, and how many ciphers there are. */
static bool
ja4_ciphers(const struct ja4_hello *hello, char ret_hash[JA4_HASH_LEN + 1], size_t *ret_count)
{
	struct ja4_list list;
	struct ja4_text text = {.len = 0};

	if (!ja4_list_read(&list, hello->ciphers))
		return false;
	*ret_count = list.count;
	ja4_list_sort(&list);
	ja4_text_add(&text, &list, '\0');
	return ja4_hash(&text, ret_hash);
}

/* The third part, and how many extensions there are. Server name and ALPN count, but are not hashed: the same program
 * has the same hash wherever it goes. */
static bool
ja4_extensions(const struct ja4_hello *hello, char ret_hash[JA4_HASH_LEN + 1], size_t *ret_count)
{
	struct ja4_list list = {.count = 0}, signatures;
	struct ja4_text text = {.len = 0};
	size_t apart = 0;

	for (size_t i = 0; i < hello->extension_count; i++) {
		uint16_t type = hello->extensions[i];

		if (type == JA4_EXTENSION_SNI || type == JA4_EXTENSION_ALPN)
			apart++;
		else if (!ja4_list_add(&list, type))
			return false;
	}
	if (!ja4_list_read(&signatures, hello->signatures))
		return false;
	*ret_count = list.count + apart;
	ja4_list_sort(&list);
	ja4_text_add(&text, &list, '\0');
	if (text.len > 0)
		ja4_text_add(&text, &signatures, '_');
	return ja4_hash(&text, ret_hash);
}

bool
ja4_make(const struct ja4_hello *hello, char ret_text[JA4_MAX])
{
	char ciphers[JA4_HASH_LEN + 1], extensions[JA4_HASH_LEN + 1], alpn[3];
	size_t cipher_count, extension_count;

	ret_text[0] = '\0';
	if (!ja4_ciphers(hello, ciphers, &cipher_count) || !ja4_extensions(hello, extensions, &extension_count))
		return false;
	ja4_alpn(hello->alpn, alpn);
	snprintf(ret_text, JA4_MAX, "t%s%c%02u%02u%s_%s_%s", ja4_version(hello->version), hello->sni ? 'd' : 'i',
	    ja4_count(cipher_count), ja4_count(extension_count), alpn, ciphers, extensions);
	return true;
}
