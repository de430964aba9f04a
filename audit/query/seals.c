/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "audit/query/seals.h"

#include "audit/query/open.h"
#include "audit/store/seal_table.h"
#include "audit/store/schema.h"

#include <errno.h>
#include <stdlib.h>

struct seals {
	struct open_file file;
	int64_t after; /* seals up to this number were read, or are not asked for */
};

struct seals *
seals_open(const char *path, int64_t after, struct error *err)
{
	struct seals *seals = calloc(1, sizeof(*seals));

	if (seals == NULL) {
		error_sys(err, ENOMEM, "%s", path);
		return NULL;
	}
	if (open_read_only(&seals->file, path, err) < 0) {
		free(seals);
		return NULL;
	}
	seals->after = after;
	return seals;
}

void
seals_close(struct seals *seals)
{
	if (seals == NULL)
		return;
	open_close(&seals->file);
	free(seals);
}

/* Opens a stale database again: another file took its place, or it was opened as an unchanging copy. */
static int
seals_reopen(struct seals *seals, struct error *err)
{
	struct open_file fresh;

	if (open_read_only(&fresh, seals->file.path, err) < 0)
		return err->code == ERROR_NOT_FOUND || err->code == ERROR_CORRUPT ? 0 : -1;
	if (fresh.file.st_ino != seals->file.file.st_ino || fresh.file.st_dev != seals->file.file.st_dev)
		seals->after = 0;
	open_close(&seals->file);
	seals->file = fresh;
	return 0;
}

int
seals_read(struct seals *seals, void (*handler)(const struct seal *seal, const char *log_id, void *context),
    void *context, struct error *err)
{
	struct open_file *file = &seals->file;
	char log_id[SEAL_LOG_ID_MAX];
	struct rows next;
	struct seal seal;
	bool whole;

	if (open_is_stale(file) && seals_reopen(seals, err) < 0)
		return -1;
	if (seal_table_log_id(file->db, log_id) != 0)
		return schema_error(err, file->db, file->path);
	if (log_id[0] == '\0')
		return error_set(err, ERROR_CORRUPT, "%s has lost its log_id", file->path);
	seal_table_prepare(&next, file->db, file->path, err);
	while (seal_table_next(&next, seals->after, &seal, &whole)) {
		seals->after = seal.n;
		if (whole)
			handler(&seal, log_id, context);
	}
	return rows_finish(&next);
}

int
seals_keys(struct seals *seals, struct seal_key *ret_keys, size_t max, size_t *ret_count, struct error *err)
{
	if (seal_table_keys(seals->file.db, ret_keys, max, ret_count) != 0)
		return schema_error(err, seals->file.db, seals->file.path);
	return *ret_count > 0 ? 0 : error_set(err, ERROR_NOT_FOUND, "%s has no seals yet", seals->file.path);
}
