/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "gateway/shared/usage.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void
usage_table_free(struct usage_table *table)
{
	free(table->rows);
	*table = (struct usage_table){0};
}

/* Where the rule's row is, or belongs. */
static size_t
usage_at(const struct usage_table *table, uint64_t rule)
{
	size_t low = 0, high = table->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (table->rows[middle].rule < rule)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct msg_usage_row *
usage_table_find(const struct usage_table *table, uint64_t rule)
{
	size_t at = usage_at(table, rule);

	return at < table->count && table->rows[at].rule == rule ? &table->rows[at] : NULL;
}

/* Enters a row that is not there. 1, -ENOSPC or -ENOMEM. */
static int
usage_insert(struct usage_table *table, const struct msg_usage_row *row)
{
	size_t at = usage_at(table, row->rule), size = table->size == 0 ? 8 : table->size * 2;
	struct msg_usage_row *rows;

	if (table->count >= USAGE_ROWS_MAX)
		return -ENOSPC;
	if (table->count == table->size) {
		rows = reallocarray(table->rows, size, sizeof(*rows));
		if (rows == NULL)
			return -ENOMEM;
		table->rows = rows;
		table->size = size;
	}
	memmove(&table->rows[at + 1], &table->rows[at], (table->count - at) * sizeof(*row));
	table->rows[at] = *row;
	table->count++;
	return 1;
}

/* Raises the value. True when the other is larger. */
static bool
usage_max(uint64_t *value, uint64_t other)
{
	if (other <= *value)
		return false;
	*value = other;
	return true;
}

int
usage_table_raise(struct usage_table *table, const struct msg_usage_row *row)
{
	struct msg_usage_row *known = usage_table_find(table, row->rule);
	bool uses, upload, download;

	if (known == NULL)
		return usage_insert(table, row);
	uses = usage_max(&known->uses, row->uses);
	upload = usage_max(&known->upload, row->upload);
	download = usage_max(&known->download, row->download);
	return uses || upload || download;
}

int
usage_table_take(struct usage_table *table, const struct msg_usage *usage)
{
	int changed = 0;

	for (uint32_t i = 0; i < usage->count; i++) {
		int rc = usage_table_raise(table, &usage->rows[i]);

		if (rc < 0)
			return rc;
		changed |= rc;
	}
	return changed;
}

bool
usage_table_keep(struct usage_table *table, const struct snapshot *snapshot)
{
	size_t rules = snapshot_rule_count(snapshot), kept = 0, count = table->count;
	bool *has = calloc(count + 1, sizeof(*has));

	if (has == NULL)
		return false; /* what is kept too long only refuses more */
	for (uint32_t rule = 0; count > 0 && rule < rules; rule++) {
		const struct msg_usage_row *row = usage_table_find(table, snapshot_rule_id(snapshot, rule));

		if (row != NULL)
			has[row - table->rows] = true;
	}
	for (size_t i = 0; i < count; i++)
		if (has[i] || table->rows[i].rule == 0)
			table->rows[kept++] = table->rows[i];
	table->count = kept;
	free(has);
	return kept < count;
}

int
usage_table_send(const struct usage_table *table, struct ipc *ipc, int64_t sandbox, const char *name)
{
	struct msg_usage usage = {.id = sandbox};
	int rc = 0;

	snprintf(usage.name, sizeof(usage.name), "%s", name);
	for (size_t at = 0; at < table->count && rc == 0; at += usage.count) {
		usage.count = (uint32_t)(table->count - at < MSG_USAGE_MAX ? table->count - at : MSG_USAGE_MAX);
		memcpy(usage.rows, &table->rows[at], usage.count * sizeof(usage.rows[0]));
		rc = ipc_send(ipc, MSG_USAGE, 0, &usage,
		    (uint32_t)(offsetof(struct msg_usage, rows) + usage.count * sizeof(usage.rows[0])), NULL, 0);
	}
	return rc;
}

bool
usage_counts_rule(const struct snapshot *snapshot, uint32_t rule)
{
	return snapshot_rule_uses(snapshot, rule) != 0 || limits_any(snapshot_rule_limits(snapshot, rule));
}
