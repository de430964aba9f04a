/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The column table against what is made of it: no column can be missing from the file, a record's row, a reader's row,
 * JSON or CSV. */
#include "audit/columns.h"
#include "audit/show/export.h"
#include "audit/show/render.h"
#include "audit/store/schema.h"
#include "audit_fixture.h"

#include <jansson.h>

/* Columns that no output shows under any name: the guest's bytes behind a name, bits that have members of their own,
 * and of a connection what its name ends with. */
static const char *const hidden[] = {"name_raw", "qname_raw", "flags", "domain"};

static bool
is_hidden(const char *name)
{
	for (size_t i = 0; i < sizeof(hidden) / sizeof(hidden[0]); i++)
		if (strcmp(hidden[i], name) == 0)
			return true;
	return false;
}

static void
test_the_file_has_the_columns_in_their_order(void **state)
{
	struct store *store = fixture_open(NULL);
	char sql[256];

	(void)state;
	for (unsigned int table = 1; table < COLUMNS_TABLE_MAX; table++) {
		const struct columns *columns = columns_of(table);
		int64_t count = 0;

		for (size_t i = 0; i < columns->count; i++) {
			const struct column *column = &columns->columns[i];

			if (column->type == NULL)
				continue;
			snprintf(sql, sizeof(sql),
			    "SELECT name || ' ' || type || CASE WHEN \"notnull\" THEN ' NOT NULL' ELSE '' END || "
			    "CASE WHEN pk THEN ' PRIMARY KEY' ELSE '' END FROM pragma_table_info('%s') WHERE cid = %d",
			    columns->name, (int)count++);
			assert_string_equal(fixture_text(sql) + strlen(column->name) + 1, column->type);
			assert_memory_equal(fixture_text(sql), column->name, strlen(column->name));
			assert_int_equal(columns_index(table, column->name), i);
		}
		snprintf(sql, sizeof(sql), "SELECT count(*) FROM pragma_table_info('%s')", columns->name);
		assert_int_equal(fixture_integer(sql), count);
	}
	store_close(store);
}

/* Every column is filled by a record, and every one of a table that is read becomes a member and is shown. */
static void
test_each_column_is_filled_read_and_shown(void **state)
{
	(void)state;
	for (unsigned int table = 1; table < COLUMNS_TABLE_MAX; table++) {
		const struct columns *columns = columns_of(table);

		for (size_t i = 0; i < columns->count; i++) {
			const struct column *column = &columns->columns[i];

			if (column->type != NULL && column->first.bind == COLUMN_BIND_NONE &&
			    column->second.bind == COLUMN_BIND_NONE)
				fail_msg("no record fills %s.%s", columns->name, column->name);
			if (table > COLUMNS_EVENTS || column->type == NULL || is_hidden(column->name))
				continue;
			if (column->member == COLUMN_ABSENT || column->csv.name == NULL ||
			    (column->json.name == NULL && strcmp(column->name, "seq") != 0))
				fail_msg("%s.%s is not read or not shown", columns->name, column->name);
		}
	}
}

/* Gives every member of a row that this table fills a value. */
static struct query_row
full_row(unsigned int table)
{
	struct query_row row = {.kind = 1u << (table - 1), .cursor = "log:1", .flags = 7, .verdict = VERDICT_DENIED};
	const struct columns *columns = columns_of(table);

	for (size_t i = 0; i < columns->count; i++) {
		const struct column *column = &columns->columns[i];
		void *member = (char *)&row + column->row;

		if (column->member == COLUMN_TEXT)
			*(struct query_text *)member = column->form == COLUMN_LABELS || column->form == COLUMN_OBJECT
			    ? (struct query_text){"{\"a\":\"b\"}", 9}
			    : (struct query_text){RECORD_RULE_LEARN, strlen(RECORD_RULE_LEARN)};
		else if (column->member == COLUMN_NUMBER)
			*(struct query_number *)member = (struct query_number){true, 1};
		else if (column->member == COLUMN_INTEGER && column->form != COLUMN_VERDICT)
			*(int64_t *)member = 1;
	}
	return row;
}

static void
test_json_and_csv_have_every_output(void **state)
{
	(void)state;
	for (unsigned int table = 1; table <= COLUMNS_EVENTS; table++) {
		const struct export_format *csv = export_find("csv");
		const struct export_options options = {.following = false};
		const struct columns *columns = columns_of(table);
		struct query_row row = full_row(table);
		char *text = NULL, heading[64];
		const char *key;
		json_t *object, *value;
		size_t size, members = 1;
		FILE *out = open_memstream(&text, &size);

		assert_int_equal(render_json(out, &row), 0);
		fclose(out);
		object = json_loads(text, 0, NULL);
		assert_non_null(object);
		for (size_t i = 0; i < columns->count; i++) {
			if (columns->columns[i].json.name == NULL)
				continue;
			members++;
			if (json_object_get(object, columns->columns[i].json.name) == NULL)
				fail_msg("JSON lacks %s: %s", columns->columns[i].json.name, text);
		}
		json_object_foreach(object, key, value) members--;
		assert_int_equal(members, 0);
		json_decref(object);
		free(text);

		out = open_memstream(&text, &size);
		csv->begin(out);
		assert_int_equal(csv->row(out, &options, &row), 0);
		fclose(out);
		for (size_t i = 0; i < columns->count; i++) {
			if (columns->columns[i].csv.name == NULL)
				continue;
			snprintf(heading, sizeof(heading), "\"%s\"", columns->columns[i].csv.name);
			if (strstr(text, heading) == NULL)
				fail_msg("CSV lacks %s", heading);
		}
		free(text);
	}
}

#define COLUMNS_TEST(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    COLUMNS_TEST(test_the_file_has_the_columns_in_their_order),
	    cmocka_unit_test(test_each_column_is_filled_read_and_shown),
	    cmocka_unit_test(test_json_and_csv_have_every_output),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
