/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Build-time generator: prefixes.csv, names.csv, shared_hosts.csv and noted_names.csv to C tables (never_list.inc),
 * included by addr.c, name.c and shared.c.
 *
 * Theory of operation. The CSV files are the never list; nothing else in the tree names a refused address. A row that
 * cannot be read stops the build, since a row dropped in silence is a hole. Rows whose prefix is known only at run time
 * (action "*-dynamic") and the one pattern (action "block-pattern", ISATAP) are skipped: code holds those. Two orders
 * are printed: the public list with the longest prefix last, and one lookup table per family with the longest prefix
 * first, so that a scan that stops at its first hit has found the most specific row. Hosts of many parties and names
 * worth a note are printed sorted, for a binary search; what lies above a shared suffix is a row of its own. */
#include <arpa/inet.h>
#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE_MAX_LEN 1024
#define FIELDS_MAX 5
#define ROWS_MAX 512
#define PLATFORMS_MAX 32
#define TEXT_MAX 256
/* Kinds of one file. */
#define KINDS_MAX 4

struct prefix_row {
	int family; /* 4 or 6 */
	uint8_t bytes[16];
	unsigned int bits;
	bool embeds_ipv4;
	bool decode_only;      /* action "decode" alone: the NAT64 prefix */
	unsigned int platform; /* 1 + index in platforms; 0: everywhere */
	char text[TEXT_MAX];
	char why[TEXT_MAX];
};

struct name_row {
	char name[TEXT_MAX];
	int match; /* in the order of match_words */
	char why[TEXT_MAX];
};

/* A row of shared_hosts.csv or noted_names.csv. */
struct host_row {
	char name[TEXT_MAX];
	int kind; /* in the order of the file's words */
	char what[TEXT_MAX];
};

struct host_file {
	const char *table;             /* the C table's name */
	const char *words[KINDS_MAX];  /* in the file */
	const char *values[KINDS_MAX]; /* in C */
	struct host_row rows[ROWS_MAX];
	size_t count;
};

static struct host_file shared = {.table = "shared_host shared_hosts",
    .words = {"suffix", "tree", "host", "(above)"},
    .values = {"SHARED_SUFFIX", "SHARED_TREE", "SHARED_HOST", "SHARED_ABOVE"}};
static struct host_file noted = {.table = "noted_name noted_names",
    .words = {"doh", "embeds", "ech"},
    .values = {"NOTED_DOH", "NOTED_EMBEDS", "NOTED_ECH"}};
static struct host_file *reading; /* the one that host_line fills */

static const char *const match_words[] = {"NEVER_NAME_EXACT", "NEVER_NAME_LABEL", "NEVER_NAME_SUFFIX"};

static struct prefix_row prefix_rows[ROWS_MAX];
static size_t prefix_count;
static struct name_row name_rows[ROWS_MAX];
static size_t name_count;
static char platforms[PLATFORMS_MAX][TEXT_MAX];
static unsigned int platform_count;

/* Where the row being read stands, for messages. */
static const char *at_file;
static unsigned int at_line;

/* Prints file, line and what is wrong, and ends the build. */
static void
fail(const char *what, const char *text)
{
	fprintf(stderr, "%s:%u: %s: %s\n", at_file, at_line, what, text);
	exit(1);
}

/* Copies a field that has room for TEXT_MAX bytes. */
static void
text_copy(char *to, const char *from)
{
	if (strlen(from) >= TEXT_MAX)
		fail("field is too long", from);
	strcpy(to, from);
}

/* Cuts one line in place into exactly want fields; a field may be quoted, with "" for a quote. */
static void
fields_split(char *line, char *fields[], size_t want)
{
	char *from = line, *to;
	size_t n = 0;
	bool quoted;

	for (;;) {
		if (n == want)
			fail("too many fields", line);
		fields[n++] = to = from;
		quoted = *from == '"';
		if (quoted)
			from++;
		while (*from != '\0' && (quoted || *from != ',')) {
			if (*from == '"' && (!quoted || from[1] != '"')) {
				if (!quoted)
					fail("stray quote", line);
				quoted = false;
				from++;
				if (*from != ',' && *from != '\0')
					fail("text behind a quoted field", line);
				continue;
			}
			from += *from == '"';
			*to++ = *from++;
		}
		if (quoted)
			fail("unterminated quote", line);
		if (*from == '\0') {
			*to = '\0';
			break;
		}
		*to = '\0';
		from++;
	}
	if (n != want)
		fail("too few fields", line);
	for (size_t i = 0; i < n; i++)
		if (fields[i][0] == '\0')
			fail("empty field", line);
}

/* The first clause of a reason: what a message needs, without the remarks behind it. */
static void
why_cut(char *why)
{
	static const char *const ends[] = {";", " - ", ": ", " ("};
	char *cut = why + strlen(why);

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		char *end = strstr(why, ends[i]);

		if (end != NULL && end < cut)
			cut = end;
	}
	*cut = '\0';
	if (cut == why)
		fail("reason begins with a separator", why);
	for (const char *p = why; *p != '\0'; p++)
		if (*p < 0x20 || *p > 0x7e || *p == '"' || *p == '\\')
			fail("reason holds a byte that does not belong there", why);
}

/* 1 + the platform's index; a new platform is added. */
static unsigned int
platform_number(const char *platform)
{
	for (unsigned int i = 0; i < platform_count; i++)
		if (strcmp(platforms[i], platform) == 0)
			return i + 1;
	if (platform_count == PLATFORMS_MAX || platform[0] == '\0')
		fail("bad platform", platform);
	text_copy(platforms[platform_count], platform);
	return ++platform_count;
}

/* One bit of an address, counted from its front. */
static bool
bit_at(const uint8_t *bytes, unsigned int bit)
{
	return bytes[bit / 8] >> (7 - bit % 8) & 1;
}

/* Reads "ADDRESS/LENGTH"; host bits and repetitions are errors. */
static void
prefix_read(struct prefix_row *row, const char *text)
{
	char addr[TEXT_MAX], *slash, *end;
	unsigned int width;

	text_copy(row->text, text);
	text_copy(addr, text);
	slash = strchr(addr, '/');
	if (slash == NULL || !isdigit((unsigned char)slash[1]))
		fail("prefix has no length", text);
	*slash = '\0';
	row->bits = (unsigned int)strtoul(slash + 1, &end, 10);
	if (inet_pton(AF_INET, addr, row->bytes) == 1)
		row->family = 4;
	else if (inet_pton(AF_INET6, addr, row->bytes) == 1)
		row->family = 6;
	else
		fail("not an address", text);
	width = row->family == 4 ? 32 : 128;
	if (*end != '\0' || row->bits > width)
		fail("bad prefix length", text);
	for (unsigned int bit = row->bits; bit < width; bit++)
		if (bit_at(row->bytes, bit))
			fail("prefix has host bits", text);
	for (const struct prefix_row *old = prefix_rows; old < row; old++)
		if (old->family == row->family && old->bits == row->bits && memcmp(old->bytes, row->bytes, 16) == 0)
			fail("prefix stands twice", text);
}

/* One row of prefixes.csv; rows that are computed at run time are skipped. */
static void
prefix_line(char *line)
{
	struct prefix_row *row = &prefix_rows[prefix_count];
	char *fields[FIELDS_MAX], why[TEXT_MAX];
	const char *action;

	fields_split(line, fields, 5);
	action = fields[2];
	if (strcmp(action, "block-dynamic") == 0 || strcmp(action, "decode-dynamic") == 0 ||
	    strcmp(action, "block-pattern") == 0)
		return;
	if (prefix_count == ROWS_MAX)
		fail("too many rows", fields[0]);
	prefix_read(row, fields[0]);
	text_copy(why, fields[3]);
	why_cut(why);
	if (strcmp(action, "decode") == 0) {
		row->decode_only = row->embeds_ipv4 = true;
	} else if (strcmp(action, "decode+block") == 0) {
		row->embeds_ipv4 = true;
	} else if (strncmp(action, "env-", 4) == 0) {
		row->platform = platform_number(action + 4);
	} else if (strcmp(action, "block") != 0) {
		fail("unknown action", action);
	}
	if (row->platform != 0 && strlen(why) + strlen(action) < TEXT_MAX)
		sprintf(row->why, "%s: %s", action + 4, why);
	else
		strcpy(row->why, why);
	prefix_count++;
}

/* Only canonical names can be found. */
static void
canonical_check(const char *name)
{
	for (const char *p = name; *p != '\0'; p++)
		if (!islower((unsigned char)*p) && !isdigit((unsigned char)*p) && *p != '-' && *p != '.' && *p != '_')
			fail("name is not canonical", name);
}

/* One row of names.csv. */
static void
name_line(char *line)
{
	struct name_row *row = &name_rows[name_count];
	char *fields[FIELDS_MAX];

	fields_split(line, fields, 4);
	if (name_count == ROWS_MAX)
		fail("too many rows", fields[0]);
	text_copy(row->name, fields[0]);
	canonical_check(row->name);
	if (strcmp(fields[1], "exact") == 0 || strcmp(fields[1], "suffix-free") == 0)
		row->match = 0;
	else if (strcmp(fields[1], "label") == 0)
		row->match = 1;
	else if (strcmp(fields[1], "suffix") == 0)
		row->match = 2;
	else
		fail("unknown match", fields[1]);
	for (const struct name_row *old = name_rows; old < row; old++)
		if (strcmp(old->name, row->name) == 0)
			fail("name stands twice", row->name);
	if (strcmp(fields[2], "same") == 0 && name_count > 0) {
		strcpy(row->why, row[-1].why);
	} else {
		text_copy(row->why, fields[2]);
		why_cut(row->why);
	}
	name_count++;
}

/* Index of the word among the file's kinds. */
static int
kind_number(const struct host_file *file, const char *word)
{
	for (int kind = 0; kind < KINDS_MAX && file->words[kind] != NULL; kind++)
		if (strcmp(file->words[kind], word) == 0)
			return kind;
	fail("unknown kind", word);
	return 0;
}

/* One row of shared_hosts.csv or noted_names.csv. */
static void
host_line(char *line)
{
	struct host_row *row = &reading->rows[reading->count];
	char *fields[FIELDS_MAX];

	fields_split(line, fields, 4);
	if (reading->count == ROWS_MAX)
		fail("too many rows", fields[0]);
	canonical_check(fields[0]);
	text_copy(row->name, fields[0]);
	row->kind = kind_number(reading, fields[1]);
	text_copy(row->what, fields[2]);
	why_cut(row->what);
	for (const struct host_row *old = reading->rows; old < row; old++)
		if (old->kind == row->kind && strcmp(old->name, row->name) == 0)
			fail("name stands twice", row->name);
	reading->count++;
}

/* A wildcard above a shared suffix spans it too: a row for each name above one, of at least two labels. */
static void
above_add(void)
{
	size_t given = shared.count;

	for (size_t i = 0; i < given; i++) {
		const struct host_row *row = &shared.rows[i];
		const char *above = row->name;

		while (strcmp(shared.words[row->kind], "host") != 0 && (above = strchr(above, '.')) != NULL &&
		    strchr(++above, '.') != NULL) {
			if (shared.count == ROWS_MAX)
				fail("too many rows", above);
			strcpy(shared.rows[shared.count].name, above);
			strcpy(shared.rows[shared.count].what, row->what);
			shared.rows[shared.count++].kind = kind_number(&shared, "(above)");
		}
	}
}

/* Reads a CSV file with exactly this head line, row by row. */
static void
file_read(const char *path, const char *head, void (*line_handler)(char *line))
{
	char line[LINE_MAX_LEN];
	FILE *file = fopen(path, "r");
	size_t len;

	at_file = path;
	at_line = 0;
	if (file == NULL)
		fail("cannot be opened", path);
	while (fgets(line, sizeof(line), file) != NULL) {
		at_line++;
		len = strlen(line);
		if (len == 0 || line[len - 1] != '\n')
			fail("line is too long or unfinished", line);
		line[len - 1] = '\0';
		if (at_line > 1)
			line_handler(line);
		else if (strcmp(line, head) != 0)
			fail("unexpected head line", line);
	}
	if (ferror(file) || at_line < 2)
		fail("cannot be read, or is empty", path);
	fclose(file);
}

/* Shortest prefix first, then IPv4 before IPv6, then by address. */
static int
prefix_compare(const void *a, const void *b)
{
	const struct prefix_row *x = a, *y = b;

	if (x->bits != y->bits)
		return x->bits < y->bits ? -1 : 1;
	if (x->family != y->family)
		return x->family - y->family;
	return memcmp(x->bytes, y->bytes, 16);
}

/* Exact names, then labels, then suffixes, the longest first: the first hit is the most specific. */
static int
name_compare(const void *a, const void *b)
{
	const struct name_row *x = a, *y = b;
	size_t x_len = strlen(x->name), y_len = strlen(y->name);

	if (x->match != y->match)
		return x->match - y->match;
	if (x_len != y_len)
		return x_len > y_len ? -1 : 1;
	return strcmp(x->name, y->name);
}

/* qsort: by name, then by kind. */
static int
host_compare(const void *a, const void *b)
{
	const struct host_row *x = a, *y = b;
	int order = strcmp(x->name, y->name);

	return order != 0 ? order : x->kind - y->kind;
}

/* Prints one struct never_prefix. */
static void
row_print(int family, const uint8_t *bytes, unsigned int bits, const char *flags, const char *text, const char *why)
{
	unsigned int used = family == 4 ? 4 : 16;

	printf("\t{.prefix = {.addr = {.family = %d, .bytes = {", family);
	for (unsigned int i = 0; i < used; i++)
		printf("%s0x%02x", i == 0 ? "" : ", ", bytes[i]);
	printf("}}, .bits = %u}, %s.text = \"%s\", .why = \"%s\"},\n", bits, flags, text, why);
}

/* Prints never_prefixes, the public list. */
static void
prefixes_print(void)
{
	printf("static const struct never_prefix never_prefixes[] = {\n");
	for (size_t i = 0; i < prefix_count; i++) {
		const struct prefix_row *row = &prefix_rows[i];

		row_print(row->family, row->bytes, row->bits,
		    row->embeds_ipv4         ? ".embeds_ipv4 = true, "
			: row->platform != 0 ? ".env = true, "
					     : "",
		    row->text, row->why);
	}
	printf("};\n\n");
}

/* For each IPv4 row, in the order of never_ipv4, the same row as seen through NAT64. */
static void
nat64_print(void)
{
	const struct prefix_row *nat64 = NULL;

	for (size_t i = 0; i < prefix_count; i++) {
		if (!prefix_rows[i].decode_only)
			continue;
		if (nat64 != NULL || prefix_rows[i].bits != 96 || prefix_rows[i].family != 6)
			fail("expected one NAT64 /96 with action decode", prefix_rows[i].text);
		nat64 = &prefix_rows[i];
	}
	if (nat64 == NULL) {
		fail("no row with action", "decode");
		return;
	}
	printf("static const struct never_prefix never_nat64[] = {\n");
	for (size_t i = prefix_count; i-- > 0;) {
		const struct prefix_row *row = &prefix_rows[i];
		char text[TEXT_MAX], why[2 * TEXT_MAX + 32], addr[INET6_ADDRSTRLEN];
		uint8_t bytes[16];

		if (row->family != 4)
			continue;
		memcpy(bytes, nat64->bytes, 16);
		memcpy(bytes + 12, row->bytes, 4);
		snprintf(text, sizeof(text), "%s/%u", inet_ntop(AF_INET6, bytes, addr, sizeof(addr)), 96 + row->bits);
		snprintf(why, sizeof(why), "NAT64 of %s, %s", row->text, row->why);
		row_print(6, bytes, 96 + row->bits, ".embeds_ipv4 = true, ", text, why);
	}
	printf("};\n\n");
}

/* Reads 8 bytes in network order. */
static uint64_t
half_read(const uint8_t *bytes)
{
	uint64_t half = 0;

	for (unsigned int i = 0; i < 8; i++)
		half = half << 8 | bytes[i];
	return half;
}

/* A mask of the first bits of 64; more than 64 are all. */
static uint64_t
half_mask(unsigned int bits)
{
	return bits == 0 ? 0 : bits >= 64 ? UINT64_MAX : ~(UINT64_MAX >> bits);
}

/* Prints the lookup tables, longest prefix first, and the platforms. */
static void
lookups_print(void)
{
	printf("static const struct never_ipv4 never_ipv4[] = {\n");
	for (size_t i = prefix_count; i-- > 0;) {
		const struct prefix_row *row = &prefix_rows[i];

		if (row->family == 4)
			printf("\t{.net = 0x%08xu, .mask = 0x%08xu, .row = %zu, .platform = %u},\n",
			    (unsigned int)(half_read(row->bytes) >> 32), (unsigned int)(half_mask(row->bits) >> 32), i,
			    row->platform);
	}
	printf("};\n\nstatic const struct never_ipv6 never_ipv6[] = {\n");
	for (size_t i = prefix_count; i-- > 0;) {
		const struct prefix_row *row = &prefix_rows[i];

		if (row->family == 6)
			printf("\t{.net = {0x%016llxu, 0x%016llxu}, .mask = {0x%016llxu, 0x%016llxu}, .row = %zu, "
			       ".platform = %u},\n",
			    (unsigned long long)half_read(row->bytes), (unsigned long long)half_read(row->bytes + 8),
			    (unsigned long long)half_mask(row->bits),
			    (unsigned long long)half_mask(row->bits > 64 ? row->bits - 64 : 0), i, row->platform);
	}
	printf("};\n\nstatic const char *const never_platforms[] = {\n");
	for (unsigned int i = 0; i < platform_count; i++)
		printf("\t\"%s\",\n", platforms[i]);
	printf("};\n");
}

/* Prints never_names and the lengths of their names. */
static void
names_print(void)
{
	printf("static const struct never_name never_names[] = {\n");
	for (size_t i = 0; i < name_count; i++)
		printf("\t{.name = \"%s\", .match = %s, .why = \"%s\"},\n", name_rows[i].name,
		    match_words[name_rows[i].match], name_rows[i].why);
	printf("};\n\nstatic const unsigned char never_name_lens[] = {");
	for (size_t i = 0; i < name_count; i++)
		printf("%s%zu", i == 0 ? "" : ", ", strlen(name_rows[i].name));
	printf("};\n");
}

/* Prints one table of hosts, sorted for binary search. */
static void
hosts_print(struct host_file *file)
{
	qsort(file->rows, file->count, sizeof(file->rows[0]), host_compare);
	printf("static const struct %s[] = {\n", file->table);
	for (size_t i = 0; i < file->count; i++)
		printf("\t{.name = \"%s\", .kind = %s, .what = \"%s\"},\n", file->rows[i].name,
		    file->values[file->rows[i].kind], file->rows[i].what);
	printf("};\n");
}

int
main(int argc, char **argv)
{
	if (argc != 5) {
		fprintf(stderr, "usage: never_gen prefixes.csv names.csv shared_hosts.csv noted_names.csv\n");
		return 2;
	}
	file_read(argv[1], "prefix,globally_reachable,action,why,source", prefix_line);
	file_read(argv[2], "name,match,why,source", name_line);
	reading = &shared;
	file_read(argv[3], "name,kind,what,source", host_line);
	above_add();
	reading = &noted;
	file_read(argv[4], "name,kind,what,source", host_line);
	qsort(prefix_rows, prefix_count, sizeof(prefix_rows[0]), prefix_compare);
	qsort(name_rows, name_count, sizeof(name_rows[0]), name_compare);
	printf("/* Generated from the CSV files in policy/names/; edit those. */\n#ifdef NEVER_LIST_PREFIXES\n");
	prefixes_print();
	nat64_print();
	lookups_print();
	printf("#endif\n#ifdef NEVER_LIST_NAMES\n");
	names_print();
	printf("#endif\n#ifdef NEVER_LIST_HOSTS\n");
	hosts_print(&shared);
	hosts_print(&noted);
	printf("#endif\n");
	return fflush(stdout) == 0 && !ferror(stdout) ? 0 : 1;
}
