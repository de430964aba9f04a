/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Seals: the head of the chain, signed with Ed25519, at least each SEAL_LINKS links and each SEAL_INTERVAL_S seconds in
 * which something was added. A seal that was taken elsewhere proves what the log said then.
 *
 * A seal travels as a signed note (c2sp.org/signed-note), so that others' programs can check it too:
 *
 *   postern-audit/LOG-ID
 *   LAST-SEQ
 *   BASE64 OF THE HEAD
 *   seal N from FIRST-SEQ at RFC-3339-TIME
 *
 *   — postern BASE64 OF KEY ID AND SIGNATURE
 *
 * which is also a checkpoint by its first three lines (c2sp.org/tlog-checkpoint), of a chain instead of a tree. */
#ifndef POSTERN_AUDIT_SEAL_H
#define POSTERN_AUDIT_SEAL_H

#include "audit/seal/chain.h"
#include "base/error.h"

#include <openssl/evp.h>
#include <stdbool.h>
#include <stdint.h>

/* Links after which a seal is due: damage is located to within that many changes. */
#define SEAL_LINKS 1000
/* Seconds after which new links are sealed: at most that much of the newest log is not. */
#define SEAL_INTERVAL_S 10

#define SEAL_PUBLIC 32     /* bytes of an Ed25519 public key, RFC 8032 */
#define SEAL_SIGNATURE 64  /* bytes of a signature */
#define SEAL_LOG_ID_MAX 40 /* 32 hex digits and the NUL */
#define SEAL_TEXT_MAX 256
#define SEAL_NOTE_MAX 512
/* Name under which keys sign. */
#define SEAL_KEY_NAME "postern"

struct seal {
	int64_t n; /* from 1, without holes */
	int64_t first_seq, last_seq;
	int64_t ts_us;
	uint8_t head[CHAIN_DIGEST];
	uint32_t key_id;
	uint8_t signature[SEAL_SIGNATURE];
};

/* A public key: what verifies. */
struct seal_key {
	uint32_t id; /* as signed notes name it: first four bytes of a SHA-256 over name, type and key */
	uint8_t public[SEAL_PUBLIC];
};

/* The private half, in the auditor only. */
struct seal_signer {
	EVP_PKEY *pkey; /* NULL: none */
	struct seal_key key;
};

/* Read the PEM file (PKCS #8), or make a key and the file (mode 0600) if there is none; beside it, at path.pub, the
 * public key in one line as seal_key_text. Synced before it returns. 0 or -1. */
int seal_signer_load(struct seal_signer *signer, const char *path, bool *ret_made, struct error *err);
void seal_signer_free(struct seal_signer *signer);

/* Sets key_id and signature of a seal that is otherwise complete. 0 or -1. */
int seal_sign(struct seal *seal, const char *log_id, const struct seal_signer *signer, struct error *err);
/* Is it signed by this key? */
bool seal_verify(const struct seal *seal, const char *log_id, const struct seal_key *key);

/* The signed text: four lines. Returns its length. */
size_t seal_text(const struct seal *seal, const char *log_id, char ret_text[SEAL_TEXT_MAX]);
/* The whole note. */
void seal_note(const struct seal *seal, const char *log_id, char ret_note[SEAL_NOTE_MAX]);
/* Read one note that seal_note wrote, at most len bytes at text. 0, and *ret_used bytes were of it; or -1. */
int seal_note_parse(const char *text, size_t len, struct seal *ret_seal, char ret_log_id[SEAL_LOG_ID_MAX],
    size_t *ret_used, struct error *err);

/* A verifier key: "postern+5d3c1a70+BASE64", without newline. */
#define SEAL_KEY_TEXT_MAX 80
void seal_key_text(const struct seal_key *key, char ret_text[SEAL_KEY_TEXT_MAX]);
/* Of such a line (spaces around it do not count). 0 or -1. */
int seal_key_parse(const char *text, struct seal_key *ret_key, struct error *err);
/* Fill id of a key whose public part is there. */
void seal_key_identify(struct seal_key *key);

#endif
