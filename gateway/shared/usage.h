/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a sandbox has used up: uses and bytes, in all and by rule. The same table in three places.
 *
 * A gateway counts (gateway/path/count/quota.c) and reports to the keeper, which outlives it and passes the counts on
 * to the next one and to control; control writes them to disk for the next keeper. Rows hold totals and are only
 * raised, so that nothing is lost or counted twice in whatever order reports arrive. A row lives as long as its rule
 * stays in the policy: taking a rule out and putting it back is a new grant. */
#ifndef POSTERN_GATEWAY_USAGE_H
#define POSTERN_GATEWAY_USAGE_H

#include "gateway/shared/ipc.h"
#include "gateway/shared/msg.h"
#include "policy/compiled/snapshot.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Rules of one policy that are counted: those with uses, or with limits of bytes or connections. */
#define USAGE_RULES_MAX 1024
/* Rows of one sandbox: its rules', its own, and those that wait for a rule to come back after a broken policy. */
#define USAGE_ROWS_MAX 2048

struct usage_table {
	struct msg_usage_row *rows; /* by rule; owned */
	size_t count, size;
};

void usage_table_free(struct usage_table *table); /* accepts a zeroed one; it is one afterwards */
/* NULL when there is none. Valid until the table changes. */
struct msg_usage_row *usage_table_find(const struct usage_table *table, uint64_t rule);
/* Enter a row, or raise the one that is there. Returns 1 when that changed anything, 0, -ENOSPC or -ENOMEM. */
int usage_table_raise(struct usage_table *table, const struct msg_usage_row *row);
/* All rows of a message. */
int usage_table_take(struct usage_table *table, const struct msg_usage *usage);
/* Forget rules that the policy does not have. True when there were some. */
bool usage_table_keep(struct usage_table *table, const struct snapshot *snapshot);
/* Send all rows to a role, in as many messages as it takes; nothing when it is empty. 0 or -errno of ipc_send. */
int usage_table_send(const struct usage_table *table, struct ipc *ipc, int64_t sandbox, const char *name);

/* Is the rule one that is counted? */
bool usage_counts_rule(const struct snapshot *snapshot, uint32_t rule);

#endif
