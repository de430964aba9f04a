/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The control role's own state: what its HTTP side, its jobs and its sandboxes share. Only control*.c include it.
 *
 * Theory of operation. One process, one loop, own uid, no capability. People talk to it in HTTP and JSON over a Unix
 * socket (control_http.c), a route table maps method and path to a handler (control_api.c). Whatever needs the kernel
 * is a message to the keeper; until its answer comes, the HTTP connection is suspended and a job (control_job.c) holds
 * the request. Changes to one sandbox run one after another, in the order they came; different sandboxes do not wait
 * for each other.
 *
 * A change goes to disk first (control_state.c), then to the keeper; when the keeper refuses, the old files are put
 * back. So a restart finds what is in force, or what was about to be and nobody was told of yet. The keeper trusts
 * nothing from here: it checks addresses, names, the snapshot and the never list again. */
#ifndef POSTERN_GATEWAY_CONTROL_H
#define POSTERN_GATEWAY_CONTROL_H

#include "base/error.h"
#include "base/loop.h"
#include "gateway/control/control_compiled.h"
#include "gateway/control/control_peer.h"
#include "gateway/control/control_text.h"
#include "gateway/shared/geo.h"
#include "gateway/shared/ipc.h"
#include "gateway/shared/msg.h"
#include "gateway/shared/options.h"
#include "gateway/shared/recorder.h"
#include "gateway/shared/route.h"
#include "gateway/shared/usage.h"
#include "policy/text/policy.h"
#include "policy/text/preset.h"
#include "policy/compiled/snapshot.h"
#include "tap/tap.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct MHD_Connection;
struct MHD_Daemon;

/* Sandboxes at most; the next attach is refused. */
#define CONTROL_SANDBOXES_MAX 4096
/* HTTP connections at most: further ones wait in the listen backlog. */
#define CONTROL_CONNECTIONS_MAX 256
/* A silent HTTP connection is closed after this. Suspended ones are bounded by CONTROL_ANSWER_MS. */
#define CONTROL_IDLE_S 60
/* The keeper must answer within this. */
#define CONTROL_ANSWER_MS 30000
/* Request bodies, and those that carry a policy's text (its quotes and line ends are escaped in JSON). */
#define CONTROL_BODY_MAX (1u << 20)
#define CONTROL_POLICY_BODY_MAX (POLICY_FILE_MAX + (4u << 20))
/* Live edits of one sandbox. */
#define CONTROL_EDITS_MAX 4096
/* Name of a policy file, as it appears in messages and origins. */
#define CONTROL_POLICY_FILE_MAX 100
/* Restores under way at once after a start. */
#define CONTROL_RESTORE_WINDOW 16
/* Requests wait for the restore after a start, but no longer than this: then they see sandboxes "restoring". */
#define CONTROL_RESTORE_HOLD_MS 5000
/* On shutdown, how long records may take to become durable. */
#define CONTROL_STOP_MS 2000
/* Bytes of a mark: a sentence or two. */
#define CONTROL_MARK_MAX 512
/* Marks of one sandbox in a second: more than any agent takes steps, few enough that a runaway loop does not fill the
 * log. */
#define CONTROL_MARKS_PER_S 100
/* A mark that is not on disk by then is answered with an error. */
#define CONTROL_MARK_MS 30000
/* Marks that wait for the disk at once, each on a connection: a stalled log must leave some for everybody else. */
#define CONTROL_MARKS_WAITING_MAX (CONTROL_CONNECTIONS_MAX / 2)

struct control_request;
struct control_job;

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
	struct control_request *requests;

	struct control_job *running, *waiting; /* control_job.c; waiting is in order of arrival */
	uint64_t events[EVENT_KIND_MAX];       /* control_record.c: recorded since this process started */
	size_t marks_waiting;                  /* control_mark.c: of those running, for the disk */
	uint64_t last_tag;

	void *sandboxes; /* tsearch tree of struct control_sandbox, by name */
	size_t sandbox_count;
	int state_fd;               /* <state_dir>/sandboxes */
	struct policy organisation; /* laid under every sandbox's; without has_organisation there is none */
	bool has_organisation;
	struct control_compiled compiled;
	struct preset_dirs presets;
	struct loop_timer usage_timer; /* control_usage.c */
	struct loop_timer ends_timer;  /* control_ends.c */
	int64_t last_id;
	char (*restore_names)[TAP_NAME_MAX]; /* control_restore.c: what is to be re-attached after the start */
	size_t restore_count, restore_at;
	size_t restores_active, restores_left;
	bool restore_pumping;
};

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
	uint8_t gateway_mac[6];
	uint32_t generation, last_generation; /* in force; highest ever used */
	char hash[65];                        /* of the snapshot in force */
	char policy_file[CONTROL_POLICY_FILE_MAX];
	const char *policy_text; /* verbatim; NULL: no policy file. Of control_text.h */
	int64_t
	    policy_applied_us; /* when the text came: "expires: 2h" counts from there, whatever restarts meanwhile */
	struct policy edits;   /* live edits */
	struct snapshot *snapshot; /* in force; owned; NULL while nothing could be compiled */
	int64_t ends_told_us; /* control_ends.c: ends of rules up to here are on record; 0: none was ever waited for */
	int64_t ends_seen_us; /* up to here on their way there */
	int64_t ends_next_us; /* the next one; 0: none */
	struct usage_table usage;   /* as the keeper told it */
	bool usage_dirty;           /* not on disk yet */
	json_t *labels;             /* object of strings, owned; NULL: none */
	char parent[TAP_NAME_MAX];  /* the sandbox that this is a clone of, or "" */
	int64_t parent_id;          /* its id */
	int64_t marks_since_ms;     /* control_mark.c: when the second began that marks are counted in */
	unsigned int marks;         /* taken in it */
	bool restoring;             /* waits for the keeper after a start */
	bool attached;              /* the keeper has it */
	char error[ERROR_TEXT_MAX]; /* what is broken, or "" */
};

/* -- control_http.c: requests ------------------------------------------------------------------------------------- */

struct control_request {
	struct control_request *next, *before;
	struct control *control;
	struct MHD_Connection *connection;
	const struct control_route *route; /* NULL: path or method unknown; answered already */
	char name[TAP_NAME_MAX];           /* the path's sandbox, or "" */
	struct control_peer peer;          /* not looked at yet */
	char *body;
	size_t body_len, body_size;
	bool dispatched, suspended, answered;
	unsigned int status;
	char *answer;             /* text, owned until handed to the library */
	const char *content_type; /* of the answer; NULL: JSON */
	const char *allow;        /* 405: methods that the path has */
};

/* Serve on control->listen_fd. Returns 0 or -1. */
int control_http_start(struct control *control, struct error *err);
/* Answer whatever is open with "shutting down", send what is ready, close. */
void control_http_stop(struct control *control);

/* Answer once; body's reference is stolen. Later answers to the same request are ignored. */
void control_answer(struct control_request *request, unsigned int status, json_t *body);
void control_answer_error(struct control_request *request, const struct error *err);
/* Likewise with a text that is not JSON: stolen (malloc); NULL: there was no memory for it. */
void control_answer_text(struct control_request *request, const char *content_type, char *text);

/* -- control_api.c: routes ---------------------------------------------------------------------------------------- */

struct control_route {
	const char *method, *path; /* "*" in a path stands for a sandbox's name */
	size_t body_max;           /* 0: takes no body */
	void (*handler)(struct control_request *request, json_t *body);
};

/* Find the route; on failure answers the request (404, 405) and returns NULL. Fills request->name. */
const struct control_route *control_route_find(struct control_request *request, const char *method, const char *path);
/* Parse the body and call the route's handler. */
void control_dispatch(struct control_request *request);
/* [{"name","address","left_s"}, ...] */
json_t *control_leases_json(const struct msg_leases_done *leases);

/* -- control_job.c: work that waits for the keeper ---------------------------------------------------------------- */

struct control_job {
	struct control_job *next;
	struct control *control;
	struct control_request *request; /* NULL: nobody waits (restore, resync) */
	char name[TAP_NAME_MAX];         /* the sandbox that it changes; "": changes none, runs at once */
	char target[TAP_NAME_MAX];       /* the path's sandbox, for jobs that change nothing */
	struct control_peer peer;        /* nobody without a request; looked at when it changes something */
	void (*start)(struct control_job *job);
	/* The keeper's answer, of the awaited type and size; NULL when none came in time. Must end the job or ask
	 * again. */
	void (*handler)(struct control_job *job, const void *answer);
	uint64_t tag; /* awaited; 0: none */
	uint16_t answer_type;
	struct loop_timer timer;
	json_t *body; /* request's; a reference is held */
	void *data;   /* the operation's own, released by data_free */
	void (*data_free)(void *data);
};

/* Start now, or after the jobs before it on the same sandbox. request and body may be NULL. Without memory the request
 * is answered and nothing else happens. */
void control_job_submit(struct control *control, struct control_request *request, const char *name, json_t *body,
    void (*start)(struct control_job *job));
/* Send to the keeper and wait for the answer. fd stays the caller's (-1: none). 0, or -1 and err. */
int control_job_ask(struct control_job *job, uint16_t type, const void *body, uint32_t size, int fd,
    void (*handler)(struct control_job *job, const void *answer), struct error *err);
/* Answer (body stolen), or answer with an error (logged when nobody waits); then the job is gone. */
void control_job_end(struct control_job *job, unsigned int status, json_t *body);
void control_job_fail(struct control_job *job, const struct error *err);
/* Turn an answer's result into 0, or -1 and err; result NULL is the timeout. */
int control_job_result(const struct msg_result *result, struct error *err);
/* An answer came in. False when it is not of the shape that was promised. Answers nobody waits for are ignored. */
bool control_job_deliver(struct control *control, const struct ipc_message *message);

/* -- control_sandbox.c: the table ---------------------------------------------------------------------------------- */

struct control_sandbox *control_sandbox_find(struct control *control, const char *name);
struct control_sandbox *control_sandbox_new(const char *name);
int control_sandbox_insert(struct control *control, struct control_sandbox *sandbox); /* 0 or -ENOMEM */
void control_sandbox_remove(struct control *control, struct control_sandbox *sandbox);
void control_sandbox_free(struct control_sandbox *sandbox);
/* In order of names. */
void control_sandbox_each(
    struct control *control, void (*handler)(struct control_sandbox *sandbox, void *context), void *context);
/* "attached", "restoring", "broken" */
const char *control_sandbox_state(const struct control_sandbox *sandbox);
/* What the API shows: a line of the list, or everything. New reference; NULL without memory. */
json_t *control_sandbox_summary(const struct control_sandbox *sandbox);
json_t *control_sandbox_full(const struct control_sandbox *sandbox);

/* The stored form: attachment.json <-> the sandbox's fields (not policy text and edits). */
char *control_attachment_format(const struct control_sandbox *sandbox);
int control_attachment_parse(struct control_sandbox *sandbox, const char *text, size_t len, struct error *err);

/* -- control_attach.c ---------------------------------------------------------------------------------------------- */

void control_attach_handler(struct control_request *request, json_t *body);
void control_detach_handler(struct control_request *request, json_t *body);
/* Ask the keeper to attach; fd is the snapshot, which stays the caller's. */
int control_attach_ask(struct control_job *job, const struct control_sandbox *sandbox, bool adopt, int fd,
    void (*handler)(struct control_job *job, const void *answer), struct error *err);
/* What the keeper made of it becomes the sandbox's. */
void control_attach_take(struct control_sandbox *sandbox, const struct msg_attached *attached);
int control_attachment_store(struct control *control, const struct control_sandbox *sandbox, struct error *err);
/* The kernel no longer has it and its folder is put aside: remove the folder, record, forget. why may be NULL. */
void control_detach_finish(
    struct control *control, struct control_sandbox *sandbox, const struct control_peer *peer, const char *why);

/* -- control_restore.c --------------------------------------------------------------------------------------------- */

/* Load everything from disk and begin to re-attach it; control_restored is called when all is settled. */
int control_restore(struct control *control, struct error *err);

/* -- control.c ----------------------------------------------------------------------------------------------------- */

void control_restored(struct control *control);

/* -- control_compile.c -------------------------------------------------------------------------------------------- */

/* Lay organisation, policy text (may be NULL; its relative expiries count from applied_us) with its presets, and edits
 * over each other, and compile that, unless the same was compiled lately. Returns the sealed descriptor and opens it.
 */
int control_policy_compile(struct control *control, const char *policy_text, const char *policy_file,
    int64_t applied_us, const struct policy *edits, int *ret_fd, struct snapshot **ret_snapshot, struct error *err);
/* Read the organisation's policy and find the presets' directories. Without the default file there is no organisation;
 * a named one must be there, and one that is there must be good. 0 or -1. */
int control_policy_setup(struct control *control, struct error *err);

/* -- control_policy.c ---------------------------------------------------------------------------------------------- */

struct control_change {
	bool preview;            /* nothing is to be changed: only say what would be */
	bool replaces_file;      /* policy_text and policy_file are the new ones; otherwise edits are */
	const char *policy_text; /* of control_text.h */
	char policy_file[CONTROL_POLICY_FILE_MAX];
	int64_t applied_us;  /* clock_real_us at the beginning */
	struct policy edits; /* all of them, as they will be */
	int fd;              /* sealed snapshot; -1 until compiled */
	struct snapshot *snapshot;
	uint32_t generation;
	size_t changed;   /* rules added or withdrawn; 0: nothing is done */
	json_t *change;   /* ["+allow x", "-deny y"] */
	json_t *warnings; /* [text] */
};

/* A change of an attached sandbox, beginning as a copy of what is in force; the job owns it. On failure NULL, and the
 * job has ended. */
struct control_change *control_change_begin(struct control_job *job, struct control_sandbox **ret_sandbox);
/* Compile, store, send, and answer the job; or fail it with all as it was. */
void control_change_apply(struct control_job *job, struct control_sandbox *sandbox, struct control_change *change);

/* -- control_places.c ---------------------------------------------------------------------------------------------- */

/* A policy about to be put in force: can its rules about countries and networks be enforced? 0, or -1 with
 * ERROR_POLICY: the rule, where it stands, and what to do. */
int control_places_check(const struct control *control, const struct snapshot *snapshot, struct error *err);
/* {"country": {"file","type","built"} or null, "asn": likewise} */
json_t *control_places_json(const struct control *control);
/* Append a line for each sandbox whose rules about places refuse all they could be about, for want of a database. */
void control_places_missing(struct control *control, json_t *missing);

/* -- control_diff.c ------------------------------------------------------------------------------------------------ */

/* Append what only one of two policies says: "-mode: learn (file:2)", "-allow x (file:3)", "+deny y until
 * 2026-12-01T10:00:00Z (file:9)"; rules sorted by their text. before may be NULL. At most CONTROL_DIFF_MAX; then a line
 * that says how many more. */
#define CONTROL_DIFF_MAX 1000
void control_diff(const struct snapshot *before, const struct snapshot *after, json_t *lines);

/* -- control_rules.c ----------------------------------------------------------------------------------------------- */

void control_rules_handler(struct control_request *request, json_t *body);
void control_revoke_handler(struct control_request *request, json_t *body);
void control_policy_handler(struct control_request *request, json_t *body);

/* -- control_edits.c ----------------------------------------------------------------------------------------------- */

int control_policy_copy(struct policy *ret_copy, const struct policy *policy, struct error *err);
/* Stored form of live edits: the policy's YAML, with one comment line a rule that says who made it. */
char *control_edits_format(const struct policy *edits);
int control_edits_parse(const char *text, size_t len, struct policy *ret_edits, struct error *err);
/* How long edits hold. */
struct control_grant {
	int64_t expires_us;                    /* 0: never ends */
	uint32_t uses;                         /* from now on; 0: any number */
	const struct control_sandbox *sandbox; /* whose; what it used before is not counted again */
};
/* Parse rule words into edits; words is a JSON array of strings or NULL, grant NULL: for good. Rules that are there
 * already with the same end are skipped, with another one they get this one; what changed is added to *ret_changed, and
 * to change (may be NULL) as "+allow word" or "+allow word until 2026-12-01T10:00:00Z, 3 uses". Expired edits are
 * dropped. */
int control_edits_add(struct policy *edits, enum rule_action action, const json_t *words,
    const struct control_grant *grant, uint32_t uid, size_t *ret_changed, json_t *change, struct error *err);

/* -- control_ends.c ------------------------------------------------------------------------------------------------ */

/* The sandbox's snapshot is in force from now on: record the ends of its rules as they come. */
void control_ends_begin(struct control *control, struct control_sandbox *sandbox);
/* The same after a start: also those that came since ends_told_us. */
void control_ends_restored(struct control *control, struct control_sandbox *sandbox);
/* What the state folder says of it. */
void control_ends_parse(struct control_sandbox *sandbox, const char *text, size_t len);
/* Another snapshot is to take its place: what has ended is recorded now. */
void control_ends_flush(struct control *control, struct control_sandbox *sandbox);

/* -- control_mark.c ------------------------------------------------------------------------------------------------ */

void control_mark_handler(struct control_request *request, json_t *body);

/* -- control_explain.c --------------------------------------------------------------------------------------------- */

void control_test_handler(struct control_request *request, json_t *body);

/* -- control_usage.c ------------------------------------------------------------------------------------------------
 */

/* The keeper's word on what a sandbox has used up. False when it is malformed. */
bool control_usage_take(struct control *control, struct ipc_message *message);
/* What is used up is no rule for "postern test" either. */
void control_usage_retire(struct control_sandbox *sandbox);
/* How often a rule of the policy in force was used. */
uint64_t control_usage_of(const struct control_sandbox *sandbox, uint32_t rule);
/* Likewise one that may be in force, as an edit. */
uint64_t control_usage_of_edit(const struct control_sandbox *sandbox, const struct rule *rule);
/* Another policy is in force: forget what it does not have. */
void control_usage_keep(struct control *control, struct control_sandbox *sandbox);
/* Write what is not on disk yet, now. */
void control_usage_flush(struct control *control);
/* The stored form. */
int control_usage_parse(struct control_sandbox *sandbox, const char *text, size_t len, struct error *err);
/* Refuse a policy with more counted rules than can be kept. 0 or -1. */
int control_usage_check(const struct snapshot *snapshot, struct error *err);

/* -- control_record.c ---------------------------------------------------------------------------------------------- */

/* detail: a JSON object, stolen; it gets what is known of the peer. */
void control_record_event(
    struct control *control, enum event_kind kind, int64_t sandbox, const struct control_peer *peer, json_t *detail);
/* Nobody's doing, and *wait (may be NULL) is for when it is durable. detail is stolen. 0 or -errno, as recorder_send.
 */
int control_record_waited(
    struct control *control, enum event_kind kind, int64_t sandbox, json_t *detail, struct recorder_wait *wait);
/* What an agent says of itself, for somebody who waits until it is durable. detail is stolen. Fills *ret_id and
 * *ret_ts_us; 0 or -errno, as recorder_send. */
int control_record_mark(struct control *control, int64_t sandbox, uint32_t uid, json_t *detail,
    struct recorder_wait *wait, uint64_t *ret_id, int64_t *ret_ts_us);
void control_record_sandbox(struct control *control, const struct control_sandbox *sandbox);
void control_record_sandbox_end(struct control *control, const struct control_sandbox *sandbox);

#endif
