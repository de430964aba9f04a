/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The table of messages: for each row and each way it goes, the right message passes and each kind of wrong one does
 * not. */
#include "gateway/shared/ipc.h"
#include "gateway/shared/msg.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static _Alignas(8) unsigned char body[2 * IPC_BODY_MAX];

static bool
goes(const struct msg_row *row, enum msg_role from, enum msg_role to)
{
	return (row->from >> from & 1) != 0 && (row->to >> to & 1) != 0;
}

/* Makes a body with this many elements (records: of this kind); returns its size. */
static uint32_t
make(const struct msg_row *row, uint32_t n)
{
	memset(body, 0, sizeof(body));
	if (row->record) {
		memcpy(body, &n, sizeof(n));
		return record_size(n);
	}
	if (row->list.max == 0)
		return row->size;
	memcpy(body + row->list.count_at, &n, sizeof(n));
	return row->size + n * row->list.element;
}

static void
passes(const struct msg_row *row, enum msg_role from, enum msg_role to, uint32_t size, size_t fds)
{
	assert_null(msg_wrong(row->type, from, to, body, size, fds));
}

static void
refused(const struct msg_row *row, enum msg_role from, enum msg_role to, uint32_t size, size_t fds)
{
	assert_non_null(msg_wrong(row->type, from, to, body, size, fds));
}

/* All that is wrong but the way. */
static void
one_way(const struct msg_row *row, enum msg_role from, enum msg_role to)
{
	uint32_t first = row->record ? RECORD_FLOW_OPEN : 1;
	uint32_t last = row->record ? RECORD_KIND_MAX - 1 : row->list.max == 0 ? 1 : row->list.max;

	for (uint32_t n = first; n <= last; n++) {
		uint32_t size = make(row, n);

		passes(row, from, to, size, row->fds);
		refused(row, from, to, size + 1, row->fds);
		refused(row, from, to, size, row->fds + 1);
		if (size > 0)
			refused(row, from, to, size - 1, row->fds);
		if (size > 0)
			refused(row, from, to, 0, row->fds);
		if (row->fds > 0)
			refused(row, from, to, size, row->fds - 1);
		assert_true(size <= IPC_BODY_MAX && row->fds <= IPC_FDS_MAX);
	}
	if (row->list.max > 0) {
		refused(row, from, to, make(row, 0), row->fds);
		refused(row, from, to, make(row, row->list.max + 1), row->fds);
		make(row, UINT32_MAX); /* whose size is that of one element less than none */
		refused(row, from, to, row->size - row->list.element, row->fds);
	}
	if (row->record) {
		make(row, RECORD_KIND_MAX);
		refused(row, from, to, 0, row->fds);
		refused(row, from, to, sizeof(struct record), row->fds);
	}
}

static void
each_row_passes_the_right_message_only(void **state)
{
	const struct msg_row *rows;
	size_t count;

	(void)state;
	rows = msg_rows(&count);
	for (size_t i = 0; i < count; i++)
		for (enum msg_role from = 0; from < MSG_ROLE_MAX; from++)
			for (enum msg_role to = 0; to < MSG_ROLE_MAX; to++)
				if (goes(&rows[i], from, to))
					one_way(&rows[i], from, to);
}

static void
no_message_goes_another_way(void **state)
{
	const struct msg_row *rows;
	size_t count;

	(void)state;
	rows = msg_rows(&count);
	for (size_t i = 0; i < count; i++) {
		uint32_t size = make(&rows[i], 1);

		for (enum msg_role from = 0; from < MSG_ROLE_MAX; from++) {
			for (enum msg_role to = 0; to < MSG_ROLE_MAX; to++) {
				bool known = false;

				for (size_t k = 0; k < count; k++)
					known |= rows[k].type == rows[i].type && goes(&rows[k], from, to);
				assert_int_equal(
				    msg_wrong(rows[i].type, from, to, body, size, rows[i].fds) == NULL, known);
			}
		}
	}
}

static void
each_type_has_a_row_and_answers_come_back(void **state)
{
	const struct msg_row *rows;
	size_t count;

	(void)state;
	rows = msg_rows(&count);
	for (uint16_t type = 1; type < MSG_TYPE_MAX; type++)
		assert_string_not_equal(msg_name(type), "?");
	assert_string_equal(msg_name(0), "?");
	assert_string_equal(msg_name(MSG_TYPE_MAX), "?");
	assert_int_equal(msg_answer_type(MSG_TYPE_MAX), 0);
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(msg_answer_type(rows[i].type), rows[i].answer);
		for (enum msg_role from = 0; rows[i].answer != 0 && from < MSG_ROLE_MAX; from++)
			for (enum msg_role to = 0; to < MSG_ROLE_MAX; to++)
				if (goes(&rows[i], from, to))
					assert_non_null(msg_row_find(rows[i].answer, to, from));
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(each_row_passes_the_right_message_only),
	    cmocka_unit_test(no_message_goes_another_way),
	    cmocka_unit_test(each_type_has_a_row_and_answers_come_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
