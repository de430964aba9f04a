/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "audit/show/report_html.h"

#include "audit/show/render.h"
#include "base/utf8.h"

#include <stdbool.h>
#include <time.h>

/* A byte that is printable ASCII. The backslash is doubled in meaning by our escapes, so it is one of them. */
static void
html_ascii(FILE *out, unsigned char c)
{
	switch (c) {
	case '&':
		fputs("&amp;", out);
		break;
	case '<':
		fputs("&lt;", out);
		break;
	case '>':
		fputs("&gt;", out);
		break;
	case '"':
		fputs("&quot;", out);
		break;
	case '\'':
		fputs("&#39;", out);
		break;
	default:
		if (c < 0x20 || c > 0x7e || c == '\\')
			fprintf(out, "\\x%02x", c);
		else
			putc(c, out);
	}
}

void
report_html_bytes(FILE *out, const char *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
		html_ascii(out, (unsigned char)bytes[i]);
}

/* Controls, soft hyphen, zero width, direction marks, separators, variation selectors, tags, byte order marks. */
static bool
html_is_unseen(uint32_t point)
{
	return point < 0xa0 || point == 0xad || point == 0x61c || point == 0x180e ||
	    (point >= 0x200b && point <= 0x200f) || (point >= 0x2028 && point <= 0x202e) ||
	    (point >= 0x2060 && point <= 0x206f) || (point >= 0xfe00 && point <= 0xfe0f) || point == 0xfeff ||
	    (point >= 0xfff0 && point <= 0xffff) || point >= 0xe0000;
}

void
report_html_utf8(FILE *out, const char *text, size_t len)
{
	const unsigned char *bytes = (const unsigned char *)text;
	uint32_t point;

	for (size_t i = 0; i < len;) {
		size_t size = utf8_decode(bytes + i, len - i, &point);

		if (size <= 1)
			html_ascii(out, bytes[i++]);
		else if (html_is_unseen(point))
			fprintf(out, "\\u{%x}", (unsigned int)point);
		else
			fwrite(bytes + i, 1, size, out);
		if (size > 1)
			i += size;
	}
}

void
report_html_size(FILE *out, int64_t bytes)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	double value = (double)(bytes < 0 ? 0 : bytes);
	size_t unit = 0;

	while (value >= 1024 && unit + 1 < sizeof(units) / sizeof(units[0])) {
		value /= 1024;
		unit++;
	}
	fprintf(out, unit == 0 || value >= 99.95 ? "%.0f %s" : "%.1f %s", value, units[unit]);
}

void
report_html_count(FILE *out, int64_t count)
{
	char digits[32];
	int len = snprintf(digits, sizeof(digits), "%lld", (long long)count);

	for (int i = 0; i < len; i++) {
		if (i > 0 && digits[i - 1] != '-' && (len - i) % 3 == 0)
			putc(',', out);
		putc(digits[i], out);
	}
}

void
report_html_duration(FILE *out, int64_t us)
{
	int64_t seconds = us / 1000000;

	if (us < 0)
		fputs("-", out);
	else if (us < 100000)
		fprintf(out, "%.1f ms", (double)us / 1000);
	else if (seconds < 60)
		fprintf(out, "%.2f s", (double)us / 1000000);
	else if (seconds < 3600)
		fprintf(out, "%d min %d s", (int)(seconds / 60), (int)(seconds % 60));
	else
		fprintf(out, "%lld h %d min", (long long)(seconds / 3600), (int)(seconds % 3600 / 60));
}

void
report_html_time_text(FILE *out, int64_t ts_us)
{
	time_t seconds = (time_t)(ts_us / 1000000);
	char text[32];
	struct tm tm;

	if (ts_us < 0 || gmtime_r(&seconds, &tm) == NULL || strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &tm) == 0)
		fputs("?", out);
	else
		fprintf(out, "%s.%03d", text, (int)(ts_us % 1000000 / 1000));
}

void
report_html_time(FILE *out, int64_t ts_us)
{
	char word[40];

	fprintf(out, "<time datetime=\"%s\">", render_time_utc(ts_us, word));
	report_html_time_text(out, ts_us);
	fputs("</time>", out);
}
