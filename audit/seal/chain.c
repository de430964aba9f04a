/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "audit/seal/chain.h"

#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

struct chain {
	EVP_MD *sha256;
	EVP_MD_CTX *ctx;
};

struct chain *
chain_new(void)
{
	struct chain *chain = calloc(1, sizeof(*chain));

	if (chain == NULL)
		return NULL;
	chain->sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
	chain->ctx = EVP_MD_CTX_new();
	if (chain->sha256 != NULL && chain->ctx != NULL)
		return chain;
	chain_free(chain);
	return NULL;
}

void
chain_free(struct chain *chain)
{
	if (chain == NULL)
		return;
	EVP_MD_CTX_free(chain->ctx);
	EVP_MD_free(chain->sha256);
	free(chain);
}

/* SHA-256 does not fail once its memory is allocated; if it did, a wrong head must not be used. */
static void
chain_must(int ok)
{
	if (ok != 1)
		abort();
}

/* Begins a digest. */
static void
chain_start(struct chain *chain)
{
	chain_must(EVP_DigestInit_ex2(chain->ctx, chain->sha256, NULL));
}

/* Adds bytes. */
static void
chain_put(struct chain *chain, const void *bytes, size_t len)
{
	chain_must(EVP_DigestUpdate(chain->ctx, bytes, len));
}

/* Adds a number, big-endian, 8 bytes. */
static void
chain_put_number(struct chain *chain, int64_t value)
{
	uint8_t bytes[8];

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)((uint64_t)value >> (56 - 8 * i));
	chain_put(chain, bytes, sizeof(bytes));
}

/* Ends the digest. */
static void
chain_end(struct chain *chain, uint8_t ret_digest[CHAIN_DIGEST])
{
	unsigned int len = CHAIN_DIGEST;

	chain_must(EVP_DigestFinal_ex(chain->ctx, ret_digest, &len));
}

void
chain_begin(struct chain *chain, const char *log_id, uint8_t ret_head[CHAIN_DIGEST])
{
	chain_start(chain);
	chain_put(chain, log_id, strlen(log_id));
	chain_end(chain, ret_head);
}

int
chain_digest(struct chain *chain, struct rows *row, uint8_t ret_digest[CHAIN_DIGEST])
{
	int columns = rows_count(row);

	chain_start(chain);
	chain_put_number(chain, columns);
	/* One byte of type, then a number, or a length and bytes; a float, which no column of ours has, as text. */
	for (int i = 0; i < columns; i++) {
		enum rows_type type = rows_type(row, i);
		uint8_t tag = (uint8_t)type;
		const char *bytes;
		size_t len;

		chain_put(chain, &tag, 1);
		if (type == ROWS_INTEGER)
			chain_put_number(chain, rows_integer(row, i));
		if (type == ROWS_INTEGER || type == ROWS_NULL)
			continue;
		bytes = rows_text(row, i, &len);
		chain_put_number(chain, (int64_t)len);
		chain_put(chain, bytes, len);
	}
	chain_end(chain, ret_digest);
	return row->code;
}

void
chain_advance(struct chain *chain, uint8_t head[CHAIN_DIGEST], const struct chain_link *link)
{
	chain_start(chain);
	chain_put(chain, head, CHAIN_DIGEST);
	chain_put_number(chain, link->seq);
	chain_put_number(chain, link->table);
	chain_put_number(chain, link->id);
	chain_put(chain, link->digest, CHAIN_DIGEST);
	chain_end(chain, head);
}
