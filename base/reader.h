/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The one cursor that untrusted bytes are read through: bounds-checked, with a sticky error.
 *
 * After the first read past the end every later read returns zero or NULL and the cursor stays failed, so that a
 * parser reads a whole structure and asks reader_ok() once. Integers are big-endian (network order). */
#ifndef POSTERN_BASE_READER_H
#define POSTERN_BASE_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct reader {
	const uint8_t *bytes; /* not owned */
	size_t len;
	size_t at;
	bool failed;
};

static inline struct reader
reader_make(const void *bytes, size_t len)
{
	return (struct reader){.bytes = bytes, .len = len};
}

static inline bool
reader_ok(const struct reader *r)
{
	return !r->failed;
}

static inline size_t
reader_left(const struct reader *r)
{
	return r->failed ? 0 : r->len - r->at;
}

static inline void
reader_fail(struct reader *r)
{
	r->failed = true;
}

/* n bytes in place, or NULL (and failed) when fewer are left. */
static inline const uint8_t *
reader_bytes(struct reader *r, size_t n)
{
	const uint8_t *p;

	if (r->failed || r->len - r->at < n) {
		r->failed = true;
		return NULL;
	}
	p = r->bytes + r->at;
	r->at += n;
	return p;
}

static inline uint8_t
reader_u8(struct reader *r)
{
	const uint8_t *p = reader_bytes(r, 1);

	return p == NULL ? 0 : p[0];
}

static inline uint16_t
reader_u16(struct reader *r)
{
	const uint8_t *p = reader_bytes(r, 2);

	return (uint16_t)(p == NULL ? 0 : p[0] << 8 | p[1]);
}

static inline uint32_t
reader_u24(struct reader *r)
{
	const uint8_t *p = reader_bytes(r, 3);

	return p == NULL ? 0 : (uint32_t)p[0] << 16 | (uint32_t)p[1] << 8 | p[2];
}

static inline uint32_t
reader_u32(struct reader *r)
{
	const uint8_t *p = reader_bytes(r, 4);

	return p == NULL ? 0 : (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* A reader over the next n bytes, which the outer one skips. Failed when fewer are left; then so is the outer one. */
static inline struct reader
reader_sub(struct reader *r, size_t n)
{
	const uint8_t *p = reader_bytes(r, n);
	struct reader sub = {.bytes = p, .len = p == NULL ? 0 : n, .failed = p == NULL};

	return sub;
}

/* Fails the reader unless every byte was read. Returns reader_ok(). */
static inline bool
reader_done(struct reader *r)
{
	if (!r->failed && r->at != r->len)
		r->failed = true;
	return !r->failed;
}

#endif
