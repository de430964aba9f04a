/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The control role's files: one folder a sandbox, each file replaced whole or not at all.
 *
 *   sandboxes/NAME/attachment.json   how it was attached, its id and generation
 *   sandboxes/NAME/policy.yaml       the policy as given, verbatim (missing: none)
 *   sandboxes/NAME/edits.yaml        live edits (missing: none)
 *   sandboxes/NAME/usage.json        what its counted rules have used up (missing: nothing)
 *   sandboxes/NAME/ends.json         up to when the ends of its rules are on record (missing: it has none)
 *   sandboxes/.last-id               highest sandbox id ever given out
 *   sandboxes/.new-NAME, .old-NAME   an attach or a detach in progress
 *
 * Every write goes to a temporary file, is synced, renamed over the old one, and the folder is synced. No symbolic link
 * is followed below the state folder, and no file is read that another user owns or can write to (CASES F-32). */
#ifndef POSTERN_GATEWAY_CONTROL_STATE_H
#define POSTERN_GATEWAY_CONTROL_STATE_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum control_file {
	CONTROL_FILE_ATTACHMENT,
	CONTROL_FILE_POLICY,
	CONTROL_FILE_EDITS,
	CONTROL_FILE_USAGE,
	CONTROL_FILE_ENDS,
	CONTROL_FILE_MAX
};

struct control_text {
	char *text; /* NUL-terminated; NULL: no such file */
	size_t len;
};

struct control_files {
	struct control_text files[CONTROL_FILE_MAX];
};

void control_state_free(struct control_files *files);

/* Open <state_dir>/sandboxes, making it (0700) when it is missing. */
int control_state_open(const char *state_dir, int *ret_dir_fd, struct error *err);

/* A new sandbox's folder appears with all its files, or not at all. ERROR_EXISTS when the name is taken. */
int control_state_create(int dir_fd, const char *name, const struct control_files *files, struct error *err);

/* Replace one file; text NULL removes it. */
int control_state_write(
    int dir_fd, const char *name, enum control_file which, const char *text, size_t len, struct error *err);

/* Does the file hold this text already? False also when it cannot be read. */
bool control_state_holds(int dir_fd, const char *name, enum control_file which, const char *text, size_t len);

/* Read all files of a sandbox; on success the caller frees. */
int control_state_read(int dir_fd, const char *name, struct control_files *ret_files, struct error *err);

/* Retire the folder (rename it); bring it back; remove a retired one for good. */
int control_state_retire(int dir_fd, const char *name, struct error *err);
int control_state_unretire(int dir_fd, const char *name, struct error *err);
int control_state_purge(int dir_fd, const char *name, struct error *err);

/* Settle what was in progress when the last run ended (a new folder is removed, a retired one comes back), then call
 * the handler for each sandbox's folder. Returns 0; 1 when a folder could not be settled (err says which; the others
 * are listed); -1 when the state folder cannot be read. */
int control_state_list(int dir_fd, void (*handler)(const char *name, void *context), void *context, struct error *err);

/* 0 in *ret_id when none was written yet. */
int control_state_read_last_id(int dir_fd, int64_t *ret_id, struct error *err);
int control_state_write_last_id(int dir_fd, int64_t id, struct error *err);

#endif
