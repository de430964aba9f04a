/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Presets: shipped policies that others include by name, files NAME.yaml in a few directories. */
#ifndef POSTERN_POLICY_PRESET_H
#define POSTERN_POLICY_PRESET_H

#include "base/error.h"
#include "policy/text/policy.h"

#include <stddef.h>

#define PRESET_DIRS_MAX 4
/* Presets in all directories together that are listed. */
#define PRESETS_MAX 512

/* Where presets are looked for, the first directory first. Held open, so that a process may read them once it is
 * confined; the files are read anew each time. */
struct preset_dirs {
	int fds[PRESET_DIRS_MAX]; /* owned */
	size_t count;
};

/* chosen (an option or a variable; may be NULL) is then the only directory, and must exist. Otherwise those of these
 * that exist: share/postern/presets beside the program's own directory, configs/presets beside it (a build tree), and
 * /usr/share/postern/presets. None at all is no error: then no preset is found. 0, or -1 with an error. */
int preset_dirs_open(const char *chosen, struct preset_dirs *ret_dirs, struct error *err);
void preset_dirs_close(struct preset_dirs *dirs); /* accepts a zeroed one */

/* Read and parse preset NAME; its rules' origins are "preset:NAME.yaml:LINE". dirs may be NULL. ERROR_NOT_FOUND with
 * the presets there are when there is none; ERROR_POLICY when it is malformed or has another name. */
int preset_read(const struct preset_dirs *dirs, const char *name, struct policy *ret_policy, struct error *err);

/* The text of preset NAME, as it is (owned by the caller, NUL-terminated), for showing. */
int preset_text(const struct preset_dirs *dirs, const char *name, char **ret_text, size_t *ret_len, struct error *err);

/* The names, sorted, each once. *ret_names (*ret_count of them, POLICY_INCLUDE_NAME_MAX bytes each) is the caller's. */
int preset_list(
    const struct preset_dirs *dirs, char (**ret_names)[POLICY_INCLUDE_NAME_MAX], size_t *ret_count, struct error *err);

#endif
