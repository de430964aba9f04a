/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A compiled policy as a process has it: mapped once, however many sandboxes go by it; and what it says of itself.
 *
 * Theory of operation. The seals come first: once the four are on, nobody can change a byte between check and use. So
 * what was checked once stays good as long as it is mapped, and a descriptor of the same memfd gets the mapping that is
 * there, unchecked and uncopied: a thousand sandboxes with one policy cost one block, and one look at it. A memfd is
 * known by inode number, size and time of its last change. The number alone would not do, as the kernel's counter for
 * it comes round after 2^32 files; nobody can set the time.
 *
 * The blocks of a process are in one tree, without a lock: every role opens snapshots on one thread only. */
#include "policy/compiled/snapshot_format.h"

#include <errno.h>
#include <fcntl.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

struct snap_block {
	dev_t dev;
	ino_t ino;
	off_t size;
	struct timespec changed;
	size_t snapshots;        /* that refer to it */
	struct snapshot checked; /* as each of them begins */
};

static void *blocks; /* tsearch(3) */

#define ORDER(a, b) (((a) > (b)) - ((a) < (b)))

/* Orders blocks by what a memfd is known by. */
static int
block_compare(const void *left, const void *right)
{
	const struct snap_block *a = left, *b = right;
	int order = ORDER(a->ino, b->ino);

	if (order == 0)
		order = ORDER(a->dev, b->dev);
	if (order == 0)
		order = ORDER(a->size, b->size);
	if (order == 0)
		order = ORDER(a->changed.tv_sec, b->changed.tv_sec);
	return order != 0 ? order : ORDER(a->changed.tv_nsec, b->changed.tv_nsec);
}

/* Reads what the memfd is known by; one without all four seals is refused.
 * syscalls(gateway,control): fcntl(F_GET_SEALS) */
static int
block_identify(int fd, struct snap_block *ret_key, struct error *err)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat st;

	if (seals < 0 || (seals & SEALS) != SEALS)
		return error_set(err, ERROR_CORRUPT, "compiled policy: not a sealed memfd");
	if (fstat(fd, &st) < 0)
		return error_sys(err, errno, "cannot examine the compiled policy");
	if (st.st_size < (off_t)sizeof(struct snap_header) || st.st_size > (off_t)SNAP_SIZE_MAX)
		return error_set(err, ERROR_CORRUPT, "compiled policy: impossible size");
	ret_key->dev = st.st_dev;
	ret_key->ino = st.st_ino;
	ret_key->size = st.st_size;
	ret_key->changed = st.st_ctim;
	return 0;
}

/* Unmaps and frees a block that is in no tree. */
static void
block_free(struct snap_block *block)
{
	munmap((void *)(uintptr_t)block->checked.base, block->checked.size);
	free(block);
}

/* Map it, check it, put it into the tree.
 * syscalls(gateway,control): mmap(PROT_READ) */
static struct snap_block *
block_new(const struct snap_block *key, int fd, struct error *err)
{
	struct snap_block *block = malloc(sizeof(*block));
	void *base;

	if (block == NULL) {
		error_set(err, ERROR_LIMIT, "no memory for a compiled policy");
		return NULL;
	}
	*block = *key;
	base = mmap(NULL, (size_t)key->size, PROT_READ, MAP_SHARED, fd, 0);
	if (base == MAP_FAILED) {
		error_sys(err, errno, "cannot map the compiled policy");
		free(block);
		return NULL;
	}
	block->checked = (struct snapshot){.base = base, .size = (size_t)key->size};
	if (snapshot_check(&block->checked, err) < 0) {
		block_free(block);
		return NULL;
	}
	if (tsearch(block, &blocks, block_compare) == NULL) {
		error_set(err, ERROR_LIMIT, "no memory for a compiled policy");
		block_free(block);
		return NULL;
	}
	return block;
}

/* Frees the block with its last snapshot. */
static void
block_drop(struct snap_block *block)
{
	if (block->snapshots > 0)
		return;
	tdelete(block, &blocks, block_compare);
	block_free(block);
}

/* Makes a snapshot of its own for a mapped block. */
static struct snapshot *
snapshot_new(struct snap_block *block, struct error *err)
{
	struct snapshot *s = malloc(sizeof(*s));

	if (s != NULL) {
		*s = block->checked;
		s->block = block;
		s->retired = s->counts ? calloc(s->view.rule_count, sizeof(*s->retired)) : NULL;
	}
	if (s == NULL || (s->counts && s->retired == NULL)) {
		free(s);
		error_set(err, ERROR_LIMIT, "no memory for a compiled policy");
		return NULL;
	}
	block->snapshots++;
	return s;
}

struct snapshot *
snapshot_open(int fd, struct error *err)
{
	struct snap_block key = {.snapshots = 0}, *block, **found;
	struct snapshot *s;

	if (block_identify(fd, &key, err) < 0)
		return NULL;
	found = tfind(&key, &blocks, block_compare);
	block = found != NULL ? *found : block_new(&key, fd, err);
	if (block == NULL)
		return NULL;
	s = snapshot_new(block, err);
	if (s == NULL)
		block_drop(block);
	return s;
}

void
snapshot_free(struct snapshot *s)
{
	if (s == NULL)
		return;
	s->block->snapshots--;
	block_drop(s->block);
	free(s->retired);
	free(s);
}

/* ---- what a block says of itself ---- */

void
snapshot_hash(const struct snapshot *s, char ret_hex[65])
{
	memcpy(ret_hex, s->hash, sizeof(s->hash));
}

enum policy_ech
snapshot_ech(const struct snapshot *s)
{
	return (enum policy_ech)s->view.header->ech;
}

enum policy_mode
snapshot_mode(const struct snapshot *s)
{
	return (enum policy_mode)s->view.header->mode;
}

bool
snapshot_is_bounded(const struct snapshot *s)
{
	return s->view.header->bounded != 0;
}

const struct limits *
snapshot_limits(const struct snapshot *s)
{
	return &s->view.header->limits;
}

const char *
snapshot_setting_origin(const struct snapshot *s, enum policy_setting setting)
{
	uint32_t at = s->view.header->setting_origins[setting];

	return at == 0 ? "" : s->view.strings + at - 1;
}

int64_t
snapshot_next_expiry_us(const struct snapshot *s, int64_t now_us)
{
	int64_t next_us = 0;

	for (uint32_t i = 0; s->expires && i < s->view.rule_count; i++) {
		int64_t expires_us = s->view.rules[i].expires_us;

		if (expires_us > now_us && (next_us == 0 || expires_us < next_us))
			next_us = expires_us;
	}
	return next_us;
}

uint32_t
snapshot_country_rule(const struct snapshot *s)
{
	return s->country_rule;
}

uint32_t
snapshot_asn_rule(const struct snapshot *s)
{
	return s->asn_rule;
}

const struct addr_range *
snapshot_ranges(const struct snapshot *s, size_t *ret_count)
{
	*ret_count = s->range_count;
	return s->ranges;
}

const uint16_t *
snapshot_udp_ports(const struct snapshot *s, size_t *ret_count)
{
	*ret_count = s->udp_port_count;
	return s->udp_ports;
}
