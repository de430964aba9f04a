/* SPDX-License-Identifier: GPL-3.0-or-later */
/* From version 1, which had neither chain nor seals: new columns are empty in its rows, but for what their names say.
 * Each row gets one link, for what it is now, in the order of the numbers it has; what had no number, sandboxes, comes
 * last.
 *
 * From version 2: its indexes by name had no verdict. All else is as it was. */
#include "audit/store/schema.h"

#include "audit/seal/chain.h"
#include "audit/store/name_measure.h"

#include <stdio.h>

static const char migrate_columns[] =
    "DROP VIEW v_log; DROP VIEW v_connections; DROP VIEW v_dns; DROP VIEW v_events;"
    "ALTER TABLE connections ADD COLUMN tls_version INTEGER;"
    "ALTER TABLE connections ADD COLUMN ja4 TEXT;"
    "ALTER TABLE connections ADD COLUMN http_method TEXT;"
    "ALTER TABLE connections ADD COLUMN country TEXT;"
    "ALTER TABLE connections ADD COLUMN asn INTEGER;"
    "ALTER TABLE connections ADD COLUMN as_org TEXT;"
    "ALTER TABLE connections ADD COLUMN dns_us INTEGER;"
    "ALTER TABLE connections ADD COLUMN hello_us INTEGER;"
    "ALTER TABLE connections ADD COLUMN connect_us INTEGER;"
    "ALTER TABLE connections ADD COLUMN first_byte_us INTEGER;"
    "ALTER TABLE connections ADD COLUMN packets_out INTEGER;"
    "ALTER TABLE connections ADD COLUMN packets_in INTEGER;"
    "ALTER TABLE connections ADD COLUMN community_id TEXT;"
    "ALTER TABLE connections ADD COLUMN up_src TEXT;"
    "ALTER TABLE connections ADD COLUMN up_sport INTEGER;"
    "ALTER TABLE connections ADD COLUMN up_community_id TEXT;"
    "ALTER TABLE connections ADD COLUMN domain TEXT;"
    "ALTER TABLE dns ADD COLUMN leases INTEGER;"
    "ALTER TABLE dns ADD COLUMN domain TEXT;"
    "ALTER TABLE dns ADD COLUMN entropy INTEGER;"
    "UPDATE connections SET domain = name_domain(name) WHERE name IS NOT NULL;"
    "UPDATE dns SET domain = name_domain(qname), entropy = name_entropy(qname) WHERE qname IS NOT NULL;"
    "ALTER TABLE sandboxes ADD COLUMN seq INTEGER NOT NULL DEFAULT 0;"
    "UPDATE sandboxes SET seq = n.newest + n.nth FROM (SELECT s.id AS id, row_number() OVER (ORDER BY s.id) AS nth, "
    "  (SELECT max(coalesce((SELECT max(seq) FROM connections), 0), coalesce((SELECT max(seq) FROM dns), 0), "
    "  coalesce((SELECT max(seq) FROM events), 0))) AS newest FROM sandboxes s) n WHERE n.id = sandboxes.id;"
    "INSERT INTO meta VALUES ('log_id', lower(hex(randomblob(16)))), ('pruned_through', 0)";

/* The two figures of a name that newer rows have. NULL of what is no name. */
static void
migrate_measure(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	const void *text = sqlite3_value_text(argv[0]);
	size_t len = (size_t)sqlite3_value_bytes(argv[0]);
	struct name_measure measure;
	struct name name;

	(void)argc;
	if (text == NULL || name_canonical(text, len, &name) != NAME_OK)
		return;
	name_measure(&name, &measure);
	if (sqlite3_user_data(context) != NULL)
		sqlite3_result_text(context, measure.domain, -1, SQLITE_TRANSIENT);
	else
		sqlite3_result_int64(context, measure.entropy);
}

static int
migrate_functions(sqlite3 *db, const char *what, struct error *err)
{
	static char domain; /* its address says which of the two */

	if (sqlite3_create_function(db, "name_domain", 1, SQLITE_UTF8, &domain, migrate_measure, NULL, NULL) !=
		SQLITE_OK ||
	    sqlite3_create_function(db, "name_entropy", 1, SQLITE_UTF8, NULL, migrate_measure, NULL, NULL) != SQLITE_OK)
		return schema_error(err, db, what);
	return 0;
}

/* Links of one table's rows. */
static int
migrate_table(sqlite3 *db, struct chain *chain, unsigned int table)
{
	sqlite3_stmt *rows = NULL, *add = NULL;
	uint8_t digest[CHAIN_DIGEST];
	char sql[1024];
	int rc;

	snprintf(sql, sizeof(sql), "SELECT %s FROM %s", chain_table_columns(table), chain_table_name(table));
	rc = sqlite3_prepare_v2(db, sql, -1, &rows, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_prepare_v2(
		    db, "INSERT INTO chain (seq, tbl, id, digest) VALUES (?1, ?2, ?3, ?4)", -1, &add, NULL);
	while (rc == SQLITE_OK && sqlite3_step(rows) == SQLITE_ROW) {
		rc = chain_digest(chain, rows, digest);
		sqlite3_bind_int64(add, 1, sqlite3_column_int64(rows, 1));
		sqlite3_bind_int64(add, 2, table);
		sqlite3_bind_int64(add, 3, sqlite3_column_int64(rows, 0));
		sqlite3_bind_blob(add, 4, digest, sizeof(digest), SQLITE_TRANSIENT);
		if (rc == SQLITE_OK) {
			sqlite3_step(add);
			rc = sqlite3_reset(add);
		}
	}
	if (rc == SQLITE_OK)
		rc = sqlite3_reset(rows);
	sqlite3_finalize(add);
	sqlite3_finalize(rows);
	return rc;
}

static int
migrate_chain(sqlite3 *db, const char *what, struct error *err)
{
	struct chain *chain = chain_new();
	int rc = chain == NULL ? SQLITE_NOMEM : SQLITE_OK;

	for (unsigned int table = 1; rc == SQLITE_OK && table < CHAIN_TABLE_MAX; table++)
		rc = migrate_table(db, chain, table);
	chain_free(chain);
	if (rc == SQLITE_OK)
		return 0;
	return schema_error(err, db, what);
}

/* Columns, tables and links that version 1 did not have. */
static int
migrate_to_2(sqlite3 *db, const char *what, struct error *err)
{
	if (schema_exec(db, migrate_columns, what, err) < 0 || schema_exec(db, schema_tables_2, what, err) < 0 ||
	    schema_exec(db, schema_views, what, err) < 0)
		return -1;
	return migrate_chain(db, what, err);
}

int
schema_migrate(sqlite3 *db, bool *ret_linked, struct error *err)
{
	static const char what[] = "cannot bring the audit database to this version's form";
	char version[64];
	int64_t from;

	snprintf(version, sizeof(version), "PRAGMA user_version = %d", SCHEMA_VERSION);
	if (migrate_functions(db, what, err) < 0 || schema_exec(db, "BEGIN IMMEDIATE", what, err) < 0 ||
	    schema_integer(db, "PRAGMA user_version", &from, err) < 0)
		return -1;
	if (from < 2 && migrate_to_2(db, what, err) < 0)
		return -1;
	if (schema_exec(db, "DROP INDEX IF EXISTS connections_name; DROP INDEX IF EXISTS dns_name", what, err) < 0 ||
	    schema_exec(db, schema_indexes, what, err) < 0 || schema_exec(db, version, what, err) < 0)
		return -1;
	*ret_linked = from < 2;
	return schema_exec(db, "COMMIT", what, err);
}
