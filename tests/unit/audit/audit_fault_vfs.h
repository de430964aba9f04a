/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Theory of operation. An SQLite VFS over the system's own, for tests: it counts input/output calls, makes chosen ones
 * fail, and knows what a power cut would leave of each file. It registers itself as the default, so that the code under
 * test opens its files through it without knowing.
 *
 * Faults. A kind of fault says which calls it can hit and with what code; the n-th such call fails, once or from then
 * on for ever, or each fails with a probability (a storm). Unlocking and closing never fail: they do not in reality.
 * Waiting (xSleep) takes no time.
 *
 * Power cuts. A disk is the bytes of a file as of its last sync and the writes since, in order. A cut happens at the
 * n-th writing call: of the writes that were not synced none, all, or pseudo-randomly chosen sectors survive, the image
 * goes to another directory, and every later call fails, because the machine is off. A sync that failed has lost what
 * it was to sync: Linux marks such pages clean, and a later sync that works does not write them. Names are durable at
 * once (SQLite syncs the directory of a new log itself). */
#ifndef POSTERN_TESTS_AUDIT_FAULT_VFS_H
#define POSTERN_TESTS_AUDIT_FAULT_VFS_H

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sqlite3.h>

/* Bytes that a disk writes whole or not at all. */
#define FAULT_SECTOR 512
#define FAULT_ROOM_MIN ((size_t)64 * 1024)
/* Files that a test's database has: itself, -wal, -journal. */
#define FAULT_DISKS_MAX 4

enum fault_call {
	FAULT_CALL_OPEN,
	FAULT_CALL_DELETE,
	FAULT_CALL_ACCESS,
	FAULT_CALL_READ,
	FAULT_CALL_WRITE,
	FAULT_CALL_TRUNCATE,
	FAULT_CALL_SYNC,
	FAULT_CALL_SIZE,
	FAULT_CALL_LOCK,
	FAULT_CALL_CHECK_LOCK,
	FAULT_CALL_SHM_MAP,
	FAULT_CALL_SHM_LOCK,
	FAULT_CALL_MAX
};

enum fault_kind {
	FAULT_IOERR,      /* any call: an input/output error, or that the file cannot be opened */
	FAULT_FULL,       /* a write, after half of it: no space */
	FAULT_BUSY,       /* a lock: somebody else has it */
	FAULT_NOMEM,      /* any call: the kernel or the VFS has no memory for it */
	FAULT_SYNC,       /* a sync alone */
	FAULT_SHORT_READ, /* a read: half of it, the rest zeroes */
	FAULT_KIND_MAX
};

static const char *const fault_kind_texts[] = {"ioerr", "full", "busy", "nomem", "sync", "short read"};
_Static_assert(sizeof(fault_kind_texts) / sizeof(fault_kind_texts[0]) == FAULT_KIND_MAX, "a text for each kind");

/* What survives of unsynced writes. */
enum fault_keep { FAULT_KEEP_NOTHING, FAULT_KEEP_ALL, FAULT_KEEP_SOME, FAULT_KEEP_MAX };

struct fault_write {
	struct fault_write *next;
	sqlite3_int64 offset;
	size_t len;
	bool truncates; /* to offset; no bytes */
	uint8_t bytes[];
};

struct fault_disk {
	char path[PATH_MAX];
	uint8_t *synced;
	size_t size;
	struct fault_write *writes, **writes_end;
};

static struct {
	sqlite3_vfs vfs, *real;
	pthread_mutex_t mutex;
	bool armed;
	enum fault_kind kind;
	uint64_t at;    /* which call fails; 0: none */
	uint64_t times; /* so many from there on */
	uint32_t storm; /* one call in so many fails; 0: no storm */
	uint64_t calls; /* that the kind could have hit, since armed */
	uint64_t hits;  /* that failed */
	uint64_t random;
	bool models;       /* disks are kept track of */
	uint64_t writings; /* writing calls since the disks were reset */
	uint64_t cut_at;   /* which of them the power fails in; 0: none */
	enum fault_keep keep;
	char image_dir[PATH_MAX];
	bool off; /* the power is */
	struct fault_disk disks[FAULT_DISKS_MAX];
} fault = {.mutex = PTHREAD_MUTEX_INITIALIZER};

struct fault_file {
	sqlite3_file base;
	struct fault_disk *disk; /* NULL: none of those whose content matters */
	int last_errno;          /* of a read that was made to fail */
	sqlite3_file *real;      /* behind this struct */
};

/* xorshift64: the same sequence on each machine. */
static uint64_t
fault_random(void)
{
	fault.random ^= fault.random << 13;
	fault.random ^= fault.random >> 7;
	fault.random ^= fault.random << 17;
	return fault.random;
}

static int
fault_ioerr(enum fault_call call)
{
	static const int codes[] = {SQLITE_CANTOPEN, SQLITE_IOERR_DELETE, SQLITE_IOERR_ACCESS, SQLITE_IOERR_READ,
	    SQLITE_IOERR_WRITE, SQLITE_IOERR_TRUNCATE, SQLITE_IOERR_FSYNC, SQLITE_IOERR_FSTAT, SQLITE_IOERR_LOCK,
	    SQLITE_IOERR_CHECKRESERVEDLOCK, SQLITE_IOERR_SHMMAP, SQLITE_IOERR_SHMLOCK};
	_Static_assert(sizeof(codes) / sizeof(codes[0]) == FAULT_CALL_MAX, "a code for each call");

	return codes[call];
}

/* What a call fails with; SQLITE_OK: this kind does not happen to it. */
static int
fault_code(enum fault_kind kind, enum fault_call call)
{
	switch (kind) {
	case FAULT_IOERR:
		return fault_ioerr(call);
	case FAULT_FULL:
		return call == FAULT_CALL_WRITE ? SQLITE_FULL : SQLITE_OK;
	case FAULT_BUSY:
		return call == FAULT_CALL_LOCK || call == FAULT_CALL_SHM_LOCK ? SQLITE_BUSY : SQLITE_OK;
	case FAULT_NOMEM:
		return call == FAULT_CALL_OPEN || call == FAULT_CALL_SHM_MAP ? SQLITE_NOMEM : SQLITE_IOERR_NOMEM;
	case FAULT_SYNC:
		return call == FAULT_CALL_SYNC ? SQLITE_IOERR_FSYNC : SQLITE_OK;
	case FAULT_SHORT_READ:
		return call == FAULT_CALL_READ ? SQLITE_IOERR_SHORT_READ : SQLITE_OK;
	case FAULT_KIND_MAX:
		break;
	}
	return SQLITE_OK;
}

/* Mutex held. */
static int
fault_judge(enum fault_call call)
{
	int code = fault_code(fault.kind, call);
	bool hit;

	if (fault.off)
		return fault_ioerr(call);
	if (!fault.armed || code == SQLITE_OK)
		return SQLITE_OK;
	fault.calls++;
	if (fault.storm != 0)
		hit = fault_random() % fault.storm == 0;
	else
		hit = fault.at != 0 && fault.calls >= fault.at && fault.calls - fault.at < fault.times;
	fault.hits += hit;
	return hit ? code : SQLITE_OK;
}

static int
fault_hit(enum fault_call call)
{
	int rc;

	pthread_mutex_lock(&fault.mutex);
	rc = fault_judge(call);
	pthread_mutex_unlock(&fault.mutex);
	return rc;
}

/* -- disks ------------------------------------------------------------------------------------------------------- */

static void
fault_forget_writes(struct fault_disk *disk)
{
	while (disk->writes != NULL) {
		struct fault_write *next = disk->writes->next;

		free(disk->writes);
		disk->writes = next;
	}
	disk->writes_end = &disk->writes;
}

/* What is allocated for so many bytes of a disk: sectors come one by one, and each would be a copy of all before it. */
static size_t
fault_room(size_t size)
{
	size_t room = FAULT_ROOM_MIN;

	while (room <= size)
		room *= 2;
	return room;
}

static void
fault_put(uint8_t **bytes, size_t *size, size_t offset, const uint8_t *from, size_t len)
{
	if (offset + len > *size) {
		if (*bytes == NULL || fault_room(offset + len) > fault_room(*size))
			*bytes = realloc(*bytes, fault_room(offset + len));
		if (*bytes == NULL)
			abort();
		memset(*bytes + *size, 0, offset + len - *size);
		*size = offset + len;
	}
	memcpy(*bytes + offset, from, len);
}

/* Of one write, what a disk that keeps so much of it has. */
static void
fault_apply(const struct fault_write *from, enum fault_keep keep, uint8_t **bytes, size_t *size)
{
	size_t offset = (size_t)from->offset, done = 0;

	if (from->truncates) {
		if (offset < *size && (keep == FAULT_KEEP_ALL || fault_random() % 2 == 0))
			*size = offset;
		return;
	}
	while (done < from->len) {
		size_t part = FAULT_SECTOR - (offset + done) % FAULT_SECTOR;

		if (part > from->len - done)
			part = from->len - done;
		if (keep == FAULT_KEEP_ALL || fault_random() % 2 == 0)
			fault_put(bytes, size, offset + done, from->bytes + done, part);
		done += part;
	}
}

static void
fault_synced(struct fault_disk *disk)
{
	for (const struct fault_write *write = disk->writes; write != NULL; write = write->next)
		fault_apply(write, FAULT_KEEP_ALL, &disk->synced, &disk->size);
	fault_forget_writes(disk);
}

static void
fault_image_file(const struct fault_disk *disk)
{
	char path[2 * PATH_MAX], copy[PATH_MAX];
	size_t size = disk->size;
	uint8_t *bytes = malloc(fault_room(size));
	int fd;

	if (bytes == NULL)
		abort();
	if (size > 0)
		memcpy(bytes, disk->synced, size);
	for (const struct fault_write *write = disk->writes; write != NULL && fault.keep != FAULT_KEEP_NOTHING;
	     write = write->next)
		fault_apply(write, fault.keep, &bytes, &size);
	memcpy(copy, disk->path, sizeof(copy));
	snprintf(path, sizeof(path), "%s/%s", fault.image_dir, basename(copy));
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);
	if (fd < 0 || write(fd, bytes, size) != (ssize_t)size)
		abort();
	close(fd);
	free(bytes);
}

/* Mutex held. A writing call begins (a sync), or has reached the disk's own memory (all others). */
static void
fault_may_cut(void)
{
	if (!fault.models || fault.off || ++fault.writings != fault.cut_at)
		return;
	for (size_t i = 0; i < FAULT_DISKS_MAX; i++)
		if (fault.disks[i].path[0] != '\0')
			fault_image_file(&fault.disks[i]);
	fault.off = true;
}

static void
fault_note_write(struct fault_disk *disk, sqlite3_int64 offset, const void *bytes, size_t len, bool truncates)
{
	struct fault_write *write = malloc(sizeof(*write) + len);

	if (write == NULL)
		abort();
	*write = (struct fault_write){.offset = offset, .len = len, .truncates = truncates};
	if (len > 0)
		memcpy(write->bytes, bytes, len);
	*disk->writes_end = write;
	disk->writes_end = &write->next;
}

static void
fault_forget_disk(struct fault_disk *disk)
{
	fault_forget_writes(disk);
	free(disk->synced);
	memset(disk, 0, sizeof(*disk));
}

/* The disk of this path; a new one begins with what the file has now. */
static struct fault_disk *
fault_find_disk(const char *path)
{
	struct fault_disk *disk = NULL;
	struct stat st;
	int fd;

	for (size_t i = 0; i < FAULT_DISKS_MAX; i++) {
		if (strcmp(fault.disks[i].path, path) == 0)
			return &fault.disks[i];
		if (fault.disks[i].path[0] == '\0' && disk == NULL)
			disk = &fault.disks[i];
	}
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (disk == NULL || fd < 0 || fstat(fd, &st) < 0)
		abort();
	snprintf(disk->path, sizeof(disk->path), "%s", path);
	disk->writes_end = &disk->writes;
	disk->size = (size_t)st.st_size;
	disk->synced = malloc(fault_room(disk->size));
	if (disk->synced == NULL || read(fd, disk->synced, disk->size) != (ssize_t)disk->size)
		abort();
	/* No lock is on it yet that closing could drop: it was opened this moment, and by nobody else. */
	close(fd);
	return disk;
}

/* -- files ------------------------------------------------------------------------------------------------------- */

static struct fault_file *
fault_of(sqlite3_file *file)
{
	return (struct fault_file *)file;
}

static int
fault_close(sqlite3_file *file)
{
	return fault_of(file)->real->pMethods->xClose(fault_of(file)->real);
}

static int
fault_read(sqlite3_file *file, void *bytes, int len, sqlite3_int64 offset)
{
	sqlite3_file *real = fault_of(file)->real;
	int rc = fault_hit(FAULT_CALL_READ);

	if (rc == SQLITE_OK)
		return real->pMethods->xRead(real, bytes, len, offset);
	memset(bytes, 0, (size_t)len);
	fault_of(file)->last_errno = rc == SQLITE_IOERR_SHORT_READ ? 0 : EIO;
	if (rc == SQLITE_IOERR_SHORT_READ)
		real->pMethods->xRead(real, bytes, len / 2, offset);
	return rc;
}

static int
fault_write(sqlite3_file *file, const void *bytes, int len, sqlite3_int64 offset)
{
	struct fault_disk *disk = fault_of(file)->disk;
	sqlite3_file *real = fault_of(file)->real;
	int rc, failed;

	pthread_mutex_lock(&fault.mutex);
	failed = fault_judge(FAULT_CALL_WRITE);
	/* A write that fails has done something. */
	if (failed != SQLITE_OK)
		len /= 2;
	if (disk != NULL && !fault.off) {
		fault_note_write(disk, offset, bytes, (size_t)len, false);
		fault_may_cut();
	}
	if (failed == SQLITE_OK && fault.off)
		failed = SQLITE_IOERR_WRITE;
	pthread_mutex_unlock(&fault.mutex);
	rc = real->pMethods->xWrite(real, bytes, len, offset);
	return failed != SQLITE_OK ? failed : rc;
}

static int
fault_truncate(sqlite3_file *file, sqlite3_int64 size)
{
	struct fault_disk *disk = fault_of(file)->disk;
	sqlite3_file *real = fault_of(file)->real;
	int rc;

	pthread_mutex_lock(&fault.mutex);
	rc = fault_judge(FAULT_CALL_TRUNCATE);
	if (rc == SQLITE_OK && disk != NULL) {
		fault_note_write(disk, size, NULL, 0, true);
		fault_may_cut();
		rc = fault.off ? SQLITE_IOERR_TRUNCATE : SQLITE_OK;
	}
	pthread_mutex_unlock(&fault.mutex);
	return rc == SQLITE_OK ? real->pMethods->xTruncate(real, size) : rc;
}

/* Nothing is really synced: that would only take time. */
static int
fault_sync(sqlite3_file *file, int flags)
{
	struct fault_disk *disk = fault_of(file)->disk;
	int rc;

	(void)flags;
	pthread_mutex_lock(&fault.mutex);
	rc = fault_judge(FAULT_CALL_SYNC);
	if (disk != NULL && !fault.off) {
		fault_may_cut();
		if (fault.off)
			rc = SQLITE_IOERR_FSYNC;
		else if (rc == SQLITE_OK)
			fault_synced(disk);
		else
			fault_forget_writes(disk);
	}
	pthread_mutex_unlock(&fault.mutex);
	return rc;
}

static int
fault_size(sqlite3_file *file, sqlite3_int64 *ret_size)
{
	int rc = fault_hit(FAULT_CALL_SIZE);

	return rc == SQLITE_OK ? fault_of(file)->real->pMethods->xFileSize(fault_of(file)->real, ret_size) : rc;
}

static int
fault_lock(sqlite3_file *file, int level)
{
	int rc = fault_hit(FAULT_CALL_LOCK);

	return rc == SQLITE_OK ? fault_of(file)->real->pMethods->xLock(fault_of(file)->real, level) : rc;
}

static int
fault_unlock(sqlite3_file *file, int level)
{
	return fault_of(file)->real->pMethods->xUnlock(fault_of(file)->real, level);
}

static int
fault_check_lock(sqlite3_file *file, int *ret_locked)
{
	int rc = fault_hit(FAULT_CALL_CHECK_LOCK);

	return rc == SQLITE_OK ? fault_of(file)->real->pMethods->xCheckReservedLock(fault_of(file)->real, ret_locked)
			       : rc;
}

static int
fault_control(sqlite3_file *file, int operation, void *argument)
{
	if (operation == SQLITE_FCNTL_LAST_ERRNO && fault_of(file)->last_errno != 0) {
		*(int *)argument = fault_of(file)->last_errno;
		return SQLITE_OK;
	}
	return fault_of(file)->real->pMethods->xFileControl(fault_of(file)->real, operation, argument);
}

static int
fault_sector_size(sqlite3_file *file)
{
	return fault_of(file)->real->pMethods->xSectorSize(fault_of(file)->real);
}

static int
fault_device(sqlite3_file *file)
{
	return fault_of(file)->real->pMethods->xDeviceCharacteristics(fault_of(file)->real);
}

static int
fault_shm_map(sqlite3_file *file, int page, int size, int extend, void volatile **ret_map)
{
	int rc = fault_hit(FAULT_CALL_SHM_MAP);

	*ret_map = NULL;
	if (rc != SQLITE_OK)
		return rc;
	return fault_of(file)->real->pMethods->xShmMap(fault_of(file)->real, page, size, extend, ret_map);
}

static int
fault_shm_lock(sqlite3_file *file, int offset, int n, int flags)
{
	int rc = flags & SQLITE_SHM_UNLOCK ? SQLITE_OK : fault_hit(FAULT_CALL_SHM_LOCK);

	return rc == SQLITE_OK ? fault_of(file)->real->pMethods->xShmLock(fault_of(file)->real, offset, n, flags) : rc;
}

static void
fault_shm_barrier(sqlite3_file *file)
{
	fault_of(file)->real->pMethods->xShmBarrier(fault_of(file)->real);
}

static int
fault_shm_unmap(sqlite3_file *file, int delete)
{
	return fault_of(file)->real->pMethods->xShmUnmap(fault_of(file)->real, delete);
}

/* Version 2: with shared memory, without memory-mapped reading, which no call would show. */
static const sqlite3_io_methods fault_methods = {2, fault_close, fault_read, fault_write, fault_truncate, fault_sync,
    fault_size, fault_lock, fault_unlock, fault_check_lock, fault_control, fault_sector_size, fault_device,
    fault_shm_map, fault_shm_lock, fault_shm_barrier, fault_shm_unmap, NULL, NULL};

/* -- the VFS ----------------------------------------------------------------------------------------------------- */

static int
fault_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *ret_flags)
{
	static const int modelled = SQLITE_OPEN_MAIN_DB | SQLITE_OPEN_WAL | SQLITE_OPEN_MAIN_JOURNAL;
	struct fault_file *self = fault_of(file);
	int rc = fault_hit(FAULT_CALL_OPEN);

	(void)vfs;
	file->pMethods = NULL;
	if (rc != SQLITE_OK)
		return rc;
	self->disk = NULL;
	self->last_errno = 0;
	self->real = (sqlite3_file *)(self + 1);
	rc = fault.real->xOpen(fault.real, name, self->real, flags, ret_flags);
	if (self->real->pMethods == NULL)
		return rc;
	file->pMethods = &fault_methods;
	pthread_mutex_lock(&fault.mutex);
	if (fault.models && (flags & modelled) != 0)
		self->disk = fault_find_disk(name);
	pthread_mutex_unlock(&fault.mutex);
	return rc;
}

static int
fault_delete(sqlite3_vfs *vfs, const char *name, int sync_dir)
{
	int rc;

	(void)vfs;
	pthread_mutex_lock(&fault.mutex);
	rc = fault_judge(FAULT_CALL_DELETE);
	if (rc == SQLITE_OK && fault.models) {
		fault_may_cut();
		for (size_t i = 0; i < FAULT_DISKS_MAX && !fault.off; i++)
			if (strcmp(fault.disks[i].path, name) == 0)
				fault_forget_disk(&fault.disks[i]);
		rc = fault.off ? SQLITE_IOERR_DELETE : SQLITE_OK;
	}
	pthread_mutex_unlock(&fault.mutex);
	return rc == SQLITE_OK ? fault.real->xDelete(fault.real, name, sync_dir) : rc;
}

static int
fault_access(sqlite3_vfs *vfs, const char *name, int flags, int *ret_yes)
{
	int rc = fault_hit(FAULT_CALL_ACCESS);

	(void)vfs;
	return rc == SQLITE_OK ? fault.real->xAccess(fault.real, name, flags, ret_yes) : rc;
}

static int
fault_sleep(sqlite3_vfs *vfs, int microseconds)
{
	(void)vfs;
	return microseconds;
}

/* Make it the default; before anything else is opened. */
static void
fault_register(void)
{
	fault.real = sqlite3_vfs_find(NULL);
	fault.vfs = *fault.real;
	fault.vfs.zName = "fault";
	fault.vfs.pNext = NULL;
	fault.vfs.szOsFile = (int)sizeof(struct fault_file) + fault.real->szOsFile;
	fault.vfs.xOpen = fault_open;
	fault.vfs.xDelete = fault_delete;
	fault.vfs.xAccess = fault_access;
	fault.vfs.xSleep = fault_sleep;
	if (sqlite3_vfs_register(&fault.vfs, 1) != SQLITE_OK)
		abort();
}

/* From now on, of the calls that this kind can hit, so many fail from the at-th on. at 0: count only. */
static void
fault_arm(enum fault_kind kind, uint64_t at, uint64_t times)
{
	pthread_mutex_lock(&fault.mutex);
	fault.armed = true;
	fault.kind = kind;
	fault.at = at;
	fault.times = times;
	fault.storm = 0;
	fault.calls = fault.hits = 0;
	pthread_mutex_unlock(&fault.mutex);
}

/* One call in so many fails. */
static inline void
fault_arm_storm(enum fault_kind kind, uint32_t one_in, uint64_t seed)
{
	fault_arm(kind, 0, 0);
	pthread_mutex_lock(&fault.mutex);
	fault.storm = one_in;
	fault.random = seed * 0x9e3779b97f4a7c15 + 1;
	pthread_mutex_unlock(&fault.mutex);
}

static void
fault_disarm(void)
{
	pthread_mutex_lock(&fault.mutex);
	fault.armed = false;
	fault.storm = 0;
	pthread_mutex_unlock(&fault.mutex);
}

/* Begin keeping track of disks; the power fails in the at-th writing call (0: never), and the image goes to dir. */
static void
fault_power(uint64_t at, enum fault_keep keep, uint64_t seed, const char *dir)
{
	pthread_mutex_lock(&fault.mutex);
	fault.models = true;
	fault.writings = 0;
	fault.cut_at = at;
	fault.keep = keep;
	fault.random = seed * 0x9e3779b97f4a7c15 + 1;
	fault.off = false;
	snprintf(fault.image_dir, sizeof(fault.image_dir), "%s", dir);
	pthread_mutex_unlock(&fault.mutex);
}

/* Cut it now, between two calls. */
static inline void
fault_power_cut(void)
{
	pthread_mutex_lock(&fault.mutex);
	fault.cut_at = fault.writings + 1;
	fault_may_cut();
	pthread_mutex_unlock(&fault.mutex);
}

/* The power is back, and nobody keeps track any more. All files must be closed. */
static void
fault_power_on(void)
{
	pthread_mutex_lock(&fault.mutex);
	fault.models = fault.off = false;
	for (size_t i = 0; i < FAULT_DISKS_MAX; i++)
		if (fault.disks[i].path[0] != '\0')
			fault_forget_disk(&fault.disks[i]);
	pthread_mutex_unlock(&fault.mutex);
}

#endif
