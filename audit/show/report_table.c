/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Everything of the report that is rows: one engine, and a row in a table for each table. */
#include "audit/show/report_part.h"

#include "audit/record.h"
#include "audit/show/report_html.h"

#include <string.h>

#define COLUMNS_MAX 12
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* How a column's value is shown. */
enum report_kind {
	REPORT_NONE = 0,
	REPORT_NAME,  /* bytes that may be anything, the row's subject */
	REPORT_BYTES, /* bytes that may be anything */
	REPORT_LONG,  /* the same, a sentence or a list */
	REPORT_WORDS, /* UTF-8 */
	REPORT_COUNT,
	REPORT_SIZE,
	REPORT_BAR, /* a share from 0 to 1000, drawn */
	REPORT_TIME,
	REPORT_DURATION,
};

struct report_column {
	const char *title;
	enum report_kind kind;
};

struct report_table {
	const char *id, *title;
	const char *about; /* caption */
	const char *empty; /* sentence instead of a table without rows */
	bool folded;       /* behind its title, to be opened */
	const char *sql;
	struct report_column columns[COLUMNS_MAX];
};

#define WITHIN(t) t ".sandbox_id = :sandbox AND " t ".ts >= :since AND " t ".ts < :until"
/* What a row is about: its name, or what was said instead of one, or the address. */
#define CONNECTION_NAME(t) "coalesce(" t ".name, " t ".name_raw, " t ".dst, 'many addresses')"
#define QUESTION_NAME(t) "coalesce(" t ".qname, " t ".qname_raw, '.')"
#define PROTO(t)                                                                                                       \
	"CASE " t ".proto WHEN 6 THEN 'tcp' WHEN 17 THEN 'udp' WHEN 1 THEN 'icmp' WHEN 58 THEN 'icmp6' ELSE " t        \
	".proto END"
#define STEP(t) t ".sandbox_id = :sandbox AND " t ".ts >= s.ts AND " t ".ts < s.next"

_Static_assert(EVENT_MARK == 14, "the number in the SQL below");

/* clang-format off */
static const struct report_table tables_before_policy[] = {
    {"steps", "Steps of the agent",
     "What the agent said it was doing (postern mark), and what went on until it said the next thing.",
     "The agent marked no steps.", false,
     "WITH steps AS (SELECT ts, id, row_number() OVER (ORDER BY ts, id) AS n, CASE WHEN json_valid(detail) THEN "
     "detail ->> '$.text' END AS words, coalesce(lead(ts) OVER (ORDER BY ts, id), :until) AS next FROM events e "
     "WHERE " WITHIN("e") " AND e.kind = 14) SELECT n, ts, words, (SELECT count(*) FROM connections c WHERE "
     STEP("c") " AND c.verdict = 0), (SELECT coalesce(sum_capped(c.count), 0) FROM connections c WHERE " STEP("c") " "
     "AND c.verdict <> 0) + (SELECT coalesce(sum_capped(d.count), 0) FROM dns d WHERE " STEP("d") " AND d.verdict <> "
     "0), (SELECT sum_capped(c.bytes_out) FROM connections c WHERE " STEP("c") "), (SELECT group_concat(x, ', ') "
     "FROM (SELECT DISTINCT coalesce(c.name, c.dst) AS x FROM connections c WHERE " STEP("c") " AND c.verdict = 0 "
     "LIMIT 12)), (SELECT group_concat(x, ', ') FROM (SELECT DISTINCT coalesce(c.name, c.dst) AS x FROM connections "
     "c WHERE " STEP("c") " AND c.verdict <> 0 UNION SELECT DISTINCT d.qname FROM dns d WHERE " STEP("d") " AND "
     "d.verdict <> 0 LIMIT 12)) FROM steps s ORDER BY n LIMIT :max",
     {{"Step", REPORT_COUNT}, {"Time (UTC)", REPORT_TIME}, {"What it said", REPORT_WORDS}, {"Allowed", REPORT_COUNT},
      {"Refused", REPORT_COUNT}, {"Sent", REPORT_SIZE}, {"Reached (at most 12)", REPORT_LONG},
      {"Refused (at most 12)", REPORT_LONG}}},
    {"allowed", "Allowed, by name", "Connections that were let through, most used first.",
     "Nothing was let through.", false,
     "SELECT " CONNECTION_NAME("c") ", replace(group_concat(DISTINCT " PROTO("c") " || '/' || c.dport), ',', ', '), "
     "replace(group_concat(DISTINCT n.word), ',', ', '), count(*), sum_capped(c.bytes_out), sum_capped(c.bytes_in), "
     "min(c.ts), max(c.ts), max(c.rule) FROM connections c LEFT JOIN name_sources n ON n.id = c.name_source WHERE "
     WITHIN("c") " AND c.verdict = 0 GROUP BY 1 ORDER BY 4 DESC, 1 LIMIT :max",
     {{"Name", REPORT_NAME}, {"Ports", REPORT_BYTES}, {"Proof of the name", REPORT_BYTES},
      {"Connections", REPORT_COUNT}, {"Sent", REPORT_SIZE}, {"Received", REPORT_SIZE}, {"First (UTC)", REPORT_TIME},
      {"Last (UTC)", REPORT_TIME}, {"Rule", REPORT_LONG}}},
    {"refused", "Refused, by name",
     "Connections, questions and packets that were refused, limited or failed, most tried first.",
     "Nothing was refused.", false,
     "SELECT x, what, r.word, r.sentence, v.word, sum_capped(count), min(ts), max(ts) FROM (SELECT "
     CONNECTION_NAME("c") " AS x, " PROTO("c") " || '/' || c.dport AS what, c.reason, c.verdict, c.count, c.ts FROM "
     "connections c WHERE " WITHIN("c") " AND c.verdict <> 0 UNION ALL SELECT " QUESTION_NAME("d") ", 'DNS "
     "question', d.reason, d.verdict, d.count, d.ts FROM dns d WHERE " WITHIN("d") " AND d.verdict <> 0) q LEFT JOIN "
     "reasons r ON r.id = q.reason LEFT JOIN verdicts v ON v.id = q.verdict GROUP BY x, what, q.reason, q.verdict "
     "ORDER BY 6 DESC, 1 LIMIT :max",
     {{"Name", REPORT_NAME}, {"What", REPORT_BYTES}, {"Reason", REPORT_BYTES}, {"In words", REPORT_LONG},
      {"Verdict", REPORT_BYTES}, {"Times", REPORT_COUNT}, {"First (UTC)", REPORT_TIME}, {"Last (UTC)", REPORT_TIME}}},
    {"sent", "Bytes out, by destination", "Where payload went, most first.", "No payload was sent.", false,
     "SELECT c.dst, replace(group_concat(DISTINCT c.name), ',', ', '), sum_capped(c.bytes_out) * 1000 / (SELECT "
     "max(m, 1) FROM (SELECT max(b) AS m FROM (SELECT sum_capped(x.bytes_out) AS b FROM connections x WHERE "
     WITHIN("x") " GROUP BY x.dst))), sum_capped(c.bytes_out), sum_capped(c.bytes_in), count(*), max(c.country), "
     "max(c.asn), max(c.as_org) FROM connections c WHERE " WITHIN("c") " AND c.bytes_out > 0 GROUP BY c.dst ORDER BY "
     "4 DESC, 1 LIMIT :max",
     {{"Address", REPORT_NAME}, {"Names", REPORT_LONG}, {"Share", REPORT_BAR}, {"Sent", REPORT_SIZE},
      {"Received", REPORT_SIZE}, {"Connections", REPORT_COUNT}, {"Country", REPORT_BYTES}, {"AS", REPORT_BYTES},
      {"Network", REPORT_BYTES}}},
    {"first", "Names, as they were first seen",
     "Each name asked for or connected to, in the order in which it came up; whether any sandbox of this log had met "
     "it before.",
     "No names came up.", false,
     "SELECT x, first, allowed, CASE WHEN EXISTS (SELECT 1 FROM connections c WHERE c.name = x AND c.verdict IN (0, "
     "1, 2, 3) AND c.ts < first) OR EXISTS (SELECT 1 FROM dns d WHERE d.qname = x AND d.verdict IN (0, 1, 2, 3) AND "
     "d.ts < first) THEN 'before' ELSE 'new' END FROM (SELECT x, min(ts) AS first, max(allowed) AS allowed FROM "
     "(SELECT c.name AS x, c.ts, CASE c.verdict WHEN 0 THEN 'yes' ELSE 'no' END AS allowed FROM connections c WHERE "
     WITHIN("c") " AND c.name IS NOT NULL UNION ALL SELECT d.qname, d.ts, CASE d.verdict WHEN 0 THEN 'yes' ELSE 'no' "
     "END FROM dns d WHERE " WITHIN("d") " AND d.qname IS NOT NULL) GROUP BY x ORDER BY 2, 1 LIMIT :max) ORDER BY 2, "
     "1",
     {{"Name", REPORT_NAME}, {"First (UTC)", REPORT_TIME}, {"Allowed", REPORT_BYTES}, {"In this log", REPORT_BYTES}}},
    {"domains", "Questions, by registered domain",
     "Many names of great entropy under one domain are how data leaves through questions. Entropy is of the "
     "characters before the domain, in bits a character.",
     "No questions were asked.", false,
     "SELECT d.domain, sum_capped(d.count), count(DISTINCT d.qname), sum_capped(CASE WHEN d.verdict <> 0 THEN "
     "d.count ELSE 0 END), max(length(d.qname)), printf('%.2f', avg(d.entropy) / 100.0), printf('%.2f', "
     "max(d.entropy) / 100.0) FROM dns d WHERE " WITHIN("d") " AND d.domain IS NOT NULL GROUP BY 1 ORDER BY 3 DESC, "
     "2 DESC, 1 LIMIT :max",
     {{"Domain", REPORT_NAME}, {"Questions", REPORT_COUNT}, {"Different names", REPORT_COUNT},
      {"Refused", REPORT_COUNT}, {"Longest name", REPORT_COUNT}, {"Mean entropy", REPORT_BYTES},
      {"Highest", REPORT_BYTES}}},
};

static const struct report_table tables_after_policy[] = {
    {"events", "Events", "Policy changes, grants that ended, limits, attach and detach; of the daemon as well.",
     "There were no events.", false,
     "SELECT e.ts, k.word, e.uid, e.detail FROM events e LEFT JOIN event_kinds k ON k.id = e.kind WHERE e.sandbox_id "
     "IN (:sandbox, 0) AND e.kind <> 14 AND e.ts >= max(:since, :from) AND e.ts < :until AND e.ts <= :to ORDER BY "
     "e.ts, e.id LIMIT :max",
     {{"Time (UTC)", REPORT_TIME}, {"Event", REPORT_NAME}, {"By uid", REPORT_BYTES}, {"Details", REPORT_LONG}}},
    {"last", "Connections, the newest", "The newest first.", "There were no connections.", true,
     "SELECT c.ts, v.word, " CONNECTION_NAME("c") ", c.dst || ' ' || " PROTO("c") " || '/' || c.dport, c.count, "
     "c.bytes_out, c.bytes_in, c.duration_us, e.word, r.word, c.rule FROM connections c LEFT JOIN verdicts v ON v.id "
     "= c.verdict LEFT JOIN ends e ON e.id = c.end LEFT JOIN reasons r ON r.id = c.reason WHERE " WITHIN("c") " "
     "ORDER BY c.ts DESC, c.id DESC LIMIT :max",
     {{"Time (UTC)", REPORT_TIME}, {"Verdict", REPORT_BYTES}, {"Name", REPORT_NAME}, {"Address", REPORT_BYTES},
      {"Count", REPORT_COUNT}, {"Sent", REPORT_SIZE}, {"Received", REPORT_SIZE}, {"Duration", REPORT_DURATION},
      {"End", REPORT_BYTES}, {"Reason", REPORT_BYTES}, {"Rule", REPORT_LONG}}},
};
/* clang-format on */

static const char *
report_class(enum report_kind kind)
{
	switch (kind) {
	case REPORT_NAME:
		return "name";
	case REPORT_COUNT:
	case REPORT_SIZE:
	case REPORT_DURATION:
		return "n";
	case REPORT_BAR:
		return "b";
	case REPORT_TIME:
		return "t";
	case REPORT_LONG:
	case REPORT_WORDS:
		return "s";
	case REPORT_NONE:
	case REPORT_BYTES:
		break;
	}
	return "";
}

static void
report_bar(FILE *out, int64_t share)
{
	int width = share < 0 ? 0 : share > 1000 ? 1000 : (int)share;

	fprintf(out,
	    "<svg class=\"bar\" viewBox=\"0 0 1000 10\" preserveAspectRatio=\"none\" aria-hidden=\"true\">"
	    "<rect class=\"o\" width=\"%d\" height=\"10\"/></svg>",
	    width);
}

static void
report_cell(FILE *out, struct rows *rows, int column, enum report_kind kind)
{
	int64_t number = rows_integer(rows, column);
	const char *bytes;
	size_t len;

	if (rows_type(rows, column) == ROWS_NULL) {
		fputs("–", out);
		return;
	}
	switch (kind) {
	case REPORT_NONE:
		break;
	case REPORT_NAME:
	case REPORT_BYTES:
	case REPORT_LONG:
	case REPORT_WORDS:
		bytes = rows_text(rows, column, &len);
		(kind == REPORT_WORDS ? report_html_utf8 : report_html_bytes)(out, bytes, len);
		break;
	case REPORT_COUNT:
		report_html_count(out, number);
		break;
	case REPORT_SIZE:
		report_html_size(out, number);
		break;
	case REPORT_BAR:
		report_bar(out, number);
		break;
	case REPORT_TIME:
		report_html_time(out, number);
		break;
	case REPORT_DURATION:
		report_html_duration(out, number);
		break;
	}
}

static void
report_head(FILE *out, const struct report_table *table)
{
	fprintf(out,
	    "<div class=\"wide\" role=\"region\" aria-labelledby=\"%s\" tabindex=\"0\"><table><caption>%s</caption>"
	    "<thead><tr>",
	    table->id, table->about);
	for (size_t i = 0; i < COLUMNS_MAX && table->columns[i].kind != REPORT_NONE; i++)
		fprintf(out, "<th scope=\"col\"%s>%s</th>",
		    strcmp(report_class(table->columns[i].kind), "n") == 0 ? " class=\"n\"" : "",
		    table->columns[i].title);
	fputs("</tr></thead><tbody>\n", out);
}

static void
report_row(FILE *out, struct rows *rows, const struct report_table *table)
{
	fputs("<tr>", out);
	for (size_t i = 0; i < COLUMNS_MAX && table->columns[i].kind != REPORT_NONE; i++) {
		const char *class = report_class(table->columns[i].kind);

		fputs("<td", out);
		if (*class != '\0')
			fprintf(out, " class=\"%s\"", class);
		putc('>', out);
		report_cell(out, rows, (int)i, table->columns[i].kind);
		fputs("</td>", out);
	}
	fputs("</tr>\n", out);
}

static void
report_rows_end(FILE *out, size_t rows, const struct report_table *table)
{
	if (rows > 0)
		fputs("</tbody></table></div>", out);
	else
		fprintf(out, "<p class=\"dim\">%s</p>", table->empty);
	if (rows > REPORT_ROWS_MAX)
		fprintf(out,
		    "<p class=\"dim\">There are more; %d are shown. <code>postern log</code> has them all.</p>",
		    REPORT_ROWS_MAX);
}

static int
report_table(const struct report *report, const struct report_table *table, struct error *err)
{
	FILE *out = report->out;
	struct rows rows;
	size_t count = 0;

	report_prepare(report, &rows, table->sql, err);
	fprintf(out, "<section><h2 id=\"%s\">%s</h2>\n", table->id, table->title);
	if (table->folded)
		fputs("<details><summary>Show them</summary>", out);
	while (rows_next(&rows)) {
		if (count++ == REPORT_ROWS_MAX)
			break;
		if (count == 1)
			report_head(out, table);
		report_row(out, &rows, table);
	}
	report_rows_end(out, count, table);
	fprintf(out, "%s</section>\n", table->folded ? "</details>" : "");
	return rows_finish(&rows);
}

static void
report_label(FILE *out, const struct report_table *table)
{
	for (size_t i = 0; i < COLUMNS_MAX && table->columns[i].kind != REPORT_NONE; i++)
		fprintf(out, "[aria-labelledby=%s] td:nth-child(%zu)::before{content:\"%s\"}\n", table->id, i + 1,
		    table->columns[i].title);
}

void
report_table_labels(FILE *out)
{
	for (size_t i = 0; i < COUNT(tables_before_policy); i++)
		report_label(out, &tables_before_policy[i]);
	for (size_t i = 0; i < COUNT(tables_after_policy); i++)
		report_label(out, &tables_after_policy[i]);
}

int
report_table_before_policy(const struct report *report, struct error *err)
{
	for (size_t i = 0; i < COUNT(tables_before_policy); i++)
		if (report_table(report, &tables_before_policy[i], err) < 0)
			return -1;
	return 0;
}

int
report_table_after_policy(const struct report *report, struct error *err)
{
	for (size_t i = 0; i < COUNT(tables_after_policy); i++)
		if (report_table(report, &tables_after_policy[i], err) < 0)
			return -1;
	return 0;
}
