/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/log/log_filter.h"

#include "audit/record.h"
#include "audit/show/render.h"
#include "base/clock.h"
#include "base/paths.h"
#include "cli/when.h"
#include "policy/text/quantity.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char log_filter_usage[] =
    "Only rows for which all of these hold; repeats of one are alternatives, and --not turns the next one round:\n"
    "  NAME, --sandbox NAME      of this sandbox\n"
    "  --sandbox-id ID           of the one with this id: a name may come again\n"
    "  --label KEY[=VALUE]       of sandboxes with this label\n"
    "  --denied                  what was not allowed\n"
    "  --verdict WORD            allowed, denied, limited, failed\n"
    "  --reason WORD             no_rule, rule_deny, never_address, ...\n"
    "  --host HOST               about this host; *.example.com: about hosts below it\n"
    "  --ip ADDRESS[/BITS]       to this address or network; queries answered with it\n"
    "  --src ADDRESS[/BITS]      from this address or network\n"
    "  --port N[-M]              to this port\n"
    "  --proto WORD              tcp, udp, icmp, icmp6 or a number\n"
    "  --rule TEXT               decided by a rule with this in its text\n"
    "  --end WORD                ended like this: fin, rst_origin, timeout, ...\n"
    "  --country CC, --asn N     to there\n"
    "  --min-bytes N             that carried so much, out and in together: 1024, 10MiB\n"
    "  --qtype TYPE              queries of this type: A, HTTPS, TXT, 65\n"
    "  --event WORD              events of this kind: attach, policy, mark, ...\n"
    "  --kind KIND               connection, dns or event\n"
    "  --id ID                   the row with this id\n"
    "  --since TIME              from then on: 10m, 2h, 7d ago, or 2026-11-29T20:31:00Z\n"
    "  --until TIME              before then\n"
    "  --db FILE                 read this database\n";

enum log_filter_option {
	LOG_FILTER_NOT = LOG_FILTER_FIRST,
	LOG_FILTER_SANDBOX,
	LOG_FILTER_SANDBOX_ID,
	LOG_FILTER_LABEL,
	LOG_FILTER_DENIED,
	LOG_FILTER_VERDICT,
	LOG_FILTER_REASON,
	LOG_FILTER_HOST,
	LOG_FILTER_IP,
	LOG_FILTER_SRC,
	LOG_FILTER_PORT,
	LOG_FILTER_PROTO,
	LOG_FILTER_RULE,
	LOG_FILTER_END,
	LOG_FILTER_COUNTRY,
	LOG_FILTER_ASN,
	LOG_FILTER_BYTES,
	LOG_FILTER_QTYPE,
	LOG_FILTER_EVENT,
	LOG_FILTER_KIND,
	LOG_FILTER_ID,
	LOG_FILTER_SINCE,
	LOG_FILTER_UNTIL,
	LOG_FILTER_DB,
	LOG_FILTER_END_OF_OPTIONS
};

static const struct option filter_options[] = {
    {"not", no_argument, NULL, LOG_FILTER_NOT},
    {"sandbox", required_argument, NULL, LOG_FILTER_SANDBOX},
    {"sandbox-id", required_argument, NULL, LOG_FILTER_SANDBOX_ID},
    {"label", required_argument, NULL, LOG_FILTER_LABEL},
    {"denied", no_argument, NULL, LOG_FILTER_DENIED},
    {"verdict", required_argument, NULL, LOG_FILTER_VERDICT},
    {"reason", required_argument, NULL, LOG_FILTER_REASON},
    {"host", required_argument, NULL, LOG_FILTER_HOST},
    {"ip", required_argument, NULL, LOG_FILTER_IP},
    {"src", required_argument, NULL, LOG_FILTER_SRC},
    {"port", required_argument, NULL, LOG_FILTER_PORT},
    {"proto", required_argument, NULL, LOG_FILTER_PROTO},
    {"rule", required_argument, NULL, LOG_FILTER_RULE},
    {"end", required_argument, NULL, LOG_FILTER_END},
    {"country", required_argument, NULL, LOG_FILTER_COUNTRY},
    {"asn", required_argument, NULL, LOG_FILTER_ASN},
    {"min-bytes", required_argument, NULL, LOG_FILTER_BYTES},
    {"qtype", required_argument, NULL, LOG_FILTER_QTYPE},
    {"event", required_argument, NULL, LOG_FILTER_EVENT},
    {"kind", required_argument, NULL, LOG_FILTER_KIND},
    {"id", required_argument, NULL, LOG_FILTER_ID},
    {"since", required_argument, NULL, LOG_FILTER_SINCE},
    {"until", required_argument, NULL, LOG_FILTER_UNTIL},
    {"db", required_argument, NULL, LOG_FILTER_DB},
};
#define FILTER_OPTIONS (sizeof(filter_options) / sizeof(filter_options[0]))

/* A place for one more term, filled but for what is asked. */
static struct query_term *
filter_add(struct log_filter *filter, enum query_field field, struct error *err)
{
	struct query_term *term = &filter->terms[filter->filter.term_count];

	if (filter->filter.term_count == QUERY_TERMS_MAX) {
		error_set(err, ERROR_USAGE, "more than %d filters", QUERY_TERMS_MAX);
		return NULL;
	}
	memset(term, 0, sizeof(*term));
	term->field = field;
	term->negated = filter->negate;
	filter->filter.term_count++;
	return term;
}

static int
filter_add_range(struct log_filter *filter, enum query_field field, int64_t low, int64_t high, struct error *err)
{
	struct query_term *term = filter_add(filter, field, err);

	if (term == NULL)
		return -1;
	term->low = low;
	term->high = high;
	return 0;
}

static int
filter_add_text(
    struct log_filter *filter, enum query_field field, const char *text, const char *value, struct error *err)
{
	struct query_term *term = filter_add(filter, field, err);

	if (term == NULL)
		return -1;
	term->text = text;
	term->value = value;
	return 0;
}

/* One of the words that word() gives from first up to, not including, max; the message of a wrong one lists them. */
static int
filter_add_word(struct log_filter *filter, enum query_field field, const char *option, const char *text,
    unsigned int first, unsigned int max, const char *(*word)(unsigned int), struct error *err)
{
	char words[ERROR_TEXT_MAX / 2] = "";
	size_t len = 0;

	for (unsigned int i = first; i < max; i++) {
		if (strcmp(text, word(i)) == 0)
			return filter_add_range(filter, field, i, i, err);
		len += (size_t)snprintf(words + len, sizeof(words) - len, "%s%s", i == first ? "" : ", ", word(i));
		if (len >= sizeof(words))
			len = sizeof(words) - 1;
	}
	return error_set(err, ERROR_USAGE, "--%s %.60s: one of %s", option, text, words);
}

static int
filter_add_host(struct log_filter *filter, const char *text, struct error *err)
{
	struct query_term *term = filter_add(filter, QUERY_FIELD_HOST, err);
	enum name_error bad;

	if (term == NULL)
		return -1;
	term->below = strncmp(text, "*.", 2) == 0;
	if (term->below)
		text += 2;
	bad = name_from_user(text, strlen(text), &term->name);
	return bad == NAME_OK ? 0 : error_set(err, ERROR_USAGE, "--host %.100s: %s", text, name_error_text(bad));
}

static int
filter_add_prefix(
    struct log_filter *filter, enum query_field field, const char *option, const char *text, struct error *err)
{
	struct query_term *term = filter_add(filter, field, err);

	if (term == NULL)
		return -1;
	if (!prefix_parse(text, strlen(text), &term->prefix))
		return error_set(err, ERROR_USAGE,
		    "--%s %.100s: not an address, nor a network (192.0.2.0/24, 2001:db8::/32, no bits set behind the "
		    "length)",
		    option, text);
	return 0;
}

/* "N" or, with range, "N-M". */
static int
filter_add_number(struct log_filter *filter, enum query_field field, const char *option, const char *text, bool range,
    uint64_t max, struct error *err)
{
	size_t len = range ? strcspn(text, "-") : strlen(text);
	uint64_t low, high;

	if (!quantity_parse_count(text, len, max, &low))
		return error_set(
		    err, ERROR_USAGE, "--%s %.60s: not a number up to %llu", option, text, (unsigned long long)max);
	high = low;
	if (text[len] == '-' &&
	    (!quantity_parse_count(text + len + 1, strlen(text + len + 1), max, &high) || high < low))
		return error_set(err, ERROR_USAGE, "--%s %.60s: not a range", option, text);
	return filter_add_range(filter, field, (int64_t)low, (int64_t)high, err);
}

/* A number, or what render() makes of one, in either case. */
static int
filter_add_rendered(struct log_filter *filter, enum query_field field, const char *option, const char *text,
    int64_t max, const char *(*render)(int64_t value, char ret_text[32]), struct error *err)
{
	uint64_t number;
	char word[32];

	if (quantity_parse_count(text, strlen(text), (uint64_t)max, &number))
		return filter_add_range(filter, field, (int64_t)number, (int64_t)number, err);
	for (int64_t i = 0; i <= max; i++)
		if (strcasecmp(render(i, word), text) == 0)
			return filter_add_range(filter, field, i, i, err);
	return error_set(
	    err, ERROR_USAGE, "--%s %.60s: neither a known word nor a number up to %lld", option, text, (long long)max);
}

static int
filter_add_bytes(struct log_filter *filter, const char *text, struct error *err)
{
	uint64_t bytes;

	if (!quantity_parse_size(text, strlen(text), INT64_MAX, &bytes))
		return error_set(err, ERROR_USAGE, "--min-bytes %.60s: not a size (1024, 10MiB)", text);
	return filter_add_range(filter, QUERY_FIELD_BYTES, (int64_t)bytes, INT64_MAX, err);
}

/* As the database writes it. */
static int
filter_add_country(struct log_filter *filter, const char *text, struct error *err)
{
	static char codes[QUERY_TERMS_MAX][3];
	char *code = codes[filter->filter.term_count % QUERY_TERMS_MAX];

	if (strlen(text) != 2)
		return error_set(err, ERROR_USAGE, "--country %.60s: two letters (ISO 3166)", text);
	for (size_t i = 0; i < 2; i++)
		code[i] = text[i] >= 'a' && text[i] <= 'z' ? (char)(text[i] - 'a' + 'A') : text[i];
	return filter_add_text(filter, QUERY_FIELD_COUNTRY, code, NULL, err);
}

/* "KEY" or "KEY=VALUE"; the value stays in argv, the key is copied, to be ended. */
static int
filter_add_label(struct log_filter *filter, const char *text, struct error *err)
{
	static char keys[QUERY_TERMS_MAX][64];
	size_t len = strcspn(text, "=");
	char *key = keys[filter->filter.term_count % QUERY_TERMS_MAX];

	if (len == 0 || len >= sizeof(keys[0]))
		return error_set(err, ERROR_USAGE, "--label %.100s: KEY or KEY=VALUE", text);
	memcpy(key, text, len);
	key[len] = '\0';
	return filter_add_text(filter, QUERY_FIELD_LABEL, key, text[len] == '=' ? text + len + 1 : NULL, err);
}

static int
filter_add_asn(struct log_filter *filter, const char *text, struct error *err)
{
	if (strncasecmp(text, "as", 2) == 0)
		text += 2;
	return filter_add_number(filter, QUERY_FIELD_ASN, "asn", text, false, UINT32_MAX, err);
}

/* 16 hexadecimal digits, as shown. */
static int
filter_add_id(struct log_filter *filter, const char *text, struct error *err)
{
	char *end;
	unsigned long long id = strtoull(text, &end, 16);

	if (strlen(text) > 16 || strspn(text, "0123456789abcdefABCDEF") != strlen(text) || end == text)
		return error_set(err, ERROR_USAGE, "--id %.60s: 16 hexadecimal digits, as in the log", text);
	return filter_add_range(filter, QUERY_FIELD_ID, (int64_t)id, (int64_t)id, err);
}

static int
filter_set_kind(struct log_filter *filter, const char *text, struct error *err)
{
	static const struct {
		const char *word;
		unsigned int kind;
	} kinds[] = {{"connection", QUERY_CONNECTION}, {"dns", QUERY_DNS}, {"event", QUERY_EVENT}};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (strcmp(text, kinds[i].word) != 0)
			continue;
		*(filter->negate ? &filter->not_kinds : &filter->kinds) |= kinds[i].kind;
		return 0;
	}
	return error_set(err, ERROR_USAGE, "--kind %.60s: connection, dns or event", text);
}

static int
filter_set_db(struct log_filter *filter, const char *path, struct error *err)
{
	if (strlen(path) >= sizeof(filter->db))
		return error_set(err, ERROR_USAGE, "--db: the path is too long");
	memcpy(filter->db, path, strlen(path) + 1);
	return 0;
}

/* What can be negated. */
static int
filter_set_term(struct log_filter *filter, enum log_filter_option option, const char *value, struct error *err)
{
	switch (option) {
	case LOG_FILTER_SANDBOX:
		return filter_add_text(filter, QUERY_FIELD_SANDBOX, value, NULL, err);
	case LOG_FILTER_SANDBOX_ID:
		return filter_add_number(filter, QUERY_FIELD_SANDBOX_ID, "sandbox-id", value, false, INT64_MAX, err);
	case LOG_FILTER_LABEL:
		return filter_add_label(filter, value, err);
	case LOG_FILTER_DENIED:
		return filter_add_range(filter, QUERY_FIELD_DENIED, VERDICT_ALLOWED + 1, INT64_MAX, err);
	case LOG_FILTER_VERDICT:
		return filter_add_word(
		    filter, QUERY_FIELD_VERDICT, "verdict", value, VERDICT_ALLOWED, VERDICT_MAX, verdict_text, err);
	case LOG_FILTER_REASON:
		return filter_add_word(
		    filter, QUERY_FIELD_REASON, "reason", value, REASON_ALLOWED, REASON_MAX, reason_text, err);
	case LOG_FILTER_HOST:
		return filter_add_host(filter, value, err);
	case LOG_FILTER_IP:
		return filter_add_prefix(filter, QUERY_FIELD_IP, "ip", value, err);
	case LOG_FILTER_SRC:
		return filter_add_prefix(filter, QUERY_FIELD_SRC, "src", value, err);
	case LOG_FILTER_PORT:
		return filter_add_number(filter, QUERY_FIELD_PORT, "port", value, true, UINT16_MAX, err);
	case LOG_FILTER_PROTO:
		return filter_add_rendered(filter, QUERY_FIELD_PROTO, "proto", value, UINT8_MAX, render_proto, err);
	case LOG_FILTER_RULE:
		return filter_add_text(filter, QUERY_FIELD_RULE, value, NULL, err);
	case LOG_FILTER_END:
		return filter_add_word(filter, QUERY_FIELD_END, "end", value, END_OPEN, END_MAX, end_reason_text, err);
	case LOG_FILTER_COUNTRY:
		return filter_add_country(filter, value, err);
	case LOG_FILTER_ASN:
		return filter_add_asn(filter, value, err);
	case LOG_FILTER_BYTES:
		return filter_add_bytes(filter, value, err);
	case LOG_FILTER_QTYPE:
		return filter_add_rendered(filter, QUERY_FIELD_QTYPE, "qtype", value, UINT16_MAX, render_qtype, err);
	case LOG_FILTER_EVENT:
		return filter_add_word(filter, QUERY_FIELD_EVENT, "event", value, EVENT_DAEMON_START, EVENT_KIND_MAX,
		    event_kind_text, err);
	case LOG_FILTER_KIND:
		return filter_set_kind(filter, value, err);
	case LOG_FILTER_ID:
		return filter_add_id(filter, value, err);
	case LOG_FILTER_NOT:
	case LOG_FILTER_SINCE:
	case LOG_FILTER_UNTIL:
	case LOG_FILTER_DB:
	case LOG_FILTER_END_OF_OPTIONS:
		break;
	}
	return error_set(err, ERROR_USAGE, "--not stands in front of a filter other than --since, --until and --not");
}

void
log_filter_init(struct log_filter *filter)
{
	memset(filter, 0, sizeof(*filter));
	filter->filter.terms = filter->terms;
	snprintf(filter->db, sizeof(filter->db), "%s/audit/audit.db", paths_state_dir());
}

void
log_filter_options(const struct option *own, struct option ret_options[LOG_FILTER_OPTIONS_MAX])
{
	size_t count = 0;

	for (; own[count].name != NULL; count++)
		ret_options[count] = own[count];
	memcpy(ret_options + count, filter_options, sizeof(filter_options));
	ret_options[count + FILTER_OPTIONS] = (struct option){.name = NULL};
}

int
log_filter_set(struct log_filter *filter, int option, const char *value, struct error *err)
{
	int64_t *time_us = option == LOG_FILTER_SINCE ? &filter->filter.since_us : &filter->filter.until_us;
	int rc;

	if (option < LOG_FILTER_FIRST || option >= LOG_FILTER_END_OF_OPTIONS) {
		if (filter->negate)
			return error_set(err, ERROR_USAGE, "--not stands in front of a filter");
		return 0;
	}
	if (option == LOG_FILTER_NOT && !filter->negate) {
		filter->negate = true;
		return 1;
	}
	if (filter->negate || (option != LOG_FILTER_SINCE && option != LOG_FILTER_UNTIL && option != LOG_FILTER_DB)) {
		rc = filter_set_term(filter, (enum log_filter_option)option, value, err);
		filter->negate = false;
		return rc < 0 ? -1 : 1;
	}
	rc = option == LOG_FILTER_DB ? filter_set_db(filter, value, err)
				     : when_parse(value, clock_real_us(), time_us, err);
	return rc < 0 ? -1 : 1;
}

int
log_filter_add_sandbox(struct log_filter *filter, const char *name, struct error *err)
{
	return filter_add_text(filter, QUERY_FIELD_SANDBOX, name, NULL, err);
}

int
log_filter_finish(struct log_filter *filter, struct error *err)
{
	unsigned int kinds = (filter->kinds == 0 ? QUERY_ALL : filter->kinds) & ~filter->not_kinds;

	if (filter->negate)
		return error_set(err, ERROR_USAGE, "--not stands in front of a filter");
	if (kinds == 0)
		return error_set(err, ERROR_USAGE, "no kind of rows is left");
	filter->filter.kinds = kinds;
	if (filter->filter.until_us != 0 && filter->filter.since_us >= filter->filter.until_us)
		return error_set(err, ERROR_USAGE, "--until is not after --since");
	if (!query_filter_possible(&filter->filter))
		return error_set(err, ERROR_USAGE,
		    "no kind of rows has all of this: events have neither host nor verdict, only queries have a type, "
		    "only connections an end, bytes and a place");
	return 0;
}
