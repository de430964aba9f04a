/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A row that holds anything, in every format: printable, one line at most, with the cells or members that the format
 * says, and nothing that a spreadsheet, a terminal or a JSON reader takes for more than text. What the guest said in
 * place of a name can be got back, byte for byte.
 *
 * The first byte chooses the format. The rest is a list of members to set: which, how many bytes, the bytes. Numbers
 * are big-endian. */
#include "audit/show/export.h"
#include "audit/record.h"
#include "audit/show/render.h"
#include "base/reader.h"
#include "tests/fuzz/audit_fuzz.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

/* Columns of CSV and Zeek's logs, at most. */
#define CELLS_MAX 128

enum member_type { MEMBER_KIND, MEMBER_ID, MEMBER_COUNT, MEMBER_NUMBER, MEMBER_TEXT };

#define AT(member) offsetof(struct query_row, member)

/* Members are added at the end: what is kept of earlier searches means them by their place. */
static const struct {
	enum member_type type;
	size_t at;
} members[] = {{MEMBER_KIND, AT(kind)}, {MEMBER_ID, AT(id)}, {MEMBER_COUNT, AT(seq)}, {MEMBER_COUNT, AT(ts_us)},
    {MEMBER_TEXT, AT(sandbox)}, {MEMBER_COUNT, AT(sandbox_id)}, {MEMBER_TEXT, AT(labels)}, {MEMBER_COUNT, AT(count)},
    {MEMBER_NUMBER, AT(last_us)}, {MEMBER_COUNT, AT(proto)}, {MEMBER_TEXT, AT(src)}, {MEMBER_TEXT, AT(dst)},
    {MEMBER_COUNT, AT(sport)}, {MEMBER_COUNT, AT(dport)}, {MEMBER_TEXT, AT(name)}, {MEMBER_TEXT, AT(name_raw)},
    {MEMBER_COUNT, AT(name_source)}, {MEMBER_COUNT, AT(verdict)}, {MEMBER_COUNT, AT(reason)}, {MEMBER_TEXT, AT(rule)},
    {MEMBER_TEXT, AT(detail)}, {MEMBER_COUNT, AT(generation)}, {MEMBER_TEXT, AT(alpn)}, {MEMBER_COUNT, AT(flags)},
    {MEMBER_NUMBER, AT(bytes_out)}, {MEMBER_NUMBER, AT(bytes_in)}, {MEMBER_NUMBER, AT(duration_us)},
    {MEMBER_NUMBER, AT(closed_us)}, {MEMBER_COUNT, AT(end)}, {MEMBER_COUNT, AT(qtype)}, {MEMBER_COUNT, AT(rcode)},
    {MEMBER_COUNT, AT(ttl_s)}, {MEMBER_COUNT, AT(upstream_us)}, {MEMBER_NUMBER, AT(ede)}, {MEMBER_TEXT, AT(answers)},
    {MEMBER_COUNT, AT(event)}, {MEMBER_NUMBER, AT(uid)}, {MEMBER_NUMBER, AT(tls_version)}, {MEMBER_TEXT, AT(ja4)},
    {MEMBER_TEXT, AT(http_method)}, {MEMBER_TEXT, AT(country)}, {MEMBER_TEXT, AT(as_org)}, {MEMBER_NUMBER, AT(asn)},
    {MEMBER_NUMBER, AT(dns_us)}, {MEMBER_NUMBER, AT(hello_us)}, {MEMBER_NUMBER, AT(connect_us)},
    {MEMBER_NUMBER, AT(first_byte_us)}, {MEMBER_NUMBER, AT(packets_out)}, {MEMBER_NUMBER, AT(packets_in)},
    {MEMBER_TEXT, AT(community_id)}, {MEMBER_TEXT, AT(up_src)}, {MEMBER_TEXT, AT(up_community_id)},
    {MEMBER_NUMBER, AT(up_sport)}, {MEMBER_NUMBER, AT(leases)}, {MEMBER_NUMBER, AT(entropy)},
    {MEMBER_TEXT, AT(domain)}};
#define MEMBERS (sizeof(members) / sizeof(members[0]))

static void
set_member(struct query_row *row, size_t which, const uint8_t *bytes, size_t len)
{
	void *at = (char *)row + members[which].at;
	int64_t value = read_number(bytes, len);

	switch (members[which].type) {
	case MEMBER_KIND:
		*(unsigned int *)at = value % 3 == 0 ? QUERY_CONNECTION : value % 3 == 1 ? QUERY_DNS : QUERY_EVENT;
		break;
	case MEMBER_ID:
		*(uint64_t *)at = (uint64_t)value;
		break;
	case MEMBER_COUNT:
		*(int64_t *)at = value;
		break;
	case MEMBER_NUMBER:
		*(struct query_number *)at = (struct query_number){.set = true, .value = value};
		break;
	case MEMBER_TEXT:
		*(struct query_text *)at = (struct query_text){.bytes = (const char *)bytes, .len = len};
		break;
	}
}

static struct query_row
read_row(const uint8_t *bytes, size_t len)
{
	struct query_row row = {.kind = QUERY_CONNECTION, .id = 1, .seq = 1, .ts_us = 1700000000000000, .count = 1};
	struct reader r = reader_make(bytes, len);

	while (reader_left(&r) > 0) {
		size_t which = reader_u8(&r) % MEMBERS, size = reader_u8(&r);
		const uint8_t *value = reader_bytes(&r, size);

		if (value != NULL)
			set_member(&row, which, value, size);
	}
	return row;
}

/* What a writer wrote; the caller frees it. */
struct output {
	char *text;
	size_t len;
	FILE *file;
};

static void
output_begin(struct output *output)
{
	output->file = open_memstream(&output->text, &output->len);
	if (output->file == NULL)
		abort();
}

/* One line at most, nothing in it but printable ASCII and what the format separates with. */
static void
output_end(struct output *output, const char *line_end, char separator)
{
	size_t end_len = strlen(line_end);

	if (fclose(output->file) != 0)
		abort();
	if (output->len == 0)
		return;
	if (output->len < end_len || strcmp(output->text + output->len - end_len, line_end) != 0)
		abort();
	output->len -= end_len;
	output->text[output->len] = '\0';
	for (size_t i = 0; i < output->len; i++)
		if ((output->text[i] < 0x20 || output->text[i] > 0x7e) && output->text[i] != separator)
			abort();
}

/* The bytes that our escapes stand for. */
static size_t
unescape(const char *text, size_t len, char *ret_bytes)
{
	size_t out = 0;

	for (size_t i = 0; i < len; out++) {
		char digits[3] = "";

		if (text[i] != '\\') {
			ret_bytes[out] = text[i++];
			continue;
		}
		if (len - i < 4 || text[i + 1] != 'x' || strspn(text + i + 2, "0123456789abcdef") < 2)
			abort();
		memcpy(digits, text + i + 2, 2);
		ret_bytes[out] = (char)strtoul(digits, NULL, 16);
		i += 4;
	}
	return out;
}

static void
expect_name(const struct query_row *row, const char *text, size_t len)
{
	char *bytes = malloc(len + 1);

	if (bytes == NULL)
		abort();
	if (row->name.len == 0 &&
	    (unescape(text, len, bytes) != row->name_raw.len ||
		(row->name_raw.len > 0 && memcmp(bytes, row->name_raw.bytes, row->name_raw.len) != 0)))
		abort();
	free(bytes);
}

/* RFC 4180, every cell in quotes: cells in place, how many. */
static size_t
csv_split(char *line, char *ret_cells[CELLS_MAX])
{
	size_t count = 0;

	for (char *at = line, *to;; at++) {
		if (*at++ != '"' || count == CELLS_MAX)
			abort();
		for (ret_cells[count++] = to = at; *at != '"' || at[1] == '"'; at++) {
			if (*at == '\0')
				abort();
			if (*at == '"')
				at++;
			*to++ = *at;
		}
		at++;
		if (*at != ',' && *at != '\0')
			abort();
		if (*at == '\0') {
			*to = '\0';
			return count;
		}
		*to = '\0';
	}
}

static void
try_csv(const struct export_format *format, const struct query_row *row)
{
	const struct export_options options = {.ocsf = EXPORT_OCSF_1_8};
	char *names[CELLS_MAX], *cells[CELLS_MAX];
	struct output head, line;
	size_t count;

	output_begin(&head);
	format->begin(head.file);
	output_end(&head, "\r\n", ',');
	count = csv_split(head.text, names);
	output_begin(&line);
	if (format->row(line.file, &options, row) < 0)
		abort();
	output_end(&line, "\r\n", ',');
	if (csv_split(line.text, cells) != count)
		abort();
	for (size_t i = 0; i < count; i++) {
		if (cells[i][0] != '\0' && strchr("=+-@", cells[i][0]) != NULL)
			abort();
		if (strcmp(names[i], "name") == 0 && row->kind != QUERY_EVENT) {
			bool apart = cells[i][0] == '\'' && cells[i][1] != '\0' && strchr("=+-@", cells[i][1]) != NULL;

			/* A name's own apostrophe before such a character cannot be told from ours. */
			if (!apart || row->name_raw.len == 0 || row->name_raw.bytes[0] != '\'')
				expect_name(row, cells[i] + apart, strlen(cells[i] + apart));
		}
	}
	free(head.text);
	free(line.text);
}

static size_t
zeek_split(char *line, char *ret_cells[CELLS_MAX])
{
	size_t count = 0;

	for (char *cell; (cell = strsep(&line, "\t")) != NULL; count++) {
		if (count == CELLS_MAX || cell[0] == '\0')
			abort();
		ret_cells[count] = cell;
	}
	return count;
}

/* The line of the header that begins with this word. */
static char *
zeek_header(char *text, const char *word)
{
	char *at = strstr(text, word), *line, *end;

	if (at == NULL)
		abort();
	end = strchr(at, '\n');
	line = end == NULL ? NULL : strndup(at + strlen(word), (size_t)(end - at) - strlen(word));
	if (line == NULL)
		abort();
	return line;
}

static void
zeek_expect_type(const char *type, const char *value)
{
	const char *allowed = NULL;

	if (strcmp(value, "-") == 0)
		return;
	if (strcmp(type, "count") == 0 || strcmp(type, "port") == 0)
		allowed = "0123456789";
	else if (strcmp(type, "time") == 0 || strcmp(type, "interval") == 0)
		allowed = "0123456789.";
	else if (strcmp(type, "addr") == 0)
		allowed = "0123456789abcdefABCDEF.:";
	else if (strcmp(type, "bool") == 0)
		allowed = "TF";
	if (allowed != NULL && strspn(value, allowed) != strlen(value))
		abort();
}

static void
try_zeek(const struct export_format *format, const struct query_row *row, bool following)
{
	const struct export_options options = {.ocsf = EXPORT_OCSF_1_8, .following = following};
	char *types[CELLS_MAX], *cells[CELLS_MAX], *header;
	struct output head, line;
	size_t count;

	output_begin(&head);
	format->begin(head.file);
	if (fclose(head.file) != 0)
		abort();
	header = zeek_header(head.text, "\n#types\t");
	count = zeek_split(header, types);
	output_begin(&line);
	if (format->row(line.file, &options, row) < 0)
		abort();
	output_end(&line, "\n", '\t');
	if (line.len > 0 && zeek_split(line.text, cells) != count)
		abort();
	for (size_t i = 0; line.len > 0 && i < count; i++)
		zeek_expect_type(types[i], cells[i]);
	/* A line that begins like this is none of data. */
	if (line.len > 0 && line.text[0] == '#')
		abort();
	free(header);
	free(head.text);
	free(line.text);
}

/* The object in the line; the caller frees it. NULL: there is no line. */
static json_t *
read_object(struct output *line)
{
	json_t *object = NULL;

	output_end(line, "\n", ' ');
	if (line->len > 0) {
		object = json_loadb(line->text, line->len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
		if (!json_is_object(object))
			abort();
	}
	free(line->text);
	return object;
}

static void
try_json(const struct query_row *row)
{
	struct output line;
	json_t *object, *name;

	output_begin(&line);
	if (render_json(line.file, row) < 0)
		abort();
	object = read_object(&line);
	if (json_integer_value(json_object_get(object, "v")) != RENDER_JSON_VERSION ||
	    json_string_length(json_object_get(object, "id")) != 16)
		abort();
	name = json_object_get(object, row->kind == QUERY_DNS ? "qname" : "name");
	if (row->kind != QUERY_EVENT)
		expect_name(row, name == NULL ? "" : json_string_value(name), json_string_length(name));
	json_decref(object);
}

static void
try_export(const char *word, const struct query_row *row, enum export_ocsf ocsf, bool following)
{
	const struct export_options options = {.ocsf = ocsf, .following = following};
	const struct export_format *format = export_find(word);
	struct output line;
	json_t *object;

	output_begin(&line);
	if (format->row(line.file, &options, row) < 0)
		abort();
	object = read_object(&line);
	if (object != NULL && strcmp(word, "ocsf") == 0 &&
	    (!json_is_integer(json_object_get(object, "class_uid")) ||
		!json_is_integer(json_object_get(object, "time")) ||
		!json_is_object(json_object_get(object, "metadata"))))
		abort();
	if (object != NULL && strcmp(word, "ecs") == 0 && json_object_get(object, "@timestamp") == NULL)
		abort();
	json_decref(object);
}

static void
try_text(const struct query_row *row, void (*render)(FILE *out, const struct query_row *row, bool colour))
{
	struct output plain, coloured;

	output_begin(&plain);
	render(plain.file, row, false);
	output_end(&plain, "\n", ' ');
	output_begin(&coloured);
	render(coloured.file, row, true);
	/* Our own two colours are all that there is of the escape character. */
	output_end(&coloured, "\n", '\x1b');
	if (plain.len == 0 || strchr(strchr(coloured.text, '\x1b') + 1, '\x1b') != strrchr(coloured.text, '\x1b'))
		abort();
	free(plain.text);
	free(coloured.text);
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	static const char *const zeek[] = {"zeek", "zeek-dns", "zeek-ssl", "zeek-http"};
	struct query_row row;
	bool following;

	if (len == 0)
		return 0;
	row = read_row(bytes + 1, len - 1);
	following = bytes[0] >= 0x80;
	switch (bytes[0] % 8) {
	case 0:
		try_text(&row, render_line_short);
		break;
	case 1:
		try_text(&row, render_line_wide);
		break;
	case 2:
		try_json(&row);
		break;
	case 3:
		try_csv(export_find("csv"), &row);
		break;
	case 4:
		for (size_t i = 0; i < sizeof(zeek) / sizeof(zeek[0]); i++)
			try_zeek(export_find(zeek[i]), &row, following);
		break;
	case 5:
		try_export("ecs", &row, EXPORT_OCSF_1_1, following);
		break;
	case 6:
		try_export("ocsf", &row, EXPORT_OCSF_1_1, following);
		try_export("ocsf", &row, EXPORT_OCSF_1_3, following);
		break;
	default:
		try_export("ocsf", &row, EXPORT_OCSF_1_5, following);
		try_export("ocsf", &row, EXPORT_OCSF_1_8, following);
		break;
	}
	return 0;
}
