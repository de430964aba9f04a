/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "audit/show/report.h"

#include "audit/show/report_html.h"
#include "audit/show/report_part.h"
#include "audit/show/report_style.h"
#include "audit/query/saturate.h"

#include <openssl/evp.h>
#include <openssl/sha.h>
#include <stdlib.h>
#include <string.h>

#define REPORT_UNREADABLE "the audit log cannot be read"

void
report_prepare(const struct report *report, struct rows *ret_rows, const char *sql, struct error *err)
{
	rows_prepare(ret_rows, report->db, sql, REPORT_UNREADABLE, err);
	rows_set_named(ret_rows, ":sandbox", report->sandbox_id);
	rows_set_named(ret_rows, ":since", report->since_us);
	rows_set_named(ret_rows, ":until", report->until_us);
	rows_set_named(ret_rows, ":from", report->from_us);
	rows_set_named(ret_rows, ":to", report->to_us);
	rows_set_named(ret_rows, ":max", REPORT_ROWS_MAX + 1);
}

int
report_find(struct sqlite3 *db, const struct report_options *options, int64_t *ret_id, int64_t *ret_attached_us,
    struct error *err)
{
	/* The id is this time, too, or just after the one before it where the clock had been set back. */
	static const char sql[] =
	    "SELECT id, min(id, coalesce(attached_ts, id)) FROM sandboxes WHERE (?1 IS NULL OR name = ?1) AND "
	    "(?2 = 0 OR id = ?2) ORDER BY id DESC LIMIT 1";
	struct rows rows;
	bool found;

	rows_prepare(&rows, db, sql, REPORT_UNREADABLE, err);
	rows_set_text(&rows, 1, options->sandbox);
	rows_set_integer(&rows, 2, options->sandbox_id);
	found = rows_next(&rows);
	if (found) {
		*ret_id = rows_integer(&rows, 0);
		*ret_attached_us = rows_integer(&rows, 1);
	}
	if (rows_finish(&rows) < 0)
		return -1;
	return found ? 0
		     : error_set(err, ERROR_NOT_FOUND, "no sandbox %s in this log",
			   options->sandbox != NULL ? options->sandbox : "with that id");
}

/* First and last sign of life, for the time line. */
static int
report_find_bounds(struct report *report, struct error *err)
{
	static const char sql[] =
	    "SELECT min(a), max(b) FROM (SELECT attached_ts AS a, coalesce(detached_ts, attached_ts) AS b FROM "
	    "sandboxes "
	    "WHERE id = :sandbox UNION ALL SELECT min(ts), max(max(ts), coalesce(max(closed_ts), 0), "
	    "coalesce(max(last_ts), 0)) FROM connections c WHERE sandbox_id = :sandbox AND ts >= :since AND ts < "
	    ":until "
	    "UNION ALL SELECT min(ts), max(ts) FROM dns WHERE sandbox_id = :sandbox AND ts >= :since AND ts < :until "
	    "UNION ALL SELECT min(ts), max(ts) FROM events WHERE sandbox_id = :sandbox AND ts >= :since AND ts < "
	    ":until)";
	struct rows rows;

	report_prepare(report, &rows, sql, err);
	if (rows_next(&rows)) {
		report->from_us = rows_integer(&rows, 0);
		report->to_us = rows_integer(&rows, 1);
	}
	if (report->options->since_us != 0 && report->from_us < report->since_us)
		report->from_us = report->since_us;
	if (report->options->until_us != 0 && report->to_us > report->until_us)
		report->to_us = report->until_us;
	if (report->to_us <= report->from_us)
		report->to_us = saturate_add(report->from_us, 1000000);
	return rows_finish(&rows);
}

static void
report_text(FILE *out, struct rows *rows, int column)
{
	size_t len;
	const char *text = rows_text(rows, column, &len);

	if (rows_type(rows, column) == ROWS_NULL)
		fputs("–", out);
	else
		report_html_utf8(out, text, len);
}

/* The sheet and what belongs to its end; the caller frees it. NULL: no memory. */
static char *
report_sheet(void)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (out == NULL)
		return NULL;
	fprintf(out, "%s@media screen and (max-width:" REPORT_NARROW "){\n", report_style);
	report_table_labels(out);
	fputs("}\n", out);
	if (fclose(out) == 0)
		return text;
	free(text);
	return NULL;
}

/* Everything a page may do is to be shown. 0 or -1. */
static int
report_head(const struct report *report, const char *name, size_t len, struct error *err)
{
	uint8_t digest[SHA256_DIGEST_LENGTH];
	char *sheet = report_sheet();
	char base64[64];

	if (sheet == NULL)
		return error_set(err, ERROR_SYSTEM, "out of memory");
	SHA256((const unsigned char *)sheet, strlen(sheet), digest);
	EVP_EncodeBlock((unsigned char *)base64, digest, sizeof(digest));
	fprintf(report->out,
	    "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
	    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'sha256-%s'; "
	    "base-uri 'none'; form-action 'none'\">\n"
	    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
	    "<meta name=\"referrer\" content=\"no-referrer\">\n<title>postern report: ",
	    base64);
	report_html_utf8(report->out, name, len);
	fprintf(report->out, "</title>\n<style>%s</style></head>\n<body>\n", sheet);
	fputs("<a class=\"skip\" href=\"#main\">To the report</a>\n", report->out);
	free(sheet);
	return 0;
}

static int
report_header(const struct report *report, struct error *err)
{
	static const char sql[] =
	    "SELECT s.name, s.kind, s.attached_ts, s.detached_ts, s.uid, "
	    "(SELECT group_concat(l.key || '=' || l.value, ', ') FROM json_each(s.json, '$.labels') l), "
	    "s.json ->> '$.parent.name', (SELECT count(*) FROM sandboxes o WHERE o.name = s.name AND o.id < s.id), "
	    "(SELECT value FROM meta WHERE key = 'log_id') FROM "
	    "(SELECT *, CASE WHEN json_valid(detail) THEN detail END AS json FROM sandboxes WHERE id = :sandbox) s";
	FILE *out = report->out;
	struct rows rows;
	const char *name;
	size_t len;

	report_prepare(report, &rows, sql, err);
	if (!rows_next(&rows))
		return rows_finish(&rows);
	name = rows_text(&rows, 0, &len);
	if (report_head(report, name, len, err) < 0) {
		rows_finish(&rows);
		return -1;
	}
	fputs("<header><h1>Sandbox ", out);
	report_text(out, &rows, 0);
	fputs("</h1>\n<p class=\"dim\">attached (", out);
	report_text(out, &rows, 1);
	fputs(") ", out);
	report_html_time(out, rows_integer(&rows, 2));
	fputs(" by uid ", out);
	report_text(out, &rows, 4);
	if (rows_type(&rows, 3) != ROWS_NULL) {
		fputs(", detached ", out);
		report_html_time(out, rows_integer(&rows, 3));
	} else {
		fputs(", not detached yet", out);
	}
	if (rows_type(&rows, 5) != ROWS_NULL) {
		fputs("<br>labels: ", out);
		report_text(out, &rows, 5);
	}
	if (rows_type(&rows, 6) != ROWS_NULL) {
		fputs("<br>clone of ", out);
		report_text(out, &rows, 6);
	}
	if (rows_integer(&rows, 7) > 0)
		fprintf(out, "<br>%lld earlier sandboxes of this name are in this log, too",
		    (long long)rows_integer(&rows, 7));
	fputs("<br>report made ", out);
	report_html_time(out, report->options->now_us);
	fputs(" of log ", out);
	report_text(out, &rows, 8);
	fputs("</p>\n", out);
	return rows_finish(&rows);
}

static void
report_range(const struct report *report)
{
	const struct report_options *options = report->options;

	if (options->since_us == 0 && options->until_us == 0)
		return;
	fputs("<p class=\"warn\">Only a part of the log: ", report->out);
	if (options->since_us != 0) {
		fputs("from ", report->out);
		report_html_time(report->out, options->since_us);
	}
	if (options->until_us != 0) {
		fputs(" until ", report->out);
		report_html_time(report->out, options->until_us);
	}
	fputs(".</p>\n", report->out);
}

static void
report_verification(const struct report *report)
{
	const struct report_options *options = report->options;

	fprintf(report->out, "<p class=\"seal%s\"><strong>%s</strong> ",
	    options->verdict == NULL ? ""
		: options->verified  ? " good"
				     : " bad",
	    options->verdict == NULL ? "Not verified."
		: options->verified  ? "✓ Verified."
				     : "✗ NOT VERIFIED.");
	if (options->verdict == NULL)
		fputs("Whether this log was changed was not looked at: <code>postern verify</code> does.", report->out);
	else
		report_html_utf8(report->out, options->verdict, strlen(options->verdict));
	fputs("</p>\n", report->out);
}

static void
report_nav(FILE *out)
{
	static const char *const parts[][2] = {{"time", "Time line"}, {"steps", "Steps"}, {"allowed", "Allowed"},
	    {"refused", "Refused"}, {"sent", "Bytes out"}, {"first", "First seen"}, {"domains", "Questions"},
	    {"policy", "Policy"}, {"events", "Events"}, {"last", "Newest"}};

	fputs("<nav aria-label=\"Parts of this report\"><ul>", out);
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		fprintf(out, "<li><a href=\"#%s\">%s</a></li>", parts[i][0], parts[i][1]);
	fputs("</ul></nav></header>\n<main id=\"main\">\n", out);
}

static int
report_tiles(const struct report *report, struct error *err)
{
	static const char sql[] =
	    "SELECT sum_capped(CASE WHEN verdict = 0 THEN count ELSE 0 END), "
	    "sum_capped(CASE WHEN verdict = 1 THEN count ELSE 0 END), "
	    "sum_capped(CASE WHEN verdict = 2 THEN count ELSE 0 END), "
	    "sum_capped(CASE WHEN verdict = 3 THEN count ELSE 0 END), "
	    "sum_capped(bytes_out), sum_capped(bytes_in), count(DISTINCT CASE WHEN verdict = 0 THEN name END), "
	    "sum(end = 0), "
	    "(SELECT sum_capped(count) FROM dns WHERE sandbox_id = :sandbox AND ts >= :since AND ts < :until), "
	    "(SELECT sum_capped(count) FROM dns WHERE sandbox_id = :sandbox AND ts >= :since AND ts < :until AND "
	    "verdict <> 0) "
	    "FROM connections WHERE sandbox_id = :sandbox AND ts >= :since AND ts < :until";
	static const struct {
		const char *class, *what;
		int column;
		bool is_size, always;
	} tiles[] = {{"ok", "connections allowed", 0, false, true},
	    {"no", "connections and packets refused", 1, false, true}, {"warn", "limited", 2, false, false},
	    {"warn", "failed", 3, false, false}, {"", "sent", 4, true, true}, {"", "received", 5, true, true},
	    {"", "names reached", 6, false, true}, {"", "open now", 7, false, false},
	    {"", "DNS questions", 8, false, true}, {"no", "questions refused", 9, false, true}};
	struct rows rows;

	report_prepare(report, &rows, sql, err);
	fputs("<ul class=\"tiles\" aria-label=\"In short\">", report->out);
	if (rows_next(&rows)) {
		for (size_t i = 0; i < sizeof(tiles) / sizeof(tiles[0]); i++) {
			int64_t count = rows_integer(&rows, tiles[i].column);

			if (!tiles[i].always && count <= 0)
				continue;
			fprintf(report->out, "<li><b class=\"%s\">", count == 0 ? "" : tiles[i].class);
			(tiles[i].is_size ? report_html_size : report_html_count)(report->out, count);
			fprintf(report->out, "</b> %s</li>", tiles[i].what);
		}
	}
	fputs("</ul>\n", report->out);
	return rows_finish(&rows);
}

static void
report_policy(const struct report *report)
{
	const struct report_options *options = report->options;
	FILE *out = report->out;

	fputs("<section><h2 id=\"policy\">Policy in force</h2>\n", out);
	if (options->policy != NULL && options->policy_id == report->sandbox_id) {
		fputs("<pre tabindex=\"0\" aria-label=\"Effective policy\">", out);
		for (const char *line = options->policy; *line != '\0';) {
			size_t len = strcspn(line, "\n");

			report_html_utf8(out, line, len);
			putc('\n', out);
			line += len + (line[len] == '\n');
		}
		fputs("</pre>", out);
	} else {
		fputs("<p class=\"dim\">", out);
		report_html_utf8(out, options->policy_why, strlen(options->policy_why));
		fputs("</p>", out);
	}
	fputs("</section>\n", out);
}

int
report_write(FILE *out, struct sqlite3 *db, const struct report_options *options, struct error *err)
{
	struct report report = {.out = out,
	    .db = db,
	    .options = options,
	    .since_us = options->since_us,
	    .until_us = options->until_us == 0 ? INT64_MAX : options->until_us};
	int64_t attached_us;

	if (report_find(db, options, &report.sandbox_id, &attached_us, err) < 0 ||
	    report_find_bounds(&report, err) < 0 || report_header(&report, err) < 0)
		return -1;
	report_range(&report);
	report_verification(&report);
	report_nav(out);
	if (report_tiles(&report, err) < 0 || report_chart(&report, err) < 0 ||
	    report_table_before_policy(&report, err) < 0)
		return -1;
	report_policy(&report);
	if (report_table_after_policy(&report, err) < 0)
		return -1;
	fputs("</main>\n<footer>Made by postern " POSTERN_VERSION
	      ". This page holds no script and asks nothing of any network.</footer>\n</body></html>\n",
	    out);
	return 0;
}
