/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "audit/query/query_sql.h"

#include <stdio.h>
#include <string.h>

/* With a plus SQLite does not look for an index: the lead says which verdicts (audit/query/query_lead.c). */
const struct query_arm query_sql_arms[QUERY_KINDS] = {
    [QUERY_ARM_CONNECTIONS] = {.kind = QUERY_CONNECTION,
	.columns = COLUMNS_CONNECTIONS,
	.table = "connections",
	.field = {[QUERY_FIELD_DENIED] = "+t.verdict",
	    [QUERY_FIELD_VERDICT] = "+t.verdict",
	    [QUERY_FIELD_REASON] = "t.reason",
	    [QUERY_FIELD_HOST] = "t.name",
	    [QUERY_FIELD_IP] = "t.dst",
	    [QUERY_FIELD_SRC] = "t.src",
	    [QUERY_FIELD_PORT] = "t.dport",
	    [QUERY_FIELD_PROTO] = "t.proto",
	    [QUERY_FIELD_RULE] = "t.rule",
	    [QUERY_FIELD_END] = "t.end",
	    [QUERY_FIELD_COUNTRY] = "t.country",
	    [QUERY_FIELD_ASN] = "t.asn",
	    [QUERY_FIELD_BYTES] = "coalesce(t.bytes_out, 0) + coalesce(t.bytes_in, 0)",
	    [QUERY_FIELD_ID] = "t.id",
	    [QUERY_FIELD_SANDBOX] = "t.sandbox_id",
	    [QUERY_FIELD_SANDBOX_ID] = "t.sandbox_id",
	    [QUERY_FIELD_LABEL] = "t.sandbox_id"}},
    [QUERY_ARM_DNS] = {.kind = QUERY_DNS,
	.columns = COLUMNS_DNS,
	.table = "dns",
	.field = {[QUERY_FIELD_DENIED] = "+t.verdict",
	    [QUERY_FIELD_VERDICT] = "+t.verdict",
	    [QUERY_FIELD_REASON] = "t.reason",
	    [QUERY_FIELD_HOST] = "t.qname",
	    [QUERY_FIELD_IP] = "t.answers",
	    [QUERY_FIELD_SRC] = "t.src",
	    [QUERY_FIELD_PORT] = "53",
	    [QUERY_FIELD_PROTO] = "t.transport",
	    [QUERY_FIELD_RULE] = "t.rule",
	    [QUERY_FIELD_QTYPE] = "t.qtype",
	    [QUERY_FIELD_ID] = "t.id",
	    [QUERY_FIELD_SANDBOX] = "t.sandbox_id",
	    [QUERY_FIELD_SANDBOX_ID] = "t.sandbox_id",
	    [QUERY_FIELD_LABEL] = "t.sandbox_id"}},
    [QUERY_ARM_EVENTS] = {.kind = QUERY_EVENT,
	.columns = COLUMNS_EVENTS,
	.table = "events",
	.field = {[QUERY_FIELD_EVENT] = "t.kind",
	    [QUERY_FIELD_ID] = "t.id",
	    [QUERY_FIELD_SANDBOX] = "t.sandbox_id",
	    [QUERY_FIELD_SANDBOX_ID] = "t.sandbox_id",
	    [QUERY_FIELD_LABEL] = "t.sandbox_id"}},
};

const struct query_arm query_sql_arm_sandboxes = {.table = "sandboxes",
    .field = {[QUERY_FIELD_SANDBOX] = "t.id", [QUERY_FIELD_SANDBOX_ID] = "t.id", [QUERY_FIELD_LABEL] = "t.id"}};

/* host_below(name, parent): is the name one or more labels below the other? Names in the file are canonical; whatever
 * else may stand there matches or not, byte by byte. */
static void
query_host_below(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	const char *name = (const char *)sqlite3_value_text(argv[0]);
	const char *parent = (const char *)sqlite3_value_text(argv[1]);
	int len = sqlite3_value_bytes(argv[0]), parent_len = sqlite3_value_bytes(argv[1]);

	(void)argc;
	sqlite3_result_int(context,
	    name != NULL && parent != NULL && len > parent_len + 1 && name[len - parent_len - 1] == '.' &&
		memcmp(name + len - parent_len, parent, (size_t)parent_len) == 0);
}

/* ip_in(address, prefix): as text; false for anything that is neither. */
static void
query_ip_in(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	const char *text = (const char *)sqlite3_value_text(argv[0]);
	const struct prefix *prefix = sqlite3_value_pointer(argv[1], "prefix");
	struct addr addr;

	(void)argc;
	sqlite3_result_int(context,
	    text != NULL && prefix != NULL && addr_parse(text, (size_t)sqlite3_value_bytes(argv[0]), &addr) &&
		addr_prefix_contains(prefix, &addr));
}

/* One item of a list of answers: "A 192.0.2.1". */
static bool
query_answer_in(const char *item, size_t len, const struct prefix *prefix)
{
	size_t type = len > 2 && memcmp(item, "A ", 2) == 0 ? 2 : len > 5 && memcmp(item, "AAAA ", 5) == 0 ? 5 : 0;
	struct addr addr;

	return type > 0 && addr_parse(item + type, len - type, &addr) && addr_prefix_contains(prefix, &addr);
}

/* answer_in(answers, prefix): does the JSON array of strings have an address in it? What is escaped is no address. */
static void
query_answers_in(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	const char *text = (const char *)sqlite3_value_text(argv[0]);
	const char *end = text == NULL ? NULL : text + sqlite3_value_bytes(argv[0]), *item = NULL;
	const struct prefix *prefix = sqlite3_value_pointer(argv[1], "prefix");
	bool found = false;

	(void)argc;
	for (const char *at = text; prefix != NULL && at < end && !found; at++) {
		if (*at == '\\' && item != NULL) {
			at++;
		} else if (*at == '"' && item == NULL) {
			item = at + 1;
		} else if (*at == '"') {
			found = query_answer_in(item, (size_t)(at - item), prefix);
			item = NULL;
		}
	}
	sqlite3_result_int(context, found);
}

int
query_sql_functions(sqlite3 *db)
{
	const int flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC;
	int rc = sqlite3_create_function(db, "host_below", 2, flags, NULL, query_host_below, NULL, NULL);

	if (rc == SQLITE_OK)
		rc = sqlite3_create_function(db, "ip_in", 2, flags, NULL, query_ip_in, NULL, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_create_function(db, "answer_in", 2, flags, NULL, query_answers_in, NULL, NULL);
	return rc;
}

static bool
query_has_field(const struct query_filter *filter, enum query_field field, bool negated)
{
	for (size_t i = 0; i < filter->term_count; i++)
		if (filter->terms[i].field == field && filter->terms[i].negated == negated)
			return true;
	return false;
}

bool
query_sql_wanted(const struct query_filter *filter, const struct query_arm *arm)
{
	if (filter->kinds != 0 && (filter->kinds & arm->kind) == 0)
		return false;
	for (enum query_field field = 0; field < QUERY_FIELD_MAX; field++)
		if (arm->field[field] == NULL && query_has_field(filter, field, false))
			return false;
	return true;
}

bool
query_sql_possible(const struct query_filter *filter)
{
	for (size_t i = 0; i < QUERY_KINDS; i++)
		if (query_sql_wanted(filter, &query_sql_arms[i]))
			return true;
	return false;
}

bool
query_sql_is_one(const struct prefix *prefix)
{
	return prefix->bits == (prefix->addr.family == 4 ? 32 : 128);
}

/* Term i, in parentheses. Its values are bound as :aI and :bI. */
static void
query_sql_term(sqlite3_str *sql, const struct query_term *term, const struct query_arm *arm, size_t i)
{
	const char *what = arm->field[term->field];
	int n = (int)i;

	switch (term->field) {
	case QUERY_FIELD_DENIED:
	case QUERY_FIELD_VERDICT:
	case QUERY_FIELD_REASON:
	case QUERY_FIELD_PORT:
	case QUERY_FIELD_PROTO:
	case QUERY_FIELD_END:
	case QUERY_FIELD_EVENT:
	case QUERY_FIELD_ASN:
	case QUERY_FIELD_QTYPE:
	case QUERY_FIELD_BYTES:
	case QUERY_FIELD_ID:
	case QUERY_FIELD_SANDBOX_ID:
		sqlite3_str_appendf(
		    sql, term->low == term->high ? "(%s = :a%d)" : "(%s BETWEEN :a%d AND :b%d)", what, n, n);
		return;
	case QUERY_FIELD_HOST:
		/* Whatever has no domain is no name. */
		sqlite3_str_appendf(
		    sql, term->below ? "(t.domain IS NOT NULL AND host_below(%s, :a%d))" : "(%s = :a%d)", what, n);
		return;
	case QUERY_FIELD_IP:
		if (arm->kind == QUERY_DNS) {
			sqlite3_str_appendf(sql, "answer_in(%s, :b%d)", what, n);
			return;
		}
		/* fall through */
	case QUERY_FIELD_SRC:
		sqlite3_str_appendf(sql, query_sql_is_one(&term->prefix) ? "(%s = :a%d)" : "ip_in(%s, :b%d)", what, n);
		return;
	case QUERY_FIELD_RULE:
		sqlite3_str_appendf(sql, "(instr(%s, :a%d) > 0)", what, n);
		return;
	case QUERY_FIELD_COUNTRY:
		sqlite3_str_appendf(sql, "(%s = :a%d)", what, n);
		return;
	case QUERY_FIELD_SANDBOX:
		sqlite3_str_appendf(sql, "(%s IN (SELECT id FROM sandboxes WHERE name = :a%d))", what, n);
		return;
	case QUERY_FIELD_LABEL:
		sqlite3_str_appendf(sql,
		    "(%s IN (SELECT x.id FROM sandboxes x, json_each(CASE WHEN json_valid(x.detail) THEN x.detail ELSE "
		    "'{}' END, '$.labels') l WHERE l.key = :a%d",
		    what, n);
		if (term->value != NULL)
			sqlite3_str_appendf(sql, " AND l.value = :b%d", n);
		sqlite3_str_appendall(sql, "))");
		return;
	case QUERY_FIELD_MAX:
		break;
	}
	/* No such field: no row. */
	sqlite3_str_appendall(sql, "0");
}

void
query_sql_any(sqlite3_str *sql, const struct query_filter *filter, const struct query_arm *arm, enum query_field field)
{
	const char *join = "(";

	for (size_t i = 0; i < filter->term_count; i++) {
		if (filter->terms[i].field != field || filter->terms[i].negated)
			continue;
		sqlite3_str_appendall(sql, join);
		query_sql_term(sql, &filter->terms[i], arm, i);
		join = " OR ";
	}
	sqlite3_str_appendall(sql, ")");
}

void
query_sql_conditions(sqlite3_str *sql, const struct query_filter *filter, const struct query_arm *arm)
{
	if (filter->sandbox_id != 0)
		sqlite3_str_appendf(sql, " AND %s = :sandbox_id", arm->field[QUERY_FIELD_SANDBOX_ID]);
	if (filter->sandbox != NULL)
		sqlite3_str_appendf(sql, " AND %s IN (SELECT id FROM sandboxes WHERE name = :sandbox)",
		    arm->field[QUERY_FIELD_SANDBOX_ID]);
	for (enum query_field field = 0; field < QUERY_FIELD_MAX; field++) {
		if (arm->field[field] == NULL || !query_has_field(filter, field, false))
			continue;
		sqlite3_str_appendall(sql, " AND ");
		query_sql_any(sql, filter, arm, field);
	}
	/* Also true where the column is NULL. */
	for (size_t i = 0; i < filter->term_count; i++) {
		if (!filter->terms[i].negated || arm->field[filter->terms[i].field] == NULL)
			continue;
		sqlite3_str_appendall(sql, " AND (");
		query_sql_term(sql, &filter->terms[i], arm, i);
		sqlite3_str_appendall(sql, ") IS NOT TRUE");
	}
	if (filter->until_us != 0 && arm->kind != 0)
		sqlite3_str_appendall(sql, " AND t.ts < :until");
}

void
query_sql_bind_integer(sqlite3_stmt *stmt, const char *name, int64_t value)
{
	int at = sqlite3_bind_parameter_index(stmt, name);

	if (at > 0)
		sqlite3_bind_int64(stmt, at, value);
}

void
query_sql_bind_text(sqlite3_stmt *stmt, const char *name, const char *text)
{
	int at = sqlite3_bind_parameter_index(stmt, name);

	if (at > 0)
		sqlite3_bind_text(stmt, at, text, -1, SQLITE_TRANSIENT);
}

/* Its address as text, and itself for the functions. */
static void
query_sql_bind_prefix(sqlite3_stmt *stmt, const char *a, const char *b, const struct prefix *prefix)
{
	int at = sqlite3_bind_parameter_index(stmt, b);
	char text[ADDR_TEXT_MAX];

	query_sql_bind_text(stmt, a, addr_format(&prefix->addr, text));
	if (at > 0)
		sqlite3_bind_pointer(stmt, at, (void *)(uintptr_t)prefix, "prefix", NULL);
}

void
query_sql_bind(sqlite3_stmt *stmt, const struct query_filter *filter)
{
	query_sql_bind_integer(stmt, ":sandbox_id", filter->sandbox_id);
	query_sql_bind_text(stmt, ":sandbox", filter->sandbox);
	query_sql_bind_integer(stmt, ":since", filter->since_us);
	query_sql_bind_integer(stmt, ":until", filter->until_us);
	for (size_t i = 0; i < filter->term_count; i++) {
		const struct query_term *term = &filter->terms[i];
		char a[32], b[32];

		snprintf(a, sizeof(a), ":a%zu", i);
		snprintf(b, sizeof(b), ":b%zu", i);
		if (term->field == QUERY_FIELD_HOST) {
			query_sql_bind_text(stmt, a, term->name.text);
		} else if (term->field == QUERY_FIELD_IP || term->field == QUERY_FIELD_SRC) {
			query_sql_bind_prefix(stmt, a, b, &term->prefix);
		} else if (term->text != NULL) {
			query_sql_bind_text(stmt, a, term->text);
			query_sql_bind_text(stmt, b, term->value);
		} else {
			query_sql_bind_integer(stmt, a, term->low);
			query_sql_bind_integer(stmt, b, term->high);
		}
	}
}
