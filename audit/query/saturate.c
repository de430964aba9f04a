/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "audit/query/saturate.h"

#include <sqlite3.h>

#include <stdbool.h>
#include <stddef.h>

struct saturate_sum {
	int64_t sum;
	bool any;
};

static void
saturate_step(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	struct saturate_sum *sum;

	(void)argc;
	if (sqlite3_value_type(argv[0]) == SQLITE_NULL)
		return;
	sum = sqlite3_aggregate_context(context, sizeof(*sum));
	if (sum == NULL) {
		sqlite3_result_error_nomem(context);
		return;
	}
	sum->sum = saturate_add(sum->sum, sqlite3_value_int64(argv[0]));
	sum->any = true;
}

static void
saturate_final(sqlite3_context *context)
{
	const struct saturate_sum *sum = sqlite3_aggregate_context(context, 0);

	if (sum != NULL && sum->any)
		sqlite3_result_int64(context, sum->sum);
}

int
saturate_functions(sqlite3 *db)
{
	return sqlite3_create_function(
	    db, "sum_capped", 1, SQLITE_UTF8 | SQLITE_DETERMINISTIC, NULL, NULL, saturate_step, saturate_final);
}
