/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Theory of operation. Rows are wanted in the order of time, a page at a time, and an answer must begin at once however
 * large the log is. SQLite's planner knows nothing of how many rows a value has, and where a condition has several
 * alternatives it would read them all and sort them, for every page. So the choice is made here.
 *
 * Each index is (something, ts), or (name, verdict, ts). For one value of something, its rows stand in the order of
 * time; for a few values, a statement with an arm for each value is a merge of ordered streams, which SQLite reads only
 * as far as it must. What the filter asks for is turned into such values ("keys"): sandboxes by their names and labels;
 * hosts by name, or for a tree the registered domains that lie on its path or below it; networks by the addresses in
 * them that were dialled; what was refused by the reasons that occurred. The last three are found by leaping through
 * the index from one distinct value to the next.
 *
 * Each index costs the writer for every row, so there are few. Addresses among a query's answers have none: a question
 * about an address goes by it to connections, and through time to queries, when nothing else leads to these.
 *
 * Of all leads that a filter has, the one with the fewest entries in the time asked for is taken; counting stops soon.
 * A lead with too many keys is none: what matches so much is met soon enough on the way through time. All conditions
 * are tested on every row whatever led to it, so that a lead can be wrong about speed only. */
#include "audit/query/query_lead.h"

#include "audit/store/schema.h"

#include <stdio.h>
#include <string.h>

/* Entries of a lead that are counted: beyond it two leads are equally long. */
#define LEAD_COUNT_MAX 5000
/* Leaps from one distinct value to the next; about a fifth of a second. */
#define LEAD_LEAPS_MAX 100000

static const char what[] = "cannot read the audit database";

static const char *const lead_index[] = {
    [QUERY_LEAD_TIME] = "ts",
    [QUERY_LEAD_ID] = NULL,
    [QUERY_LEAD_SANDBOX] = "sandbox",
    [QUERY_LEAD_NAME] = "name",
    [QUERY_LEAD_DOMAIN] = "domain",
    [QUERY_LEAD_ADDRESS] = "dst",
    [QUERY_LEAD_REASON] = "reason",
};
_Static_assert(sizeof(lead_index) / sizeof(lead_index[0]) == QUERY_LEAD_MAX, "an index for each lead");

/* NULL: there are no keys. */
static const char *
lead_column(enum query_lead_kind kind, const struct query_arm *arm)
{
	switch (kind) {
	case QUERY_LEAD_ID:
		return "t.id";
	case QUERY_LEAD_SANDBOX:
		return "t.sandbox_id";
	case QUERY_LEAD_NAME:
		return arm->field[QUERY_FIELD_HOST];
	case QUERY_LEAD_DOMAIN:
		return "t.domain";
	case QUERY_LEAD_ADDRESS:
		return "t.dst";
	case QUERY_LEAD_REASON:
		return "t.reason";
	case QUERY_LEAD_TIME:
	case QUERY_LEAD_MAX:
		break;
	}
	return NULL;
}

/* What of the lead this table has an index for. */
static enum query_lead_kind
lead_kind_of(const struct query_lead *lead, const struct query_arm *arm)
{
	return lead->kind == QUERY_LEAD_ADDRESS && arm->kind != QUERY_CONNECTION ? QUERY_LEAD_TIME : lead->kind;
}

size_t
query_lead_arms(const struct query_lead *lead, const struct query_arm *arm)
{
	switch (lead_kind_of(lead, arm)) {
	case QUERY_LEAD_TIME:
		return 1;
	case QUERY_LEAD_NAME:
		return lead->count * lead->verdict_count;
	case QUERY_LEAD_ID:
	case QUERY_LEAD_SANDBOX:
	case QUERY_LEAD_DOMAIN:
	case QUERY_LEAD_ADDRESS:
	case QUERY_LEAD_REASON:
	case QUERY_LEAD_MAX:
		break;
	}
	return lead->count;
}

void
query_lead_from(sqlite3_str *sql, const struct query_lead *lead, const struct query_arm *arm, size_t at)
{
	enum query_lead_kind kind = lead_kind_of(lead, arm);

	if (kind == QUERY_LEAD_ID)
		sqlite3_str_appendf(sql, " FROM %s t NOT INDEXED WHERE ", arm->table);
	else
		sqlite3_str_appendf(
		    sql, " FROM %s t INDEXED BY %s_%s WHERE ", arm->table, arm->table, lead_index[kind]);
	if (kind == QUERY_LEAD_TIME)
		sqlite3_str_appendall(sql, "1");
	else if (kind == QUERY_LEAD_NAME)
		sqlite3_str_appendf(sql, "%s = :k%d AND t.verdict = %u", lead_column(kind, arm),
		    (int)(at / lead->verdict_count), lead->verdicts[at % lead->verdict_count]);
	else
		sqlite3_str_appendf(sql, "%s = :k%d", lead_column(kind, arm), (int)at);
	/* As the partial index says it. */
	if (kind == QUERY_LEAD_REASON)
		sqlite3_str_appendall(sql, " AND t.reason <> 0");
}

void
query_lead_bind(sqlite3_stmt *stmt, const struct query_lead *lead)
{
	char name[32];

	for (size_t i = 0; i < lead->count; i++) {
		snprintf(name, sizeof(name), ":k%zu", i);
		if (lead->keys[i].is_text)
			query_sql_bind_text(stmt, name, lead->keys[i].text);
		else
			query_sql_bind_integer(stmt, name, lead->keys[i].number);
	}
}

/* False: there are too many. */
static bool
lead_add_number(struct query_lead *lead, int64_t number)
{
	for (size_t i = 0; i < lead->count; i++)
		if (lead->keys[i].number == number)
			return true;
	if (lead->count == QUERY_KEYS_MAX)
		return false;
	lead->keys[lead->count++] = (struct query_key){.number = number};
	return true;
}

static bool
lead_add_text(struct query_lead *lead, const char *text)
{
	struct query_key *key = &lead->keys[lead->count];

	for (size_t i = 0; i < lead->count; i++)
		if (strcmp(lead->keys[i].text, text) == 0)
			return true;
	if (lead->count == QUERY_KEYS_MAX || strlen(text) >= sizeof(key->text))
		return false;
	*key = (struct query_key){.is_text = true};
	memcpy(key->text, text, strlen(text) + 1);
	lead->count++;
	return true;
}

/* The next term on a field that must hold, at or behind *at. */
static const struct query_term *
lead_term(const struct query_filter *filter, enum query_field field, size_t *at)
{
	for (; *at < filter->term_count; ++*at)
		if (filter->terms[*at].field == field && !filter->terms[*at].negated)
			return &filter->terms[(*at)++];
	return NULL;
}

/* Each value that the terms allow, as a number. 1: a lead; 0: none. */
static int
lead_numbers(const struct query_filter *filter, enum query_field field, struct query_lead *lead)
{
	const struct query_term *term;
	bool any = false;

	for (size_t at = 0; (term = lead_term(filter, field, &at)) != NULL; any = true)
		if (term->low != term->high || !lead_add_number(lead, term->low))
			return 0;
	return any;
}

static bool
lead_asks(const struct query_filter *filter, enum query_field field)
{
	size_t at = 0;

	return lead_term(filter, field, &at) != NULL;
}

/* The functions below fill lead for one kind. 1: it is one; 0: the filter does not lead this way; -1: error. */

static int
lead_by_id(sqlite3 *db, const struct query_filter *filter, struct query_lead *lead, struct error *err)
{
	(void)db;
	(void)err;
	return lead_numbers(filter, QUERY_FIELD_ID, lead);
}

static int
lead_by_sandbox(sqlite3 *db, const struct query_filter *filter, struct query_lead *lead, struct error *err)
{
	bool by_name =
	    filter->sandbox != NULL || lead_asks(filter, QUERY_FIELD_SANDBOX) || lead_asks(filter, QUERY_FIELD_LABEL);
	sqlite3_stmt *stmt = NULL;
	sqlite3_str *sql;
	char *text;
	int rc = SQLITE_ROW, found = 1;

	/* An id may be one that table sandboxes does not have. */
	if (!by_name && filter->sandbox_id != 0)
		return lead_add_number(lead, filter->sandbox_id);
	if (!by_name)
		return lead_numbers(filter, QUERY_FIELD_SANDBOX_ID, lead);
	sql = sqlite3_str_new(db);
	sqlite3_str_appendall(sql, "SELECT t.id FROM sandboxes t WHERE 1");
	query_sql_conditions(sql, filter, &query_sql_arm_sandboxes);
	text = sqlite3_str_finish(sql);
	if (text == NULL || sqlite3_prepare_v2(db, text, -1, &stmt, NULL) != SQLITE_OK) {
		sqlite3_free(text);
		return schema_error(err, db, what);
	}
	sqlite3_free(text);
	query_sql_bind(stmt, filter);
	while (found > 0 && (rc = sqlite3_step(stmt)) == SQLITE_ROW)
		found = lead_add_number(lead, sqlite3_column_int64(stmt, 0));
	sqlite3_finalize(stmt);
	return rc == SQLITE_ROW || rc == SQLITE_DONE ? found : schema_error(err, db, what);
}

/* Does any positive term on the field allow the value, or is there none? */
static bool
lead_passes(const struct query_filter *filter, enum query_field field, int64_t value)
{
	const struct query_term *term;
	bool any = false;

	for (size_t at = 0; (term = lead_term(filter, field, &at)) != NULL; any = true)
		if (term->low <= value && value <= term->high)
			return true;
	return !any;
}

static int
lead_by_name(sqlite3 *db, const struct query_filter *filter, struct query_lead *lead, struct error *err)
{
	const struct query_term *term;
	bool any = false;

	(void)db;
	(void)err;
	for (size_t at = 0; (term = lead_term(filter, QUERY_FIELD_HOST, &at)) != NULL; any = true)
		if (term->below || !lead_add_text(lead, term->name.text))
			return 0;
	for (unsigned int verdict = 0; verdict < VERDICT_MAX; verdict++)
		if (lead_passes(filter, QUERY_FIELD_DENIED, verdict) &&
		    lead_passes(filter, QUERY_FIELD_VERDICT, verdict))
			lead->verdicts[lead->verdict_count++] = verdict;
	return any;
}

/* Leaps over the distinct values of a column, from one to the next. */
struct lead_leap {
	const struct query_filter *filter;
	struct query_lead *lead;
	char low[ADDR_TEXT_MAX], high[ADDR_TEXT_MAX]; /* values are at or above low and below high; "": no bound */
	bool (*wanted)(const struct query_filter *filter, const char *value);
};

/* As lead_by_id; leap->lead gets the values that are wanted. */
static int
lead_leap(sqlite3 *db, const struct query_arm *arm, struct lead_leap *leap, struct error *err)
{
	const char *column = lead_column(leap->lead->kind, arm);
	char sql[256], at[NAME_TEXT_MAX + 1];
	sqlite3_stmt *stmt;
	int rc = SQLITE_ROW, found = 1, leaps = 0;

	snprintf(sql, sizeof(sql), "SELECT %s FROM %s t INDEXED BY %s_%s WHERE %s > ?1 ORDER BY %s LIMIT 1", column,
	    arm->table, arm->table, lead_index[leap->lead->kind], column, column);
	if (sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) != SQLITE_OK)
		return schema_error(err, db, what);
	snprintf(at, sizeof(at), "%s", leap->low);
	while (found > 0) {
		const char *value;

		sqlite3_bind_text(stmt, 1, at, -1, SQLITE_TRANSIENT);
		rc = sqlite3_step(stmt);
		if (rc != SQLITE_ROW)
			break;
		value = (const char *)sqlite3_column_text(stmt, 0);
		if (value == NULL || strlen(value) >= sizeof(at) || ++leaps > LEAD_LEAPS_MAX)
			found = 0;
		else if (leap->high[0] != '\0' && strcmp(value, leap->high) >= 0)
			break;
		else if (leap->wanted(leap->filter, value) && !lead_add_text(leap->lead, value))
			found = 0;
		else
			memcpy(at, value, strlen(value) + 1);
		sqlite3_reset(stmt);
	}
	sqlite3_finalize(stmt);
	return rc == SQLITE_ROW || rc == SQLITE_DONE ? found : schema_error(err, db, what);
}

static bool
lead_text_below(const char *name, const char *parent)
{
	size_t len = strlen(name), parent_len = strlen(parent);

	return len > parent_len + 1 && name[len - parent_len - 1] == '.' &&
	    memcmp(name + len - parent_len, parent, parent_len) == 0;
}

/* May a name that some term asks for have this registered domain? Domain and asked name are both endings of it: one is
 * the ending of the other. Which one, and where a domain ends, is for the list of suffixes that the writer had. */
static bool
lead_domain_wanted(const struct query_filter *filter, const char *domain)
{
	const struct query_term *term;

	for (size_t at = 0; (term = lead_term(filter, QUERY_FIELD_HOST, &at)) != NULL;)
		if (strcmp(domain, term->name.text) == 0 || lead_text_below(domain, term->name.text) ||
		    lead_text_below(term->name.text, domain))
			return true;
	return false;
}

static int
lead_by_domain(sqlite3 *db, const struct query_filter *filter, struct query_lead *lead, struct error *err)
{
	struct lead_leap leap = {.filter = filter, .lead = lead, .wanted = lead_domain_wanted};
	int found = lead_asks(filter, QUERY_FIELD_HOST);

	for (size_t i = 0; i < QUERY_KINDS && found > 0; i++)
		if (query_sql_wanted(filter, &query_sql_arms[i]))
			found = lead_leap(db, &query_sql_arms[i], &leap, err);
	return found;
}

static bool
lead_address_wanted(const struct query_filter *filter, const char *value)
{
	const struct query_term *term;
	struct addr addr;

	if (!addr_parse(value, strlen(value), &addr))
		return false;
	for (size_t at = 0; (term = lead_term(filter, QUERY_FIELD_IP, &at)) != NULL;)
		if (addr_prefix_contains(&term->prefix, &addr))
			return true;
	return false;
}

/* What the text of every address in the network begins with: whole numbers, and of IPv6 only those before the first
 * zero, behind which the text may be shortened. "" when there is none. */
static void
lead_address_bounds(const struct prefix *prefix, struct lead_leap *leap)
{
	const uint8_t *bytes = prefix->addr.bytes;
	char *text = leap->low;
	size_t len = 0;

	if (prefix->addr.family == 4) {
		for (size_t i = 0; i < prefix->bits / 8u; i++)
			len += (size_t)snprintf(text + len, ADDR_TEXT_MAX - len, "%u.", bytes[i]);
	} else {
		for (size_t i = 0; i < prefix->bits / 16u && (bytes[2 * i] != 0 || bytes[2 * i + 1] != 0); i++)
			len += (size_t)snprintf(
			    text + len, ADDR_TEXT_MAX - len, "%x:", bytes[2 * i] << 8 | bytes[2 * i + 1]);
	}
	memcpy(leap->high, leap->low, sizeof(leap->high));
	if (len > 0)
		leap->high[len - 1]++;
}

/* One address is a key by itself; of a network, those that occurred. */
static int
lead_by_term(sqlite3 *db, const struct query_filter *filter, const struct query_term *term, struct query_lead *lead,
    struct error *err)
{
	struct lead_leap leap = {.filter = filter, .lead = lead, .wanted = lead_address_wanted};
	char text[ADDR_TEXT_MAX];

	if (query_sql_is_one(&term->prefix))
		return lead_add_text(lead, addr_format(&term->prefix.addr, text));
	lead_address_bounds(&term->prefix, &leap);
	return lead_leap(db, &query_sql_arms[QUERY_ARM_CONNECTIONS], &leap, err);
}

static int
lead_by_address(sqlite3 *db, const struct query_filter *filter, struct query_lead *lead, struct error *err)
{
	const struct query_term *term;
	int found =
	    lead_asks(filter, QUERY_FIELD_IP) && query_sql_wanted(filter, &query_sql_arms[QUERY_ARM_CONNECTIONS]);

	for (size_t at = 0; found > 0 && (term = lead_term(filter, QUERY_FIELD_IP, &at)) != NULL;)
		found = lead_by_term(db, filter, term, lead, err);
	return found;
}

static int
lead_by_reason(sqlite3 *db, const struct query_filter *filter, struct query_lead *lead, struct error *err)
{
	int found = lead_numbers(filter, QUERY_FIELD_REASON, lead);

	(void)db;
	(void)err;
	for (size_t i = 0; i < lead->count; i++)
		if (lead->keys[i].number == 0)
			return 0;
	return found;
}

/* Every reason that the table's refused rows have. */
static int
lead_leap_reasons(sqlite3 *db, const struct query_arm *arm, struct query_lead *lead, struct error *err)
{
	sqlite3_stmt *stmt;
	int64_t at = INT64_MIN;
	int rc = SQLITE_ROW, found = 1;
	char sql[160];

	snprintf(sql, sizeof(sql),
	    "SELECT reason FROM %s INDEXED BY %s_reason WHERE reason <> 0 AND reason > ?1 ORDER BY reason LIMIT 1",
	    arm->table, arm->table);
	if (sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) != SQLITE_OK)
		return schema_error(err, db, what);
	while (found > 0) {
		sqlite3_bind_int64(stmt, 1, at);
		rc = sqlite3_step(stmt);
		if (rc != SQLITE_ROW)
			break;
		at = sqlite3_column_int64(stmt, 0);
		found = lead_add_number(lead, at);
		sqlite3_reset(stmt);
	}
	sqlite3_finalize(stmt);
	return rc == SQLITE_ROW || rc == SQLITE_DONE ? found : schema_error(err, db, what);
}

/* What was not allowed has a reason (record_valid). */
static int
lead_by_denial(sqlite3 *db, const struct query_filter *filter, struct query_lead *lead, struct error *err)
{
	const struct query_term *term;
	int found = lead_asks(filter, QUERY_FIELD_DENIED);

	if (found == 0) {
		for (size_t at = 0; (term = lead_term(filter, QUERY_FIELD_VERDICT, &at)) != NULL; found = 1)
			if (term->low <= 0)
				return 0;
	}
	for (size_t i = 0; i < QUERY_KINDS && found > 0; i++)
		if (query_sql_wanted(filter, &query_sql_arms[i]))
			found = lead_leap_reasons(db, &query_sql_arms[i], lead, err);
	return found;
}

/* Entries that the lead has in the time asked for, LEAD_COUNT_MAX at most for each key. */
static int
lead_count(sqlite3 *db, const struct query_filter *filter, const struct query_lead *lead, int64_t *ret_count,
    struct error *err)
{
	const char *join = "SELECT ";
	sqlite3_str *sql = sqlite3_str_new(db);
	sqlite3_stmt *stmt = NULL;
	char *text;
	int rc;

	for (size_t i = 0; i < QUERY_KINDS; i++) {
		for (size_t at = 0;
		     at < query_lead_arms(lead, &query_sql_arms[i]) && query_sql_wanted(filter, &query_sql_arms[i]);
		     at++) {
			sqlite3_str_appendf(sql, "%s(SELECT count(*) FROM (SELECT 1", join);
			query_lead_from(sql, lead, &query_sql_arms[i], at);
			if (filter->since_us != 0)
				sqlite3_str_appendall(sql, " AND t.ts >= :since");
			if (filter->until_us != 0)
				sqlite3_str_appendall(sql, " AND t.ts < :until");
			sqlite3_str_appendf(sql, " LIMIT %d))", LEAD_COUNT_MAX);
			join = " + ";
		}
	}
	*ret_count = 0;
	text = sqlite3_str_finish(sql);
	if (text == NULL)
		return 0;
	rc = sqlite3_prepare_v2(db, text, -1, &stmt, NULL);
	sqlite3_free(text);
	if (rc != SQLITE_OK)
		return schema_error(err, db, what);
	query_sql_bind(stmt, filter);
	query_lead_bind(stmt, lead);
	rc = sqlite3_step(stmt);
	*ret_count = sqlite3_column_int64(stmt, 0);
	sqlite3_finalize(stmt);
	return rc == SQLITE_ROW ? 0 : schema_error(err, db, what);
}

int
query_lead_choose(sqlite3 *db, const struct query_filter *filter, struct query_lead *ret_lead, struct error *err)
{
	/* The likely short ones first: of equal ones the first is taken. */
	static const struct {
		enum query_lead_kind kind;
		int (*fill)(sqlite3 *db, const struct query_filter *filter, struct query_lead *lead, struct error *err);
	} ways[] = {
	    {QUERY_LEAD_ID, lead_by_id},
	    {QUERY_LEAD_SANDBOX, lead_by_sandbox},
	    {QUERY_LEAD_NAME, lead_by_name},
	    {QUERY_LEAD_REASON, lead_by_reason},
	    {QUERY_LEAD_REASON, lead_by_denial},
	    {QUERY_LEAD_DOMAIN, lead_by_domain},
	    {QUERY_LEAD_ADDRESS, lead_by_address},
	};
	int64_t count, best = INT64_MAX;
	struct query_lead lead;

	*ret_lead = (struct query_lead){.kind = QUERY_LEAD_TIME};
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]) && best > 0; i++) {
		int found;

		/* Leaping takes longer than a short lead, and any lead is better than one to half of the rows. */
		if ((ways[i].kind == QUERY_LEAD_DOMAIN && best < LEAD_COUNT_MAX) ||
		    (ways[i].kind == QUERY_LEAD_ADDRESS && best < INT64_MAX &&
			query_sql_wanted(filter, &query_sql_arms[QUERY_ARM_DNS])))
			continue;
		lead = (struct query_lead){.kind = ways[i].kind};
		found = ways[i].fill(db, filter, &lead, err);
		if (found < 0)
			return -1;
		if (found == 0)
			continue;
		if (lead_count(db, filter, &lead, &count, err) < 0)
			return -1;
		if (count < best) {
			best = count;
			*ret_lead = lead;
		}
	}
	return 0;
}
