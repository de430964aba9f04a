/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The key file. It is written under another name, synced and renamed, so that a crash leaves no half of a key. A file
 * that holds no key is an error, and never replaced. */
#include "audit/seal/seal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <openssl/pem.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Opens a new file beside path, for signer_put_in_place to rename. */
static FILE *
signer_file(const char *path, mode_t mode, char ret_draft[PATH_MAX])
{
	FILE *file;
	int fd;

	if (snprintf(ret_draft, PATH_MAX, "%s.new", path) >= PATH_MAX) {
		errno = ENAMETOOLONG;
		return NULL;
	}
	unlink(ret_draft);
	fd = open(ret_draft, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
	if (fd >= 0 && fchmod(fd, mode) < 0) {
		close(fd);
		fd = -1;
	}
	file = fd < 0 ? NULL : fdopen(fd, "w");
	if (file == NULL && fd >= 0)
		close(fd);
	return file;
}

/* Ends the file that signer_file opened: syncs it and renames it to path, or removes it. */
static int
signer_put_in_place(FILE *file, const char *draft, const char *path, bool written, struct error *err)
{
	bool whole = written && fflush(file) == 0 && fsync(fileno(file)) == 0;
	int code = errno;

	if (fclose(file) != 0)
		whole = false;
	if (whole && rename(draft, path) == 0)
		return 0;
	error_sys(err, whole ? errno : code, "%s cannot be written", path);
	unlink(draft);
	return -1;
}

/* Makes a key, and writes it to path. */
static int
signer_make(struct seal_signer *signer, const char *path, struct error *err)
{
	char draft[PATH_MAX];
	FILE *file;

	signer->pkey = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
	if (signer->pkey == NULL)
		return error_set(err, ERROR_SYSTEM, "a key for the seals cannot be made");
	file = signer_file(path, 0600, draft);
	if (file == NULL)
		return error_sys(err, errno, "%s cannot be made", path);
	return signer_put_in_place(
	    file, draft, path, PEM_write_PrivateKey(file, signer->pkey, NULL, NULL, 0, NULL, NULL) == 1, err);
}

/* Writes the public key beside the key, for users to copy; again whenever the file is missing. */
static int
signer_write_public(const struct seal_signer *signer, const char *path, struct error *err)
{
	char public[PATH_MAX], draft[PATH_MAX], text[SEAL_KEY_TEXT_MAX];
	FILE *file;

	if (snprintf(public, sizeof(public), "%s.pub", path) >= (int)sizeof(public))
		return error_sys(err, ENAMETOOLONG, "%s", path);
	if (access(public, F_OK) == 0)
		return 0;
	file = signer_file(public, 0644, draft);
	if (file == NULL)
		return error_sys(err, errno, "%s cannot be made", public);
	seal_key_text(&signer->key, text);
	return signer_put_in_place(file, draft, public, fprintf(file, "%s\n", text) > 0, err);
}

/* Reads a key from fd, which it closes. */
static int
signer_read(struct seal_signer *signer, int fd, const char *path, struct error *err)
{
	FILE *file = fdopen(fd, "r");

	if (file == NULL) {
		error_sys(err, errno, "%s", path);
		close(fd);
		return -1;
	}
	signer->pkey = PEM_read_PrivateKey(file, NULL, NULL, NULL);
	fclose(file);
	if (signer->pkey != NULL && EVP_PKEY_get_base_id(signer->pkey) == EVP_PKEY_ED25519)
		return 0;
	return error_set(err, ERROR_USAGE,
	    "%s is not an Ed25519 private key; put the key back, or move the file away to go on with a new one", path);
}

int
seal_signer_load(struct seal_signer *signer, const char *path, bool *ret_made, struct error *err)
{
	size_t size = SEAL_PUBLIC;
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	int rc;

	*signer = (struct seal_signer){.pkey = NULL};
	*ret_made = fd < 0 && errno == ENOENT;
	if (fd < 0 && !*ret_made)
		return error_sys(err, errno, "%s", path);
	rc = *ret_made ? signer_make(signer, path, err) : signer_read(signer, fd, path, err);
	if (rc == 0 && EVP_PKEY_get_raw_public_key(signer->pkey, signer->key.public, &size) != 1)
		rc = error_set(err, ERROR_SYSTEM, "%s: no public key in it", path);
	seal_key_identify(&signer->key);
	if (rc == 0)
		rc = signer_write_public(signer, path, err);
	if (rc < 0)
		seal_signer_free(signer);
	return rc;
}

void
seal_signer_free(struct seal_signer *signer)
{
	EVP_PKEY_free(signer->pkey);
	*signer = (struct seal_signer){.pkey = NULL};
}
