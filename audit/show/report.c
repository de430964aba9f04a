/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "audit/show/report.h"

#include "audit/show/report_html.h"
#include "audit/show/report_part.h"
#include "audit/show/report_style.h"
#include "audit/query/saturate.h"
#include "audit/store/schema.h"

#include <openssl/evp.h>
#include <openssl/sha.h>
#include <stdlib.h>
#include <string.h>

sqlite3_stmt *
report_prepare(const struct report *report, const char *sql, struct error *err)
{
	const struct {
		const char *name;
		int64_t value;
	} values[] = {{":sandbox", report->sandbox_id}, {":since", report->since_us}, {":until", report->until_us},
	    {":from", report->from_us}, {":to", report->to_us}, {":max", REPORT_ROWS_MAX + 1}};
	sqlite3_stmt *stmt;

	if (sqlite3_prepare_v2(report->db, sql, -1, &stmt, NULL) != SQLITE_OK) {
		schema_error(err, report->db, "the audit log cannot be read");
		return NULL;
	}
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		int at = sqlite3_bind_parameter_index(stmt, values[i].name);

		if (at > 0)
			sqlite3_bind_int64(stmt, at, values[i].value);
	}
	return stmt;
}

int
report_finish(const struct report *report, sqlite3_stmt *stmt, int rc, struct error *err)
{
	if (rc != SQLITE_DONE)
		schema_error(err, report->db, "the audit log cannot be read");
	sqlite3_finalize(stmt);
	return rc == SQLITE_DONE ? 0 : -1;
}

int
report_find(
    sqlite3 *db, const struct report_options *options, int64_t *ret_id, int64_t *ret_attached_us, struct error *err)
{
	sqlite3_stmt *stmt;
	int rc;

	rc = sqlite3_prepare_v2(db,
	    /* The id is this time, too, or just after the one before it where the clock had been set back. */
	    "SELECT id, min(id, coalesce(attached_ts, id)) FROM sandboxes WHERE (?1 IS NULL OR name = ?1) AND (?2 = 0 "
	    "OR "
	    "id = ?2) ORDER BY id DESC LIMIT 1",
	    -1, &stmt, NULL);
	if (rc != SQLITE_OK)
		return schema_error(err, db, "the audit log cannot be read");
	sqlite3_bind_text(stmt, 1, options->sandbox, -1, SQLITE_STATIC);
	sqlite3_bind_int64(stmt, 2, options->sandbox_id);
	rc = sqlite3_step(stmt);
	*ret_id = sqlite3_column_int64(stmt, 0);
	*ret_attached_us = sqlite3_column_int64(stmt, 1);
	sqlite3_finalize(stmt);
	if (rc == SQLITE_DONE)
		return error_set(err, ERROR_NOT_FOUND, "no sandbox %s in this log",
		    options->sandbox != NULL ? options->sandbox : "with that id");
	return rc == SQLITE_ROW ? 0 : schema_error(err, db, "the audit log cannot be read");
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
	sqlite3_stmt *stmt = report_prepare(report, sql, err);
	int rc;

	if (stmt == NULL)
		return -1;
	rc = sqlite3_step(stmt);
	if (rc == SQLITE_ROW) {
		report->from_us = sqlite3_column_int64(stmt, 0);
		report->to_us = sqlite3_column_int64(stmt, 1);
	}
	if (report->options->since_us != 0 && report->from_us < report->since_us)
		report->from_us = report->since_us;
	if (report->options->until_us != 0 && report->to_us > report->until_us)
		report->to_us = report->until_us;
	if (report->to_us <= report->from_us)
		report->to_us = saturate_add(report->from_us, 1000000);
	return report_finish(report, stmt, rc == SQLITE_ROW ? SQLITE_DONE : rc, err);
}

static void
report_text(FILE *out, sqlite3_stmt *stmt, int column)
{
	const char *text = (const char *)sqlite3_column_text(stmt, column);

	if (text == NULL)
		fputs("–", out);
	else
		report_html_utf8(out, text, (size_t)sqlite3_column_bytes(stmt, column));
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
	sqlite3_stmt *stmt = report_prepare(report, sql, err);
	FILE *out = report->out;
	int rc;

	if (stmt == NULL)
		return -1;
	rc = sqlite3_step(stmt);
	if (rc == SQLITE_ROW) {
		if (report_head(report, (const char *)sqlite3_column_text(stmt, 0),
			(size_t)sqlite3_column_bytes(stmt, 0), err) < 0) {
			sqlite3_finalize(stmt);
			return -1;
		}
		fputs("<header><h1>Sandbox ", out);
		report_text(out, stmt, 0);
		fputs("</h1>\n<p class=\"dim\">attached (", out);
		report_text(out, stmt, 1);
		fputs(") ", out);
		report_html_time(out, sqlite3_column_int64(stmt, 2));
		fputs(" by uid ", out);
		report_text(out, stmt, 4);
		if (sqlite3_column_type(stmt, 3) != SQLITE_NULL) {
			fputs(", detached ", out);
			report_html_time(out, sqlite3_column_int64(stmt, 3));
		} else {
			fputs(", not detached yet", out);
		}
		if (sqlite3_column_type(stmt, 5) != SQLITE_NULL) {
			fputs("<br>labels: ", out);
			report_text(out, stmt, 5);
		}
		if (sqlite3_column_type(stmt, 6) != SQLITE_NULL) {
			fputs("<br>clone of ", out);
			report_text(out, stmt, 6);
		}
		if (sqlite3_column_int64(stmt, 7) > 0)
			fprintf(out, "<br>%lld earlier sandboxes of this name are in this log, too",
			    (long long)sqlite3_column_int64(stmt, 7));
		fputs("<br>report made ", out);
		report_html_time(out, report->options->now_us);
		fputs(" of log ", out);
		report_text(out, stmt, 8);
		fputs("</p>\n", out);
	}
	return report_finish(report, stmt, rc == SQLITE_ROW ? SQLITE_DONE : rc, err);
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

static void
report_tile(FILE *out, const char *class, int64_t count, bool is_size, const char *what)
{
	fprintf(out, "<li><b class=\"%s\">", class);
	if (is_size)
		report_html_size(out, count);
	else
		report_html_count(out, count);
	fprintf(out, "</b> %s</li>", what);
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
	sqlite3_stmt *stmt = report_prepare(report, sql, err);
	int rc;

	if (stmt == NULL)
		return -1;
	fputs("<ul class=\"tiles\" aria-label=\"In short\">", report->out);
	rc = sqlite3_step(stmt);
	for (size_t i = 0; rc == SQLITE_ROW && i < sizeof(tiles) / sizeof(tiles[0]); i++) {
		int64_t count = sqlite3_column_int64(stmt, tiles[i].column);

		if (tiles[i].always || count > 0)
			report_tile(
			    report->out, count == 0 ? "" : tiles[i].class, count, tiles[i].is_size, tiles[i].what);
	}
	fputs("</ul>\n", report->out);
	return report_finish(report, stmt, rc == SQLITE_ROW ? SQLITE_DONE : rc, err);
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
report_write(FILE *out, sqlite3 *db, const struct report_options *options, struct error *err)
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
