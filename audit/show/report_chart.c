/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The time line as an SVG drawing: a lane for each of the names that came up most, steps of the agent across all of
 * them, and bytes out below. Connections are painted into columns of the drawing first, so that a hundred thousand of
 * them make no larger a page than a hundred. */
#include "audit/show/report_part.h"

#include "audit/record.h"
#include "audit/show/report_html.h"
#include "audit/query/saturate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Units of the drawing. */
#define CHART_LABELS 210 /* left of the lanes */
#define CHART_COLUMNS 780
#define CHART_WIDTH (CHART_LABELS + CHART_COLUMNS + 10)
#define CHART_STEPS 22 /* height of the flags above the lanes */
#define CHART_LANE 20
#define CHART_SENT 56
#define CHART_AXIS 24

/* Lanes of their own; all other names share one more. */
#define CHART_NAMES 20
#define CHART_LABEL_MAX 30
/* Columns of the drawing that share a bar of bytes out. */
#define CHART_BAR 6
#define CHART_BARS (CHART_COLUMNS / CHART_BAR)
/* Flags closer than this are drawn without their number. */
#define CHART_FLAG 16
#define CHART_TICKS 5

struct chart_lane {
	char *name; /* owned; NULL: all others */
	size_t len;
	int64_t allowed, refused;
	uint8_t columns[CHART_COLUMNS]; /* CHART_ALLOWED, CHART_REFUSED */
};
#define CHART_ALLOWED 0x1u
#define CHART_REFUSED 0x2u

struct chart {
	const struct report *report;
	size_t lane_count; /* the last one is everybody else's, if it is used */
	struct chart_lane lanes[CHART_NAMES + 1];
	int64_t sent[CHART_BARS], sent_max;
};

/* Most used names, in the order in which they came up. */
static const char chart_names_sql[] =
    "SELECT x FROM (SELECT coalesce(c.name, c.name_raw, c.dst, 'many addresses') AS x, sum_capped(c.count) AS n, "
    "min(c.ts) AS f FROM connections c WHERE c.sandbox_id = :sandbox AND c.ts >= :since AND c.ts < :until GROUP BY 1 "
    "ORDER BY n DESC LIMIT 20) ORDER BY f";

static const char chart_rows_sql[] =
    "SELECT coalesce(c.name, c.name_raw, c.dst, 'many addresses'), c.ts, "
    "CASE c.end WHEN 0 THEN :to ELSE coalesce(c.closed_ts, c.last_ts, c.ts) END, c.verdict, c.count, c.bytes_out "
    "FROM connections c WHERE c.sandbox_id = :sandbox AND c.ts >= :since AND c.ts < :until";

static const char chart_steps_sql[] = "SELECT e.ts FROM events e WHERE e.sandbox_id = :sandbox AND e.kind = 14 AND "
				      "e.ts >= :since AND e.ts < :until ORDER BY e.ts, e.id LIMIT :max";
_Static_assert(EVENT_MARK == 14, "the number in the SQL");
_Static_assert(CHART_NAMES == 20, "the number in the SQL");

/* Column of a time, 0 .. CHART_COLUMNS - 1. */
static int
chart_column(const struct report *report, int64_t ts_us)
{
	double span = (double)saturate_sub(report->to_us, report->from_us);
	double at = (double)saturate_sub(ts_us, report->from_us) / (span < 1 ? 1 : span) * (CHART_COLUMNS - 1);

	return at < 0 ? 0 : at > CHART_COLUMNS - 1 ? CHART_COLUMNS - 1 : (int)at;
}

static int
chart_load_names(struct chart *chart, struct error *err)
{
	struct rows rows;

	report_prepare(chart->report, &rows, chart_names_sql, err);
	while (chart->lane_count < CHART_NAMES && rows_next(&rows)) {
		struct chart_lane *lane = &chart->lanes[chart->lane_count];
		const char *bytes = rows_text(&rows, 0, &lane->len);

		lane->name = malloc(lane->len + 1);
		if (lane->name == NULL) {
			rows_finish(&rows);
			return error_sys(err, ENOMEM, "report");
		}
		memcpy(lane->name, bytes, lane->len);
		chart->lane_count++;
	}
	return rows_finish(&rows);
}

static struct chart_lane *
chart_find_lane(struct chart *chart, const char *bytes, size_t len)
{
	for (size_t i = 0; i < chart->lane_count; i++)
		if (chart->lanes[i].name != NULL && chart->lanes[i].len == len &&
		    memcmp(chart->lanes[i].name, bytes, len) == 0)
			return &chart->lanes[i];
	return &chart->lanes[chart->lane_count];
}

static void
chart_paint(struct chart *chart, struct rows *rows)
{
	size_t len;
	const char *bytes = rows_text(rows, 0, &len);
	struct chart_lane *lane = chart_find_lane(chart, bytes, len);
	int first = chart_column(chart->report, rows_integer(rows, 1));
	int last = chart_column(chart->report, rows_integer(rows, 2));
	bool is_allowed = rows_integer(rows, 3) == 0;
	int64_t *sent = &chart->sent[first / CHART_BAR];
	int64_t *count = is_allowed ? &lane->allowed : &lane->refused;

	*count = saturate_add(*count, rows_integer(rows, 4));
	for (int i = first; i <= (is_allowed ? last : first); i++)
		lane->columns[i] |= is_allowed ? CHART_ALLOWED : CHART_REFUSED;
	*sent = saturate_add(*sent, rows_integer(rows, 5));
	if (*sent > chart->sent_max)
		chart->sent_max = *sent;
}

static int
chart_load_rows(struct chart *chart, struct error *err)
{
	const struct chart_lane *others = &chart->lanes[chart->lane_count];
	struct rows rows;

	report_prepare(chart->report, &rows, chart_rows_sql, err);
	while (rows_next(&rows))
		chart_paint(chart, &rows);
	if (others->allowed > 0 || others->refused > 0)
		chart->lane_count++;
	return rows_finish(&rows);
}

/* Columns with this bit, one rectangle for each run of them; at least two units wide, to be seen. */
static void
chart_runs(FILE *out, const struct chart_lane *lane, unsigned int bit, const char *class, double y, double height)
{
	for (int i = 0; i < CHART_COLUMNS; i++) {
		int end = i;

		while (end < CHART_COLUMNS && (lane->columns[end] & bit) != 0)
			end++;
		if (end > i)
			fprintf(out, "<rect class=\"%s\" x=\"%d\" y=\"%.0f\" width=\"%d\" height=\"%.0f\"/>", class,
			    CHART_LABELS + i, y, end - i < 2 ? 2 : end - i, height);
		if (end > i)
			i = end;
	}
}

static void
chart_label(FILE *out, const struct chart_lane *lane)
{
	if (lane->name == NULL)
		fputs("all other names", out);
	else
		report_html_bytes(out, lane->name, lane->len > CHART_LABEL_MAX ? CHART_LABEL_MAX - 1 : lane->len);
	if (lane->name != NULL && lane->len > CHART_LABEL_MAX)
		fputs("…", out);
}

static void
chart_lane(FILE *out, const struct chart_lane *lane, double y)
{
	fputs("<g><title>", out);
	if (lane->name == NULL)
		fputs("all other names", out);
	else
		report_html_bytes(out, lane->name, lane->len);
	fprintf(out, ": %lld allowed, %lld refused</title>", (long long)lane->allowed, (long long)lane->refused);
	fprintf(out, "<line class=\"grid\" x1=\"0\" x2=\"%d\" y1=\"%.0f\" y2=\"%.0f\"/>", CHART_WIDTH, y, y);
	fprintf(out, "<text x=\"6\" y=\"%.0f\">", y + 14);
	chart_label(out, lane);
	fputs("</text>", out);
	chart_runs(out, lane, CHART_ALLOWED, "a", y + 3, 8);
	chart_runs(out, lane, CHART_REFUSED, "r", y + 13, 5);
	fputs("</g>\n", out);
}

static int
chart_steps(const struct report *report, double height, struct error *err)
{
	struct rows rows;
	int at = -CHART_FLAG, n = 0;

	report_prepare(report, &rows, chart_steps_sql, err);
	while (rows_next(&rows)) {
		int x = chart_column(report, rows_integer(&rows, 0));

		fprintf(report->out, "<line class=\"step\" x1=\"%d\" x2=\"%d\" y1=\"%d\" y2=\"%.0f\"/>",
		    CHART_LABELS + x, CHART_LABELS + x, CHART_STEPS - 6, height);
		n++;
		if (x - at < CHART_FLAG)
			continue;
		fprintf(report->out, "<text class=\"flag\" x=\"%d\" y=\"12\" text-anchor=\"middle\">%d</text>",
		    CHART_LABELS + x, n);
		at = x;
	}
	return rows_finish(&rows);
}

static void
chart_sent(const struct chart *chart, double y)
{
	FILE *out = chart->report->out;

	fprintf(out, "<g><title>Bytes out</title><line class=\"grid\" x1=\"0\" x2=\"%d\" y1=\"%.0f\" y2=\"%.0f\"/>",
	    CHART_WIDTH, y, y);
	fprintf(out, "<text x=\"6\" y=\"%.0f\">bytes out, at most </text><text x=\"6\" y=\"%.0f\">", y + 20, y + 36);
	report_html_size(out, chart->sent_max);
	fprintf(out, " a bar</text>");
	for (int i = 0; i < CHART_BARS; i++) {
		double height =
		    chart->sent_max == 0 ? 0 : (double)chart->sent[i] / (double)chart->sent_max * (CHART_SENT - 8);

		if (chart->sent[i] > 0)
			fprintf(out, "<rect class=\"o\" x=\"%d\" y=\"%.1f\" width=\"%d\" height=\"%.1f\"/>",
			    CHART_LABELS + i * CHART_BAR, y + CHART_SENT - (height < 1 ? 1 : height), CHART_BAR - 1,
			    height < 1 ? 1 : height);
	}
	fputs("</g>\n", out);
}

/* The hour within a day, the day beyond. */
static void
chart_axis(const struct report *report, double y)
{
	int64_t span_us = saturate_sub(report->to_us, report->from_us);
	bool days = span_us > (int64_t)24 * 3600 * 1000000;

	for (int i = 0; i <= CHART_TICKS; i++) {
		int64_t ts_us = report->from_us + span_us / CHART_TICKS * i;
		time_t seconds = (time_t)(ts_us / 1000000);
		int x = CHART_LABELS + (CHART_COLUMNS - 1) * i / CHART_TICKS;
		char text[32] = "?";
		struct tm tm;

		if (gmtime_r(&seconds, &tm) != NULL)
			strftime(text, sizeof(text), days ? "%m-%d %H:%M" : "%H:%M:%S", &tm);
		fprintf(report->out,
		    "<line class=\"grid\" x1=\"%d\" x2=\"%d\" y1=\"%.0f\" y2=\"%.0f\"/>"
		    "<text class=\"dim\" x=\"%d\" y=\"%.0f\" text-anchor=\"%s\">%s</text>",
		    x, x, y, y + 5, x, y + 18,
		    i == CHART_TICKS ? "end"
			: i == 0     ? "start"
				     : "middle",
		    text);
	}
}

static int
chart_draw(const struct chart *chart, struct error *err)
{
	FILE *out = chart->report->out;
	double sent = CHART_STEPS + CHART_LANE * (double)chart->lane_count, axis = sent + CHART_SENT;

	fprintf(out,
	    "<figure><div class=\"wide\" role=\"region\" aria-label=\"Time line\" tabindex=\"0\">"
	    "<svg class=\"chart\" viewBox=\"0 0 %d %.0f\" role=\"img\" aria-labelledby=\"chart-title chart-about\">"
	    "<title id=\"chart-title\">Time line of connections by name</title><desc id=\"chart-about\">One lane for "
	    "each "
	    "name, and bytes out below; numbered dashed lines are steps of the agent. The tables that follow say the "
	    "same.</desc>\n",
	    CHART_WIDTH, axis + CHART_AXIS);
	for (size_t i = 0; i < chart->lane_count; i++)
		chart_lane(out, &chart->lanes[i], CHART_STEPS + CHART_LANE * (double)i);
	chart_sent(chart, sent);
	chart_axis(chart->report, axis);
	if (chart_steps(chart->report, axis, err) < 0)
		return -1;
	fputs("</svg></div><figcaption><ul class=\"legend\">"
	      "<li><svg viewBox=\"0 0 16 12\" aria-hidden=\"true\"><rect class=\"a\" y=\"1\" width=\"16\" "
	      "height=\"6\"/></svg>"
	      "allowed, from open to close (upper bar)</li>"
	      "<li><svg viewBox=\"0 0 16 12\" aria-hidden=\"true\"><rect class=\"r\" x=\"5\" y=\"8\" width=\"4\" "
	      "height=\"4\"/>"
	      "</svg>refused, limited or failed (lower mark)</li>"
	      "<li><svg viewBox=\"0 0 16 12\" aria-hidden=\"true\"><rect class=\"o\" y=\"2\" width=\"16\" "
	      "height=\"10\"/></svg>"
	      "bytes out, where the connection began</li>"
	      "<li><svg viewBox=\"0 0 16 12\" aria-hidden=\"true\"><rect class=\"w\" x=\"7\" width=\"2\" "
	      "height=\"12\"/></svg>"
	      "a step of the agent</li></ul>Times are UTC.<span class=\"hint\">The drawing is wider than this screen: "
	      "push it "
	      "sideways.</span></figcaption></figure>\n",
	    out);
	return 0;
}

int
report_chart(const struct report *report, struct error *err)
{
	struct chart *chart = calloc(1, sizeof(*chart));
	int rc = -1;

	if (chart == NULL)
		return error_set(err, ERROR_SYSTEM, "out of memory");
	chart->report = report;
	fputs("<section><h2 id=\"time\">Time line</h2>\n", report->out);
	if (chart_load_names(chart, err) == 0 && chart_load_rows(chart, err) == 0)
		rc = chart->lane_count > 0 ? chart_draw(chart, err) : 0;
	if (rc == 0 && chart->lane_count == 0)
		fputs("<p class=\"dim\">There were no connections.</p>", report->out);
	fputs("</section>\n", report->out);
	for (size_t i = 0; i <= CHART_NAMES; i++)
		free(chart->lanes[i].name);
	free(chart);
	return rc;
}
