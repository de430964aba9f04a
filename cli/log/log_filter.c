/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/log/log_filter.h"

#include "audit/record.h"
#include "audit/show/render.h"
#include "policy/text/quantity.h"
#include "policy/verdict.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
	struct query_filter filter; /* its terms are those below */
	struct query_term terms[QUERY_TERMS_MAX];
	unsigned int kinds, not_kinds;
	bool negate; /* --not: the next filter is negated */
	const char *db;
} log_filter;

/* The next term, with its field and sign. NULL when there are too many. */
static struct query_term *
filter_add(enum query_field field, struct error *err)
{
	struct query_term *term = &log_filter.terms[log_filter.filter.term_count];

	if (log_filter.filter.term_count == QUERY_TERMS_MAX) {
		error_set(err, ERROR_USAGE, "more than %d filters", QUERY_TERMS_MAX);
		return NULL;
	}
	memset(term, 0, sizeof(*term));
	term->field = field;
	term->negated = log_filter.negate;
	log_filter.negate = false;
	log_filter.filter.term_count++;
	return term;
}

static int
filter_add_range(const struct args_option *option, int64_t low, int64_t high, struct error *err)
{
	struct query_term *term = filter_add((enum query_field)option->field, err);

	if (term == NULL)
		return -1;
	term->low = low;
	term->high = high;
	return 0;
}

static int
filter_text(const struct args_option *option, const char *text, struct error *err)
{
	struct query_term *term = filter_add((enum query_field)option->field, err);

	if (term == NULL)
		return -1;
	term->text = text;
	return 0;
}

static int
filter_word(const struct args_option *option, const char *text, struct error *err)
{
	struct args_option word = *option;
	unsigned int number;

	word.target = &number;
	return command_parse_word(&word, text, err) < 0 ? -1 : filter_add_range(option, number, number, err);
}

static int
filter_denied(const struct args_option *option, const char *value, struct error *err)
{
	(void)value;
	return filter_add_range(option, VERDICT_ALLOWED + 1, INT64_MAX, err);
}

static int
filter_host(const struct args_option *option, const char *text, struct error *err)
{
	struct query_term *term = filter_add((enum query_field)option->field, err);
	enum name_error bad;

	if (term == NULL)
		return -1;
	term->below = strncmp(text, "*.", 2) == 0;
	if (term->below)
		text += 2;
	bad = name_from_user(text, strlen(text), &term->name);
	return bad == NAME_OK ? 0 : error_set(err, ERROR_USAGE, "%s", name_error_text(bad));
}

static int
filter_prefix(const struct args_option *option, const char *text, struct error *err)
{
	struct query_term *term = filter_add((enum query_field)option->field, err);

	if (term == NULL)
		return -1;
	if (!addr_prefix_parse(text, strlen(text), &term->prefix))
		return error_set(err, ERROR_USAGE,
		    "not an address or a network (192.0.2.0/24, 2001:db8::/32; no bits set behind the length)");
	return 0;
}

/* "N", a port also "N-M"; "AS" may stand in front of an AS number. */
static int
filter_number(const struct args_option *option, const char *text, struct error *err)
{
	bool port = option->field == QUERY_FIELD_PORT, asn = option->field == QUERY_FIELD_ASN;
	uint64_t low, high, max = port ? UINT16_MAX : asn ? UINT32_MAX : INT64_MAX;
	size_t len;

	if (asn && strncasecmp(text, "as", 2) == 0)
		text += 2;
	len = port ? strcspn(text, "-") : strlen(text);
	if (!quantity_parse_count(text, len, max, &low))
		return error_set(err, ERROR_USAGE, "not a number up to %llu", (unsigned long long)max);
	high = low;
	if (text[len] == '-' &&
	    (!quantity_parse_count(text + len + 1, strlen(text + len + 1), max, &high) || high < low))
		return error_set(err, ERROR_USAGE, "not a range");
	return filter_add_range(option, (int64_t)low, (int64_t)high, err);
}

/* A protocol or a type: a number, or its word in either case. */
static int
filter_rendered(const struct args_option *option, const char *text, struct error *err)
{
	bool proto = option->field == QUERY_FIELD_PROTO;
	int64_t max = proto ? UINT8_MAX : UINT16_MAX;
	uint64_t number;
	char word[32];

	if (quantity_parse_count(text, strlen(text), (uint64_t)max, &number))
		return filter_add_range(option, (int64_t)number, (int64_t)number, err);
	for (int64_t i = 0; i <= max; i++)
		if (strcasecmp(proto ? render_proto(i, word) : render_qtype(i, word), text) == 0)
			return filter_add_range(option, i, i, err);
	return error_set(err, ERROR_USAGE, "neither a known word nor a number up to %lld", (long long)max);
}

static int
filter_bytes(const struct args_option *option, const char *text, struct error *err)
{
	uint64_t bytes;

	if (!quantity_parse_size(text, strlen(text), INT64_MAX, &bytes))
		return error_set(err, ERROR_USAGE, "not a size (1024, 10MiB)");
	return filter_add_range(option, (int64_t)bytes, INT64_MAX, err);
}

/* In capital letters, as in the database. */
static int
filter_country(const struct args_option *option, const char *text, struct error *err)
{
	static char codes[QUERY_TERMS_MAX][3];
	char *code = codes[log_filter.filter.term_count % QUERY_TERMS_MAX];

	if (strlen(text) != 2)
		return error_set(err, ERROR_USAGE, "not a country code: two letters (ISO 3166)");
	for (size_t i = 0; i < 2; i++)
		code[i] = text[i] >= 'a' && text[i] <= 'z' ? (char)(text[i] - 'a' + 'A') : text[i];
	return filter_text(option, code, err);
}

/* "KEY" or "KEY=VALUE"; the value stays in argv, the key is copied to be terminated. */
static int
filter_label(const struct args_option *option, const char *text, struct error *err)
{
	static char keys[QUERY_TERMS_MAX][64];
	size_t len = strcspn(text, "=");
	char *key = keys[log_filter.filter.term_count % QUERY_TERMS_MAX];

	if (len == 0 || len >= sizeof(keys[0]))
		return error_set(err, ERROR_USAGE, "not KEY or KEY=VALUE");
	memcpy(key, text, len);
	key[len] = '\0';
	if (filter_text(option, key, err) < 0)
		return -1;
	log_filter.terms[log_filter.filter.term_count - 1].value = text[len] == '=' ? text + len + 1 : NULL;
	return 0;
}

static int
filter_id(const struct args_option *option, const char *text, struct error *err)
{
	char *end;
	unsigned long long id = strtoull(text, &end, 16);

	if (strlen(text) > 16 || strspn(text, "0123456789abcdefABCDEF") != strlen(text) || end == text)
		return error_set(err, ERROR_USAGE, "not 16 hexadecimal digits, as in the log");
	return filter_add_range(option, (int64_t)id, (int64_t)id, err);
}

static int
filter_kind(const struct args_option *option, const char *text, struct error *err)
{
	static const struct {
		const char *word;
		unsigned int kind;
	} kinds[] = {{"connection", QUERY_CONNECTION}, {"dns", QUERY_DNS}, {"event", QUERY_EVENT}};

	(void)option;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (strcmp(text, kinds[i].word) != 0)
			continue;
		*(log_filter.negate ? &log_filter.not_kinds : &log_filter.kinds) |= kinds[i].kind;
		log_filter.negate = false;
		return 0;
	}
	return error_set(err, ERROR_USAGE, "not one of connection, dns, event");
}

const struct args_option log_filter_options[] = {
    {.help =
	    "Filters: only rows for which all of these hold; repeats of one are alternatives; operands are --sandbox:"},
    {0, "not", NULL, "negate the next filter", .flag = &log_filter.negate},
    {0, "sandbox", "NAME", "of this sandbox", .parse = filter_text, .field = QUERY_FIELD_SANDBOX},
    {0, "sandbox-id", "ID", "of the sandbox with this id: names can come again", .parse = filter_number,
	.field = QUERY_FIELD_SANDBOX_ID},
    {0, "label", "KEY[=VALUE]", "of sandboxes with this label", .parse = filter_label, .field = QUERY_FIELD_LABEL},
    {0, "denied", NULL, "what was not allowed", .parse = filter_denied, .field = QUERY_FIELD_DENIED},
    {0, "verdict", "WORD", "allowed, denied, limited, failed", .parse = filter_word, .field = QUERY_FIELD_VERDICT,
	.min = VERDICT_ALLOWED, .max = VERDICT_MAX, .words = verdict_text},
    {0, "reason", "WORD", "no_rule, rule_deny, never_address, ...", .parse = filter_word, .field = QUERY_FIELD_REASON,
	.min = REASON_ALLOWED, .max = REASON_MAX, .words = reason_text},
    {0, "host", "HOST", "about this host; *.example.com: about hosts below it", .parse = filter_host,
	.field = QUERY_FIELD_HOST},
    {0, "ip", "ADDRESS[/BITS]", "to this address or network; queries answered with it", .parse = filter_prefix,
	.field = QUERY_FIELD_IP},
    {0, "src", "ADDRESS[/BITS]", "from this address or network", .parse = filter_prefix, .field = QUERY_FIELD_SRC},
    {0, "port", "N[-M]", "to this port", .parse = filter_number, .field = QUERY_FIELD_PORT},
    {0, "proto", "WORD", "tcp, udp, icmp, icmp6 or a number", .parse = filter_rendered, .field = QUERY_FIELD_PROTO},
    {0, "rule", "TEXT", "decided by a rule with this in its text", .parse = filter_text, .field = QUERY_FIELD_RULE},
    {0, "end", "WORD", "that ended like this: fin, rst_origin, timeout, ...", .parse = filter_word,
	.field = QUERY_FIELD_END, .min = END_OPEN, .max = END_MAX, .words = record_end_text},
    {0, "country", "CC", "to this country", .parse = filter_country, .field = QUERY_FIELD_COUNTRY},
    {0, "asn", "N", "to this autonomous system", .parse = filter_number, .field = QUERY_FIELD_ASN},
    {0, "min-bytes", "SIZE", "that carried at least this much, both ways together: 1024, 10MiB", .parse = filter_bytes,
	.field = QUERY_FIELD_BYTES},
    {0, "qtype", "TYPE", "queries of this type: A, HTTPS, TXT, 65", .parse = filter_rendered,
	.field = QUERY_FIELD_QTYPE},
    {0, "event", "WORD", "events of this kind: attach, policy, mark, ...", .parse = filter_word,
	.field = QUERY_FIELD_EVENT, .min = EVENT_DAEMON_START, .max = EVENT_KIND_MAX, .words = record_event_text},
    {0, "kind", "KIND", "connection, dns or event", .parse = filter_kind},
    {0, "id", "ID", "the row with this id", .parse = filter_id, .field = QUERY_FIELD_ID},
    {.help = "Where and when:"},
    COMMAND_TIME("since", "from then on: 10m, 2h, 7d ago, or 2026-11-29T20:31:00Z", &log_filter.filter.since_us),
    COMMAND_TIME("until", "before then", &log_filter.filter.until_us),
    COMMAND_DB(&log_filter.db),
    {0},
};

int
log_filter_before(const struct args_option *option, struct error *err)
{
	/* Those between --not and the next heading can be negated. */
	for (const struct args_option *o = log_filter_options + 2; o->name != NULL; o++)
		if (o == option)
			return 0;
	return log_filter.negate ? error_set(err, ERROR_USAGE, "--not must stand before a filter") : 0;
}

int
log_filter_finish(
    const struct args_list *sandboxes, struct query_filter *ret_filter, const char **ret_db, struct error *err)
{
	static const struct args_option sandbox = {.field = QUERY_FIELD_SANDBOX};
	struct query_filter *filter = &log_filter.filter;

	if (log_filter.negate)
		return command_usage(err, "--not must stand before a filter");
	for (size_t i = 0; i < sandboxes->count; i++)
		if (filter_text(&sandbox, sandboxes->items[i], err) < 0)
			return -1;
	filter->terms = log_filter.terms;
	filter->kinds = (log_filter.kinds == 0 ? QUERY_ALL : log_filter.kinds) & ~log_filter.not_kinds;
	if (filter->kinds == 0)
		return command_usage(err, "no kind of rows is left");
	if (filter->until_us != 0 && filter->since_us >= filter->until_us)
		return command_usage(err, "--until is not after --since");
	if (!query_sql_possible(filter))
		return error_set(err, ERROR_USAGE,
		    "no kind of rows has all of this: events have neither host nor verdict, only queries have a type, "
		    "only connections an end, bytes and a place");
	*ret_filter = *filter;
	*ret_db = command_db(log_filter.db);
	return 0;
}
