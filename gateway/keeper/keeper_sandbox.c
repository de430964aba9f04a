/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The table of sandboxes: by id in buckets, and all of them in the list that the watch goes through. */
#include "gateway/keeper/keeper.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

size_t
keeper_sandbox_turn(int64_t id)
{
	return (size_t)((uint64_t)id * UINT64_C(0x9e3779b97f4a7c15) >> 40);
}

/* The head of the bucket that a sandbox of this id is in. */
static struct keeper_sandbox **
sandbox_bucket(struct keeper *keeper, int64_t id)
{
	return &keeper->buckets[keeper_sandbox_turn(id) % KEEPER_BUCKETS];
}

struct keeper_sandbox *
keeper_sandbox_find(struct keeper *keeper, int64_t id)
{
	struct keeper_sandbox *sandbox = *sandbox_bucket(keeper, id);

	while (sandbox != NULL && sandbox->id != id)
		sandbox = sandbox->next;
	return sandbox;
}

struct keeper_sandbox *
keeper_sandbox_find_name(struct keeper *keeper, const char *name)
{
	struct keeper_sandbox *sandbox;

	TAILQ_FOREACH(sandbox, &keeper->watched, watched)
	if (strcmp(tap_config(sandbox->tap)->name, name) == 0)
		return sandbox;
	return NULL;
}

struct keeper_sandbox *
keeper_sandbox_find_of(const struct keeper_role *gateway, int64_t id)
{
	struct keeper_sandbox *sandbox = keeper_sandbox_find(gateway->keeper, id);

	return sandbox != NULL && sandbox->gateway == gateway ? sandbox : NULL;
}

void
keeper_sandbox_add(struct keeper *keeper, struct keeper_sandbox *sandbox)
{
	struct keeper_sandbox **bucket = sandbox_bucket(keeper, sandbox->id);

	sandbox->next = *bucket;
	*bucket = sandbox;
	keeper->sandbox_count++;
	/* After those that have waited longer; and those that came at once do not all count their sockets at once. */
	TAILQ_INSERT_TAIL(&keeper->watched, sandbox, watched);
	sandbox->looks = (uint32_t)keeper_sandbox_turn(sandbox->id);
}

void
keeper_sandbox_free(struct keeper *keeper, struct keeper_sandbox *sandbox, bool keep)
{
	struct keeper_sandbox **at = sandbox_bucket(keeper, sandbox->id);

	while (*at != sandbox)
		at = &(*at)->next;
	*at = sandbox->next;
	keeper->sandbox_count--;
	TAILQ_REMOVE(&keeper->watched, sandbox, watched);
	if (sandbox->sockets_due)
		TAILQ_REMOVE(&keeper->listed, sandbox, listed);
	tap_detach(sandbox->tap, keep);
	snapshot_free(sandbox->snapshot);
	snapshot_free(sandbox->offered);
	close(sandbox->snapshot_fd);
	usage_table_free(&sandbox->usage);
	free(sandbox);
}
