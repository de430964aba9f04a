/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "audit/query/open.h"

#include "audit/query/saturate.h"
#include "audit/store/schema.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A reader waits this long while the writer cuts its log or recovers. */
#define OPEN_BUSY_MS 2000
/* Longest value believed of a file. */
#define OPEN_VALUE_MAX (1 << 20)

/* "file:" URI with every byte that means something in one escaped. */
static int
open_immutable_uri(const char *path, char *ret_uri, size_t size)
{
	size_t len = (size_t)snprintf(ret_uri, size, "file:");

	for (; *path != '\0'; path++) {
		int n = snprintf(ret_uri + len, size - len, strchr("?#%", *path) != NULL ? "%%%02X" : "%c", *path);

		if (n < 0 || (size_t)n >= size - len)
			return -ENAMETOOLONG;
		len += (size_t)n;
	}
	if (size - len <= strlen("?immutable=1"))
		return -ENAMETOOLONG;
	memcpy(ret_uri + len, "?immutable=1", sizeof("?immutable=1"));
	return 0;
}

static int
open_check_schema(const struct open_file *file, struct error *err)
{
	enum schema_state state;

	if (schema_inspect(file->db, &state, err) < 0)
		return schema_error(err, file->db, file->path);
	switch (state) {
	case SCHEMA_OURS:
		return 0;
	case SCHEMA_NEWER:
		return error_set(err, ERROR_USAGE,
		    "%s was made by a newer postern (schema after %d); upgrade this one, or ask there", file->path,
		    SCHEMA_VERSION);
	case SCHEMA_EMPTY:
	case SCHEMA_FOREIGN:
		break;
	}
	return error_set(err, ERROR_CORRUPT, "%s is not an audit database", file->path);
}

static int
open_db(struct open_file *file, bool immutable, struct error *err)
{
	int flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX | (immutable ? SQLITE_OPEN_URI : 0);
	char uri[3 * PATH_MAX + 32];

	if (immutable && open_immutable_uri(file->path, uri, sizeof(uri)) < 0)
		return error_sys(err, ENAMETOOLONG, "%s", file->path);
	file->immutable = immutable;
	if (sqlite3_open_v2(immutable ? uri : file->path, &file->db, flags, NULL) != SQLITE_OK)
		return schema_error(err, file->db, file->path);
	sqlite3_busy_timeout(file->db, OPEN_BUSY_MS);
	sqlite3_limit(file->db, SQLITE_LIMIT_LENGTH, OPEN_VALUE_MAX);
	sqlite3_db_config(file->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	sqlite3_db_config(file->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_db_config(file->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
	if (saturate_functions(file->db) != SQLITE_OK)
		return schema_error(err, file->db, file->path);
	return open_check_schema(file, err);
}

void
open_close(struct open_file *file)
{
	sqlite3_close(file->db);
	file->db = NULL;
}

/* A copy has no -wal, or an empty one that nobody may make an -shm for: then nothing changes the file, and SQLite may
 * read it without locks. A -wal with content is never passed over. */
static int
open_either_way(struct open_file *file, struct error *err)
{
	char wal[PATH_MAX + 8];
	struct stat st;
	off_t wal_bytes;

	if (stat(file->path, &file->file) < 0) {
		if (errno == ENOENT || errno == ENOTDIR)
			return error_set(err, ERROR_NOT_FOUND,
			    "no audit log at %s: posternd has not run, or with another --state-dir (POSTERN_STATE_DIR)",
			    file->path);
		return error_sys(err, errno, "%s", file->path);
	}
	if (S_ISDIR(file->file.st_mode))
		return error_set(err, ERROR_USAGE, "%s is a directory; name the audit database in it", file->path);
	snprintf(wal, sizeof(wal), "%s-wal", file->path);
	if (stat(wal, &st) < 0)
		return open_db(file, true, err);
	wal_bytes = st.st_size;
	if (open_db(file, false, err) == 0)
		return 0;
	if (wal_bytes > 0 || sqlite3_errcode(file->db) != SQLITE_CANTOPEN)
		return -1;
	open_close(file);
	return open_db(file, true, err);
}

/* SQLite's sentence does not say what can be done. */
static void
open_explain(const struct open_file *file, struct error *err)
{
	int code = file->db == NULL ? SQLITE_OK : sqlite3_errcode(file->db);

	if (err == NULL)
		return;
	if (err->code == ERROR_PERMISSION && access(file->path, R_OK) < 0)
		error_set(err, ERROR_PERMISSION,
		    "%s: you may not read it; become root or a member of the daemon's group, or read a copy",
		    file->path);
	else if (err->code == ERROR_PERMISSION)
		error_set(err, ERROR_PERMISSION,
		    "%s: what was written last is in its -wal, which you may not read or which lacks its -shm; become "
		    "root, "
		    "or copy the file and its -wal to where you may write",
		    file->path);
	else if (code == SQLITE_NOTADB)
		error_set(err, ERROR_CORRUPT, "%s is not an audit database, nor any of SQLite's", file->path);
	else if (code == SQLITE_CORRUPT)
		error_set(err, ERROR_CORRUPT,
		    "%s is damaged, or a part of a copy (%s); sqlite3 FILE .recover prints what can be read of it",
		    file->path, sqlite3_errmsg(file->db));
}

int
open_read_only(struct open_file *ret_file, const char *path, struct error *err)
{
	memset(ret_file, 0, sizeof(*ret_file));
	if (strlen(path) >= sizeof(ret_file->path))
		return error_sys(err, ENAMETOOLONG, "%s", path);
	memcpy(ret_file->path, path, strlen(path) + 1);
	if (open_either_way(ret_file, err) == 0)
		return 0;
	open_explain(ret_file, err);
	open_close(ret_file);
	return -1;
}

bool
open_is_stale(const struct open_file *file)
{
	struct stat st;

	return file->immutable || stat(file->path, &st) < 0 || st.st_dev != file->file.st_dev ||
	    st.st_ino != file->file.st_ino;
}
