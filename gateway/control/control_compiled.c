/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "gateway/control/control_compiled.h"

#include "gateway/control/control.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A text and its length, so that no two rows of texts look the same. */
static bool
key_add(EVP_MD_CTX *digest, const char *text)
{
	size_t len = text == NULL ? SIZE_MAX : strlen(text);

	return EVP_DigestUpdate(digest, &len, sizeof(len)) == 1 &&
	    (text == NULL || EVP_DigestUpdate(digest, text, len) == 1);
}

bool
control_compiled_key(
    const char *text, const char *file, const struct policy *edits, uint8_t ret_key[CONTROL_COMPILED_KEY])
{
	EVP_MD_CTX *digest = EVP_MD_CTX_new();
	char *edited = control_edits_format(edits);
	unsigned int len = 0;
	bool made;

	made = digest != NULL && edited != NULL && EVP_DigestInit_ex(digest, EVP_sha256(), NULL) == 1 &&
	    key_add(digest, text) && key_add(digest, file) && key_add(digest, edited) &&
	    EVP_DigestFinal_ex(digest, ret_key, &len) == 1 && len == CONTROL_COMPILED_KEY;
	free(edited);
	EVP_MD_CTX_free(digest);
	return made;
}

void
control_compiled_block_key(const struct snapshot *snapshot, uint8_t ret_key[CONTROL_COMPILED_KEY])
{
	char hash[65];

	snapshot_hash(snapshot, hash);
	for (size_t i = 0; i < CONTROL_COMPILED_KEY; i++)
		sscanf(hash + 2 * i, "%2hhx", &ret_key[i]);
}

int
control_compiled_find(struct control_compiled *compiled, const uint8_t key[CONTROL_COMPILED_KEY])
{
	struct control_compiled_row row;
	size_t at = 0;

	while (at < compiled->count && memcmp(compiled->rows[at].key, key, CONTROL_COMPILED_KEY) != 0)
		at++;
	if (at == compiled->count)
		return -1;
	row = compiled->rows[at];
	memmove(&compiled->rows[1], &compiled->rows[0], at * sizeof(row));
	compiled->rows[0] = row;
	return fcntl(row.fd, F_DUPFD_CLOEXEC, 0);
}

void
control_compiled_keep(struct control_compiled *compiled, const uint8_t key[CONTROL_COMPILED_KEY], int fd)
{
	struct control_compiled_row row;
	struct stat st;

	if (fstat(fd, &st) < 0 || st.st_size > CONTROL_COMPILED_BYTES_MAX)
		return;
	row = (struct control_compiled_row){.fd = fcntl(fd, F_DUPFD_CLOEXEC, 0), .size = (size_t)st.st_size};
	if (row.fd < 0)
		return;
	memcpy(row.key, key, CONTROL_COMPILED_KEY);
	while (compiled->count == CONTROL_COMPILED_MAX || compiled->bytes + row.size > CONTROL_COMPILED_BYTES_MAX) {
		compiled->count--;
		compiled->bytes -= compiled->rows[compiled->count].size;
		close(compiled->rows[compiled->count].fd);
	}
	compiled->bytes += row.size;
	memmove(&compiled->rows[1], &compiled->rows[0], compiled->count * sizeof(row));
	compiled->rows[0] = row;
	compiled->count++;
}
