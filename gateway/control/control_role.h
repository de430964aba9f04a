/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The control role's own state, shared by the files of this room.
 *
 * Theory of operation. One process, one loop, own uid, no capability. People talk to it in HTTP and JSON over a Unix
 * socket (control_http.c); a table maps method and path to the function that starts the work (control.c). The work is a
 * job (control_job.c): what needs the kernel is a message to the keeper, and the HTTP connection is suspended until the
 * answer comes. Changes to one sandbox run one after another, in order of arrival; different sandboxes do not wait for
 * each other.
 *
 * A change goes to disk first (control_state.c), then to the keeper; when the keeper refuses, the old files are
 * restored. So a restart finds what is in force, or a change that was in progress and not yet answered. The keeper
 * trusts nothing from here: it checks addresses, names, the snapshot and the never list again. */
#ifndef POSTERN_GATEWAY_CONTROL_ROLE_H
#define POSTERN_GATEWAY_CONTROL_ROLE_H

#include "audit/record.h"
#include "base/loop.h"
#include "gateway/shared/geo.h"
#include "gateway/shared/ipc.h"
#include "gateway/shared/options.h"
#include "gateway/shared/recorder.h"
#include "gateway/shared/route.h"
#include "policy/text/policy.h"
#include "policy/text/preset.h"
#include "gateway/shared/msg.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

/* Compiled policies that are kept for the next one: a descriptor and memory for each, whether a sandbox uses them or
 * not. Enough for a host with hundreds of kinds of tasks, or a few with large policies. */
#define CONTROL_COMPILED_MAX 256
#define CONTROL_COMPILED_BYTES_MAX (128u << 20)
#define CONTROL_COMPILED_KEY 32

struct control_compiled {
	uint8_t key[CONTROL_COMPILED_KEY];
	int fd;      /* sealed, owned */
	size_t size; /* of the block */
};

struct control {
	const struct options *options;
	struct loop *loop;
	struct ipc keeper;
	struct recorder recorder;
	struct route route;
	struct geo geo;     /* where addresses are: for tests, and to know whether rules about places can be enforced */
	int listen_fd;      /* from the keeper; -1 until it came */
	bool auditor_known; /* the first channel to the auditor came */
	bool restored;      /* control_restore was called */
	struct loop_timer serve_timer;
	bool stopping;
	int64_t stop_deadline_ms;
	struct loop_timer stop_timer;

	struct MHD_Daemon *http; /* control_http.c */
	struct loop_source http_source;
	struct loop_timer http_timer;
	LIST_HEAD(, control_request) requests;
	const struct control_route *routes; /* ends with one without a path */
	void (*dispatch)(struct control_request *request);

	TAILQ_HEAD(control_jobs, control_job) running, waiting; /* control_job.c; waiting is in order of arrival */
	uint64_t last_tag;
	uint64_t events[EVENT_KIND_MAX]; /* control_record.c: recorded since this process started */
	size_t marks_waiting;            /* control_mark.c: for the disk */

	void *sandboxes; /* control_sandbox.c: tsearch tree of struct control_sandbox, by name */
	size_t sandbox_count;
	int state_fd;    /* control_state.c: <state_dir>/sandboxes */
	int64_t last_id; /* highest sandbox id ever given out */

	struct policy organisation; /* control_compile.c: laid under every sandbox's; unless has_organisation, none */
	bool has_organisation;
	struct preset_dirs presets;
	struct control_compiled compiled[CONTROL_COMPILED_MAX]; /* the most recently used comes first */
	size_t compiled_count, compiled_bytes;

	struct loop_timer usage_timer;       /* control_usage.c */
	struct loop_timer ends_timer;        /* control_ends.c */
	char (*restore_names)[TAP_NAME_MAX]; /* control_restore.c: sandboxes to re-attach after the start */
	size_t restore_count, restore_at;
	size_t restores_active, restores_left;
	bool restore_pumping;
	void (*restore_done)(struct control *control);
};

#endif
