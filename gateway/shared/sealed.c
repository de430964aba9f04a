/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "gateway/shared/sealed.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#define SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)
/* Bytes of one call. */
#define SEALED_STEP (8u << 20)

/* Until the end of the file, which may have been growing meanwhile. */
static int
sealed_fill(int to, int from, struct error *err)
{
	uint64_t done = 0;
	ssize_t n;

	while ((n = sendfile(to, from, NULL, SEALED_STEP)) > 0) {
		done += (uint64_t)n;
		if (done > SEALED_SIZE_MAX)
			return error_set(err, ERROR_LIMIT, "larger than %llu bytes", SEALED_SIZE_MAX);
	}
	if (n < 0)
		return error_sys(err, errno, "cannot be read into memory");
	if (fcntl(to, F_ADD_SEALS, SEALS) < 0)
		return error_sys(err, errno, "cannot be sealed in memory");
	return 0;
}

int
sealed_copy(const char *path, struct error *err)
{
	int from = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), to = -1, rc = -1;
	struct stat st;

	if (from < 0) {
		error_sys(err, errno, "cannot be opened");
		return -1;
	}
	if (fstat(from, &st) < 0)
		error_sys(err, errno, "cannot be looked at");
	else if (!S_ISREG(st.st_mode))
		error_set(err, ERROR_USAGE, "not a regular file");
	else if ((to = memfd_create("postern-places", MFD_CLOEXEC | MFD_ALLOW_SEALING)) < 0)
		error_sys(err, errno, "no memory for it");
	else
		rc = sealed_fill(to, from, err);
	close(from);
	if (rc == 0)
		return to;
	if (to >= 0)
		close(to);
	return -1;
}
