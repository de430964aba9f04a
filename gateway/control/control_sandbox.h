/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The table of sandboxes, and the policy texts that they share. */
#ifndef POSTERN_GATEWAY_CONTROL_SANDBOX_H
#define POSTERN_GATEWAY_CONTROL_SANDBOX_H

#include "base/error.h"
#include "gateway/control/control_role.h"
#include "gateway/shared/msg.h"
#include "gateway/shared/usage.h"
#include "policy/compiled/snapshot.h"
#include "policy/text/policy.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* Sandboxes at most; the next attach is refused. */
#define CONTROL_SANDBOXES_MAX 4096
/* Name of a policy file, as it appears in messages and rules' places. */
#define CONTROL_POLICY_FILE_MAX 100
/* Of a policy that came without a file's name. */
#define CONTROL_POLICY_FILE_DEFAULT "policy.yaml"

/* One attached sandbox, or one whose stored state is broken. */
struct control_sandbox {
	char name[TAP_NAME_MAX];
	int64_t id;                      /* 0: its attachment could not be read */
	uint32_t uid;                    /* who attached it */
	struct tap_config config;        /* netns_fd unused */
	char netns_source[MSG_PATH_MAX]; /* NETNS: the container's namespace as given, or "" */
	int32_t pid;                     /* NETNS: as given, or 0 */
	uint64_t netns_dev, netns_ino;   /* NETNS: of the container's namespace, once attached */
	char netns[MSG_PATH_MAX];        /* our namespace */
	uint8_t router_mac[6];
	json_t *labels;            /* object of strings, owned; NULL: none */
	char parent[TAP_NAME_MAX]; /* the sandbox that this is a clone of, or "" */
	int64_t parent_id;         /* its id */

	uint32_t generation, last_generation; /* in force; highest ever used */
	char hash[65];                        /* of the snapshot in force */
	char policy_file[CONTROL_POLICY_FILE_MAX];
	const char *policy_text;   /* verbatim; NULL: no policy file. Of control_sandbox_share_text */
	int64_t policy_applied_us; /* when the text came: "expires: 2h" counts from there, across restarts */
	struct policy edits;       /* live edits */
	struct snapshot *snapshot; /* in force; owned; NULL while nothing could be compiled */

	int64_t ends_told_us;     /* control_ends.c: ends of rules up to here are on record; 0: there never was one */
	int64_t ends_seen_us;     /* up to here on their way there */
	int64_t ends_next_us;     /* the next one; 0: none */
	struct usage_table usage; /* control_usage.c: as the keeper counted it */
	bool usage_dirty;         /* not on disk yet */
	int64_t marks_since_ms;   /* control_mark.c: start of the second in which marks are counted */
	unsigned int marks;       /* taken in it */

	bool restoring;             /* waits for the keeper after a start */
	bool attached;              /* the keeper has it */
	char error[ERROR_TEXT_MAX]; /* what is broken, or "" */
};

struct control_sandbox *control_sandbox_find(struct control *control, const char *name);
/* The same; NULL with ERROR_NOT_FOUND. */
struct control_sandbox *control_sandbox_need(struct control *control, const char *name, struct error *err);
/* The same, for a change: NULL also while it is being restored, with ERROR_EXISTS. */
struct control_sandbox *control_sandbox_settled(struct control *control, const char *name, struct error *err);
struct control_sandbox *control_sandbox_new(const char *name);
int control_sandbox_insert(struct control *control, struct control_sandbox *sandbox); /* 0 or -ENOMEM */
void control_sandbox_remove(struct control *control, struct control_sandbox *sandbox);
void control_sandbox_free(struct control_sandbox *sandbox);
/* In order of names. */
void control_sandbox_each(
    struct control *control, void (*handler)(struct control_sandbox *sandbox, void *context), void *context);
/* "attached", "restoring", "broken" */
const char *control_sandbox_state(const struct control_sandbox *sandbox);
/* How often a rule of the policy in force was used. */
uint64_t control_sandbox_uses(const struct control_sandbox *sandbox, uint32_t rule);

/* One copy of a policy's text, shared by all sandboxes with the same text; to be released. NULL without memory, and for
 * NULL. On one thread only. */
const char *control_sandbox_share_text(const char *text);
void control_sandbox_release_text(const char *text); /* accepts NULL */

#endif
