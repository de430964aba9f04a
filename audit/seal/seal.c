/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "audit/seal/seal.h"

#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Type of an Ed25519 key in key ids and verifier keys, c2sp.org/signed-note. */
#define SEAL_ALGORITHM 0x01
#define SEAL_ORIGIN "postern-audit/"
/* Em dash, UTF-8. */
#define SEAL_DASH "\xe2\x80\x94"
/* Bytes of key id and signature. */
#define SEAL_BLOB (4 + SEAL_SIGNATURE)
/* Longest base64 text in a note, NUL included. */
#define SEAL_BASE64_MAX 128

void
seal_key_identify(struct seal_key *key)
{
	uint8_t bytes[sizeof(SEAL_KEY_NAME) - 1 + 2 + SEAL_PUBLIC];
	uint8_t digest[SHA256_DIGEST_LENGTH];
	size_t len = sizeof(SEAL_KEY_NAME) - 1;

	memcpy(bytes, SEAL_KEY_NAME, len);
	bytes[len++] = '\n';
	bytes[len++] = SEAL_ALGORITHM;
	memcpy(bytes + len, key->public, SEAL_PUBLIC);
	SHA256(bytes, sizeof(bytes), digest);
	key->id = (uint32_t)digest[0] << 24 | (uint32_t)digest[1] << 16 | (uint32_t)digest[2] << 8 | digest[3];
}

void
seal_key_text(const struct seal_key *key, char ret_text[SEAL_KEY_TEXT_MAX])
{
	uint8_t bytes[1 + SEAL_PUBLIC] = {SEAL_ALGORITHM};
	char base64[SEAL_BASE64_MAX];

	memcpy(bytes + 1, key->public, SEAL_PUBLIC);
	EVP_EncodeBlock((unsigned char *)base64, bytes, sizeof(bytes));
	snprintf(ret_text, SEAL_KEY_TEXT_MAX, SEAL_KEY_NAME "+%08x+%.44s", key->id, base64);
}

/* Base64 of exactly want bytes. EVP_DecodeBlock counts padding as zero bytes and takes spaces at the ends: what it read
 * must look the same when written again. */
static bool
seal_decode(const char *text, size_t len, uint8_t *ret_bytes, size_t want)
{
	uint8_t bytes[SEAL_BASE64_MAX];
	char again[SEAL_BASE64_MAX];

	if (len != (want + 2) / 3 * 4 || len >= sizeof(bytes) ||
	    EVP_DecodeBlock(bytes, (const unsigned char *)text, (int)len) < (int)want)
		return false;
	EVP_EncodeBlock((unsigned char *)again, bytes, (int)want);
	if (memcmp(again, text, len) != 0)
		return false;
	memcpy(ret_bytes, bytes, want);
	return true;
}

int
seal_key_parse(const char *text, struct seal_key *ret_key, struct error *err)
{
	uint8_t bytes[1 + SEAL_PUBLIC];
	struct seal_key key;
	unsigned int id;
	int at = 0;

	text += strspn(text, " \t\r\n");
	if (sscanf(text, SEAL_KEY_NAME "+%8x+%n", &id, &at) != 1 || at == 0 ||
	    !seal_decode(text + at, strcspn(text + at, " \t\r\n"), bytes, sizeof(bytes)) || bytes[0] != SEAL_ALGORITHM)
		return error_set(err, ERROR_USAGE,
		    "not a verifier key: expected one line \"" SEAL_KEY_NAME "+ID+BASE64\", as in seal.key.pub");
	memcpy(key.public, bytes + 1, SEAL_PUBLIC);
	seal_key_identify(&key);
	if (key.id != id)
		return error_set(err, ERROR_USAGE, "the verifier key is damaged: its id is %08x, not %08x", key.id, id);
	*ret_key = key;
	return 0;
}

size_t
seal_text(const struct seal *seal, const char *log_id, char ret_text[SEAL_TEXT_MAX])
{
	time_t seconds = (time_t)(seal->ts_us / 1000000);
	char base64[SEAL_BASE64_MAX], when[32];
	struct tm tm;

	EVP_EncodeBlock((unsigned char *)base64, seal->head, CHAIN_DIGEST);
	if (gmtime_r(&seconds, &tm) == NULL || strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%S", &tm) == 0)
		snprintf(when, sizeof(when), "?");
	return (size_t)snprintf(ret_text, SEAL_TEXT_MAX,
	    SEAL_ORIGIN "%.32s\n%lld\n%.44s\nseal %lld from %lld at %s.%06dZ\n", log_id, (long long)seal->last_seq,
	    base64, (long long)seal->n, (long long)seal->first_seq, when, (int)(seal->ts_us % 1000000));
}

void
seal_note(const struct seal *seal, const char *log_id, char ret_note[SEAL_NOTE_MAX])
{
	uint8_t blob[SEAL_BLOB] = {(uint8_t)(seal->key_id >> 24), (uint8_t)(seal->key_id >> 16),
	    (uint8_t)(seal->key_id >> 8), (uint8_t)seal->key_id};
	char text[SEAL_TEXT_MAX], base64[SEAL_BASE64_MAX];

	memcpy(blob + 4, seal->signature, SEAL_SIGNATURE);
	EVP_EncodeBlock((unsigned char *)base64, blob, SEAL_BLOB);
	seal_text(seal, log_id, text);
	snprintf(ret_note, SEAL_NOTE_MAX, "%s\n" SEAL_DASH " " SEAL_KEY_NAME " %s\n", text, base64);
}

int
seal_sign(struct seal *seal, const char *log_id, const struct seal_signer *signer, struct error *err)
{
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	char text[SEAL_TEXT_MAX];
	size_t len, size = SEAL_SIGNATURE;
	bool ok;

	seal->key_id = signer->key.id;
	len = seal_text(seal, log_id, text);
	ok = ctx != NULL && EVP_DigestSignInit(ctx, NULL, NULL, NULL, signer->pkey) == 1 &&
	    EVP_DigestSign(ctx, seal->signature, &size, (const unsigned char *)text, len) == 1 &&
	    size == SEAL_SIGNATURE;
	EVP_MD_CTX_free(ctx);
	return ok ? 0 : error_set(err, ERROR_SYSTEM, "a seal of the audit log cannot be signed");
}

bool
seal_verify(const struct seal *seal, const char *log_id, const struct seal_key *key)
{
	EVP_PKEY *pkey = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, key->public, SEAL_PUBLIC);
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	char text[SEAL_TEXT_MAX];
	size_t len = seal_text(seal, log_id, text);
	bool ok;

	ok = seal->key_id == key->id && pkey != NULL && ctx != NULL &&
	    EVP_DigestVerifyInit(ctx, NULL, NULL, NULL, pkey) == 1 &&
	    EVP_DigestVerify(ctx, seal->signature, SEAL_SIGNATURE, (const unsigned char *)text, len) == 1;
	EVP_MD_CTX_free(ctx);
	EVP_PKEY_free(pkey);
	return ok;
}

/* "2026-11-29T10:00:00.123456" of a seal -> microseconds; -1 if it is none. */
static int64_t
seal_parse_time(const char *text)
{
	struct tm tm = {.tm_isdst = 0};
	int micros, at = 0;

	if (sscanf(text, "%4d-%2d-%2dT%2d:%2d:%2d.%6dZ%n", &tm.tm_year, &tm.tm_mon, &tm.tm_mday, &tm.tm_hour,
		&tm.tm_min, &tm.tm_sec, &micros, &at) != 7 ||
	    at == 0)
		return -1;
	tm.tm_year -= 1900;
	tm.tm_mon -= 1;
	return (int64_t)timegm(&tm) * 1000000 + micros;
}

int
seal_note_parse(const char *text, size_t len, struct seal *ret_seal, char ret_log_id[SEAL_LOG_ID_MAX], size_t *ret_used,
    struct error *err)
{
	char note[SEAL_NOTE_MAX], again[SEAL_NOTE_MAX], log_id[33], head[45], when[40], blob[93];
	struct seal seal = {.n = 0};
	uint8_t bytes[SEAL_BLOB];
	long long n, first, last;
	size_t used;

	snprintf(note, sizeof(note), "%.*s", (int)(len < sizeof(note) ? len : sizeof(note) - 1), text);
	if (sscanf(note,
		SEAL_ORIGIN "%32[0-9a-f]\n%lld\n%44[A-Za-z0-9+/=]\nseal %lld from %lld at %39[0-9TZ:.-]\n\n" SEAL_DASH
			    " " SEAL_KEY_NAME " %92[A-Za-z0-9+/=]",
		log_id, &last, head, &n, &first, when, blob) != 7 ||
	    !seal_decode(head, strlen(head), seal.head, CHAIN_DIGEST) ||
	    !seal_decode(blob, strlen(blob), bytes, SEAL_BLOB))
		return error_set(err, ERROR_USAGE, "not a seal");
	seal.n = n;
	seal.first_seq = first;
	seal.last_seq = last;
	seal.ts_us = seal_parse_time(when);
	seal.key_id = (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
	memcpy(seal.signature, bytes + 4, SEAL_SIGNATURE);
	/* One text for one seal: sscanf is lenient about spaces. */
	seal_note(&seal, log_id, again);
	used = strlen(again);
	if (seal.ts_us < 0 || used > len || memcmp(again, text, used) != 0)
		return error_set(err, ERROR_USAGE, "not a seal");
	*ret_seal = seal;
	memcpy(ret_log_id, log_id, sizeof(log_id));
	*ret_used = used;
	return 0;
}
