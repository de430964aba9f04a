/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Seals: signatures that others can check, one text for one seal, keys in files; and what is no seal is refused. */
#include "audit/seal/seal.h"

#include "audit_fixture.h"

#include <sys/stat.h>

#define LOG_ID "0123456789abcdef0123456789abcdef"

static struct seal_signer signer;
static char key_path[PATH_MAX];

static int
seal_setup(void **state)
{
	struct error err;
	bool made;

	if (fixture_setup(state) < 0)
		return -1;
	snprintf(key_path, sizeof(key_path), "%s/seal.key", fixture_dir);
	return seal_signer_load(&signer, key_path, &made, &err) < 0 || !made ? -1 : 0;
}

static int
seal_teardown(void **state)
{
	seal_signer_free(&signer);
	return fixture_teardown(state);
}

static struct seal
seal_make(void)
{
	struct seal seal = {.n = 7, .first_seq = 1001, .last_seq = 2000, .ts_us = 1795996800000123};
	struct error err;

	memset(seal.head, 0xab, sizeof(seal.head));
	assert_int_equal(seal_sign(&seal, LOG_ID, &signer, &err), 0);
	return seal;
}

/* RFC 8032, 7.1, TEST 1: the signature of the empty message. */
static void
test_the_library_signs_as_rfc_8032_says(void **state)
{
	static const uint8_t secret[32] = {0x9d, 0x61, 0xb1, 0x9d, 0xef, 0xfd, 0x5a, 0x60, 0xba, 0x84, 0x4a, 0xf4, 0x92,
	    0xec, 0x2c, 0xc4, 0x44, 0x49, 0xc5, 0x69, 0x7b, 0x32, 0x69, 0x19, 0x70, 0x3b, 0xac, 0x03, 0x1c, 0xae, 0x7f,
	    0x60};
	static const uint8_t public[32] = {0xd7, 0x5a, 0x98, 0x01, 0x82, 0xb1, 0x0a, 0xb7, 0xd5, 0x4b, 0xfe, 0xd3, 0xc9,
	    0x64, 0x07, 0x3a, 0x0e, 0xe1, 0x72, 0xf3, 0xda, 0xa6, 0x23, 0x25, 0xaf, 0x02, 0x1a, 0x68, 0xf7, 0x07, 0x51,
	    0x1a};
	static const uint8_t expected[64] = {0xe5, 0x56, 0x43, 0x00, 0xc3, 0x60, 0xac, 0x72, 0x90, 0x86, 0xe2, 0xcc,
	    0x80, 0x6e, 0x82, 0x8a, 0x84, 0x87, 0x7f, 0x1e, 0xb8, 0xe5, 0xd9, 0x74, 0xd8, 0x73, 0xe0, 0x65, 0x22, 0x49,
	    0x01, 0x55, 0x5f, 0xb8, 0x82, 0x15, 0x90, 0xa3, 0x3b, 0xac, 0xc6, 0x1e, 0x39, 0x70, 0x1c, 0xf9, 0xb4, 0x6b,
	    0xd2, 0x5b, 0xf5, 0xf0, 0x59, 0x5b, 0xbe, 0x24, 0x65, 0x51, 0x41, 0x43, 0x8e, 0x7a, 0x10, 0x0b};
	EVP_PKEY *pkey = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, secret, sizeof(secret));
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	uint8_t signature[64], own[32];
	size_t size = sizeof(signature), own_size = sizeof(own);

	(void)state;
	assert_int_equal(EVP_PKEY_get_raw_public_key(pkey, own, &own_size), 1);
	assert_memory_equal(own, public, sizeof(own));
	assert_int_equal(EVP_DigestSignInit(ctx, NULL, NULL, NULL, pkey), 1);
	assert_int_equal(EVP_DigestSign(ctx, signature, &size, (const unsigned char *)"", 0), 1);
	assert_memory_equal(signature, expected, sizeof(signature));
	EVP_MD_CTX_free(ctx);
	EVP_PKEY_free(pkey);
}

static void
test_a_seal_is_signed_and_any_change_shows(void **state)
{
	struct seal seal = seal_make(), changed;

	(void)state;
	assert_true(seal_verify(&seal, LOG_ID, &signer.key));
	assert_false(seal_verify(&seal, "1123456789abcdef0123456789abcdef", &signer.key));
	changed = seal;
	changed.n++;
	assert_false(seal_verify(&changed, LOG_ID, &signer.key));
	changed = seal;
	changed.first_seq--;
	assert_false(seal_verify(&changed, LOG_ID, &signer.key));
	changed = seal;
	changed.last_seq++;
	assert_false(seal_verify(&changed, LOG_ID, &signer.key));
	changed = seal;
	changed.ts_us++;
	assert_false(seal_verify(&changed, LOG_ID, &signer.key));
	changed = seal;
	changed.head[31] ^= 1;
	assert_false(seal_verify(&changed, LOG_ID, &signer.key));
	changed = seal;
	changed.signature[0] ^= 1;
	assert_false(seal_verify(&changed, LOG_ID, &signer.key));
	changed = seal;
	changed.key_id ^= 1;
	assert_false(seal_verify(&changed, LOG_ID, &signer.key));
}

static void
test_the_note_is_as_documented(void **state)
{
	struct seal seal = seal_make();
	char note[SEAL_NOTE_MAX];
	const char *rest;

	(void)state;
	seal_note(&seal, LOG_ID, note);
	rest = "postern-audit/" LOG_ID "\n2000\nq6urq6urq6urq6urq6urq6urq6urq6urq6urq6urq6s=\n"
	       "seal 7 from 1001 at 2026-11-30T00:00:00.000123Z\n\n\xe2\x80\x94 postern ";
	assert_memory_equal(note, rest, strlen(rest));
	/* 68 bytes of key id and signature in base64, and the newline. */
	assert_int_equal(strlen(note), strlen(rest) + 92 + 1);
}

static void
test_a_note_reads_back(void **state)
{
	struct seal seal = seal_make(), read;
	char note[2 * SEAL_NOTE_MAX], log_id[SEAL_LOG_ID_MAX];
	struct error err;
	size_t used, len;

	(void)state;
	seal_note(&seal, LOG_ID, note);
	len = strlen(note);
	strcat(note, "\npostern-audit/");
	assert_int_equal(seal_note_parse(note, strlen(note), &read, log_id, &used, &err), 0);
	assert_int_equal(used, len);
	assert_string_equal(log_id, LOG_ID);
	assert_memory_equal(&read, &seal, sizeof(seal));
	assert_true(seal_verify(&read, log_id, &signer.key));
	/* Extremes. */
	seal.n = seal.first_seq = seal.last_seq = INT64_MAX;
	seal.ts_us = 253402300799999999; /* the end of year 9999 */
	seal_note(&seal, LOG_ID, note);
	assert_int_equal(seal_note_parse(note, strlen(note), &read, log_id, &used, &err), 0);
	assert_int_equal(read.last_seq, INT64_MAX);
	assert_int_equal(read.ts_us, seal.ts_us);
}

/* Each shortening, and each byte in another's place: an error, or another seal with one text of its own. */
static void
test_hostile_notes(void **state)
{
	static const char *const bad[] = {"", "\n", "postern-audit/\n", "postern-audit/" LOG_ID,
	    "postern-audit/" LOG_ID
	    "\n1\nAAAA\nseal 1 from 1 at 2026-11-30T00:00:00.000000Z\n\n\xe2\x80\x94 postern AAAA\n",
	    "other-audit/" LOG_ID "\n1\n"};
	struct seal seal = seal_make(), read;
	char note[SEAL_NOTE_MAX], again[SEAL_NOTE_MAX], log_id[SEAL_LOG_ID_MAX];
	struct error err;
	size_t used, len;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(seal_note_parse(bad[i], strlen(bad[i]), &read, log_id, &used, &err), -1);
	seal_note(&seal, LOG_ID, note);
	len = strlen(note);
	for (size_t i = 0; i < len; i++)
		assert_int_equal(seal_note_parse(note, i, &read, log_id, &used, &err), -1);
	for (size_t i = 0; i < len; i++) {
		for (unsigned int byte = 0; byte < 256; byte++) {
			char before = note[i];

			note[i] = (char)byte;
			if (byte != (uint8_t)before && seal_note_parse(note, len, &read, log_id, &used, &err) == 0) {
				assert_false(seal_verify(&read, log_id, &signer.key));
				seal_note(&read, log_id, again);
				assert_memory_equal(again, note, len);
			}
			note[i] = before;
		}
	}
}

static void
test_keys_as_text(void **state)
{
	char text[SEAL_KEY_TEXT_MAX], damaged[SEAL_KEY_TEXT_MAX + 8];
	struct seal_key key;
	struct error err;

	(void)state;
	seal_key_text(&signer.key, text);
	assert_memory_equal(text, "postern+", 8);
	assert_int_equal(strlen(text), 8 + 8 + 1 + 44);
	assert_int_equal(seal_key_parse(text, &key, &err), 0);
	assert_memory_equal(&key, &signer.key, sizeof(key));
	snprintf(damaged, sizeof(damaged), "  %s\r\n", text);
	assert_int_equal(seal_key_parse(damaged, &key, &err), 0);
	for (size_t i = 0; text[i] != '\0'; i++) {
		memcpy(damaged, text, sizeof(text));
		damaged[i] = damaged[i] == 'A' ? 'B' : 'A';
		/* A hexadecimal digit may be written either way. */
		if (seal_key_parse(damaged, &key, &err) == 0)
			assert_memory_equal(&key, &signer.key, sizeof(key));
		memcpy(damaged, text, i);
		damaged[i] = '\0';
		assert_int_equal(seal_key_parse(damaged, &key, &err), -1);
	}
}

static void
test_the_key_file(void **state)
{
	char text[SEAL_KEY_TEXT_MAX], line[SEAL_KEY_TEXT_MAX + 2] = "", path[PATH_MAX + 8];
	struct seal_signer again;
	struct error err;
	struct stat st;
	bool made;
	FILE *file;

	(void)state;
	assert_int_equal(stat(key_path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	snprintf(path, sizeof(path), "%s.pub", key_path);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0644);
	file = fopen(path, "r");
	assert_non_null(fgets(line, sizeof(line), file));
	fclose(file);
	seal_key_text(&signer.key, text);
	assert_memory_equal(line, text, strlen(text));
	/* The same key the next time. */
	assert_int_equal(seal_signer_load(&again, key_path, &made, &err), 0);
	assert_false(made);
	assert_memory_equal(&again.key, &signer.key, sizeof(again.key));
	seal_signer_free(&again);
	/* A file that is no key is left alone, and says so. */
	fixture_shell("echo nonsense > \"$DIR/seal.key\"");
	assert_int_equal(seal_signer_load(&again, key_path, &made, &err), -1);
	assert_non_null(strstr(err.text, "not an Ed25519 private key"));
	assert_null(again.pkey);
	fixture_shell("grep -q nonsense \"$DIR/seal.key\" && ! test -e \"$DIR/seal.key.new\"");
	/* Nor is one followed that is a link. */
	fixture_shell("cd \"$DIR\" && mv seal.key x && ln -s x seal.key");
	assert_int_equal(seal_signer_load(&again, key_path, &made, &err), -1);
	/* Moved away: a new one. */
	fixture_shell("cd \"$DIR\" && rm seal.key seal.key.pub");
	assert_int_equal(seal_signer_load(&again, key_path, &made, &err), 0);
	assert_true(made);
	assert_memory_not_equal(&again.key, &signer.key, sizeof(again.key));
	seal_signer_free(&again);
}

#define SEAL_TEST(test) cmocka_unit_test_setup_teardown(test, seal_setup, seal_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_the_library_signs_as_rfc_8032_says),
	    SEAL_TEST(test_a_seal_is_signed_and_any_change_shows),
	    SEAL_TEST(test_the_note_is_as_documented),
	    SEAL_TEST(test_a_note_reads_back),
	    SEAL_TEST(test_hostile_notes),
	    SEAL_TEST(test_keys_as_text),
	    SEAL_TEST(test_the_key_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
