/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "audit/store/store_seal.h"

#include "audit/store/seal_table.h"

#include <stdio.h>
#include <string.h>

/* No seal and no change of an honest log has a larger number; one above them could not be counted on from. */
#define STORE_SEAL_NUMBER_MAX (INT64_MAX / 2)

/* Notes that the chain passes the point that was noted when the log was last written. */
static void
store_seal_meet(struct store_seal *seal, const struct insert_state *noted, const struct insert_state *state)
{
	if (state->seq == noted->seq && memcmp(state->head, noted->head, CHAIN_DIGEST) == 0)
		seal->noted_met = true;
}

/* From the newest seal's head over the links after it. */
static int
store_seal_walk(
    struct store_seal *seal, struct chain *chain, const struct insert_state *noted, struct insert_state *state)
{
	static const char sql[] = "SELECT seq, tbl, id, digest FROM chain WHERE seq > ?1 ORDER BY seq";
	sqlite3_stmt *stmt;
	int rc = sqlite3_prepare_v2(seal->db, sql, -1, &stmt, NULL);

	if (rc != SQLITE_OK)
		return rc;
	store_seal_meet(seal, noted, state);
	sqlite3_bind_int64(stmt, 1, state->seq);
	while ((rc = sqlite3_step(stmt)) == SQLITE_ROW) {
		struct chain_link link = {.seq = sqlite3_column_int64(stmt, 0),
		    .table = (unsigned int)sqlite3_column_int(stmt, 1),
		    .id = sqlite3_column_int64(stmt, 2)};

		if (sqlite3_column_bytes(stmt, 3) != CHAIN_DIGEST) {
			rc = SQLITE_CORRUPT;
			break;
		}
		memcpy(link.digest, sqlite3_column_blob(stmt, 3), CHAIN_DIGEST);
		chain_advance(chain, state->head, &link);
		state->seq = link.seq;
		store_seal_meet(seal, noted, state);
	}
	sqlite3_finalize(stmt);
	return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* Is the number within what the chain holds? */
static bool
store_seal_in_range(int64_t number)
{
	return number >= 0 && number <= STORE_SEAL_NUMBER_MAX;
}

void
store_seal_suspect(const struct store_seal *seal, const struct insert_state *noted, const struct insert_state *state,
    char *ret_what, size_t size)
{
	long long links = (long long)store_seal_links(seal, state), sealed = (long long)seal->last.last_seq;

	ret_what[0] = '\0';
	if (noted->seq > state->seq)
		snprintf(ret_what, size,
		    "it ends with number %lld, and with %lld when it was last written: its end was cut off, or an "
		    "older copy took its place",
		    (long long)state->seq, (long long)noted->seq);
	else if (seal->closing && links > 0)
		snprintf(ret_what, size, "%lld changes were added after number %lld, with which it had been closed",
		    links, sealed);
	else if (links >= SEAL_LINKS)
		snprintf(ret_what, size,
		    "%lld changes after number %lld are under no seal: seals were removed, or changes added", links,
		    sealed);
	else if (noted->seq > 0 && noted->seq >= seal->last.last_seq && !seal->noted_met)
		snprintf(ret_what, size, "its end up to number %lld is not what was written", (long long)noted->seq);
}

int
store_seal_open(struct store_seal *seal, sqlite3 *db, const struct insert_state *noted, struct insert_state *ret_state)
{
	struct chain *chain = chain_new();
	bool whole = false;
	int rc;

	*seal = (struct store_seal){.db = db};
	rc = chain == NULL ? SQLITE_NOMEM : seal_table_log_id(db, seal->log_id);
	if (rc == SQLITE_OK)
		rc = seal_table_newest(db, &seal->last, &whole);
	if (rc == SQLITE_OK && (seal->log_id[0] == '\0' || !whole))
		rc = SQLITE_CORRUPT;
	if (rc == SQLITE_OK) {
		chain_begin(chain, seal->log_id, ret_state->head);
		if (seal->last.n > 0)
			memcpy(ret_state->head, seal->last.head, CHAIN_DIGEST);
		ret_state->seq = seal->last.last_seq;
		rc = store_seal_walk(seal, chain, noted, ret_state);
	}
	if (rc == SQLITE_OK &&
	    (!store_seal_in_range(seal->last.n) || !store_seal_in_range(seal->last.last_seq) ||
		!store_seal_in_range(ret_state->seq)))
		rc = SQLITE_CORRUPT;
	if (rc == SQLITE_OK)
		rc = seal_table_closes(db, &seal->last, &seal->closing);
	if (rc == SQLITE_OK)
		rc = sqlite3_prepare_v2(db,
		    "INSERT INTO seals (n, first_seq, last_seq, ts, head, key_id, signature) VALUES (?, ?, ?, ?, ?, ?, "
		    "?)",
		    -1, &seal->add, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_prepare_v2(db,
		    "INSERT INTO seal_keys (id, public, ts) VALUES (?, ?, ?) ON CONFLICT (id) DO NOTHING", -1,
		    &seal->add_key, NULL);
	seal->durable = seal->last;
	chain_free(chain);
	return rc;
}

void
store_seal_close(struct store_seal *seal)
{
	sqlite3_finalize(seal->add);
	sqlite3_finalize(seal->add_key);
	seal->add = seal->add_key = NULL;
}

int64_t
store_seal_links(const struct store_seal *seal, const struct insert_state *state)
{
	return state->seq - seal->last.last_seq;
}

/* The key, in the file once, with its first seal. */
static int
store_seal_write_key(struct store_seal *seal, int64_t ts_us)
{
	const struct seal_key *key = &seal->signer->key;

	if (seal->last.n > 0 && seal->last.key_id == key->id)
		return SQLITE_OK;
	sqlite3_bind_int64(seal->add_key, 1, key->id);
	sqlite3_bind_blob(seal->add_key, 2, key->public, SEAL_PUBLIC, SQLITE_STATIC);
	sqlite3_bind_int64(seal->add_key, 3, ts_us);
	sqlite3_step(seal->add_key);
	return sqlite3_reset(seal->add_key);
}

int
store_seal_write(struct store_seal *seal, const struct insert_state *state, int64_t ts_us)
{
	struct seal next = {
	    .n = seal->last.n + 1, .first_seq = seal->last.last_seq + 1, .last_seq = state->seq, .ts_us = ts_us};
	int rc;

	memcpy(next.head, state->head, CHAIN_DIGEST);
	if (seal_sign(&next, seal->log_id, seal->signer, NULL) < 0)
		return SQLITE_MISUSE;
	rc = store_seal_write_key(seal, ts_us);
	if (rc != SQLITE_OK)
		return rc;
	sqlite3_bind_int64(seal->add, 1, next.n);
	sqlite3_bind_int64(seal->add, 2, next.first_seq);
	sqlite3_bind_int64(seal->add, 3, next.last_seq);
	sqlite3_bind_int64(seal->add, 4, next.ts_us);
	sqlite3_bind_blob(seal->add, 5, next.head, CHAIN_DIGEST, SQLITE_STATIC);
	sqlite3_bind_int64(seal->add, 6, next.key_id);
	sqlite3_bind_blob(seal->add, 7, next.signature, SEAL_SIGNATURE, SQLITE_STATIC);
	sqlite3_step(seal->add);
	rc = sqlite3_reset(seal->add);
	if (rc == SQLITE_OK)
		seal->last = next;
	return rc;
}

void
store_seal_committed(struct store_seal *seal)
{
	seal->closing = seal->closing && seal->durable.n == seal->last.n;
	seal->durable = seal->last;
}

void
store_seal_rolled_back(struct store_seal *seal)
{
	seal->last = seal->durable;
}
