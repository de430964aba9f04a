/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The keeper's own state, shared by its files: keeper_setup.c (before the first role), keeper.c (life of the daemon),
 * keeper_role.c (children), keeper_sandbox.c (sandboxes), keeper_watch.c (whether they are as they were made),
 * keeper_request.c (what children ask), keeper_totals.c (what they count). */
#ifndef POSTERN_GATEWAY_KEEPER_H
#define POSTERN_GATEWAY_KEEPER_H

#include "base/loop.h"
#include "gateway/shared/ipc.h"
#include "gateway/shared/msg.h"
#include "gateway/shared/role.h"
#include "gateway/shared/recorder.h"
#include "gateway/shared/usage.h"
#include "tap/tap.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

/* Sandboxes of one daemon. */
#define KEEPER_SANDBOXES_MAX 65536
#define KEEPER_BUCKETS 4096
/* A role that dies is started again after this, doubled each time up to the maximum; reset once it lived a minute. */
#define KEEPER_RESPAWN_MS 50
#define KEEPER_RESPAWN_MS_MAX 5000
/* How often rules and the host chain are looked at. */
#define KEEPER_WATCH_MS 500
/* Messages waiting for control beyond which usage waits for the next look. */
#define KEEPER_USAGE_QUEUE_MAX 256
/* An orderly stop may take this long; then what still runs is killed. */
#define KEEPER_STOP_MS 8000

struct keeper_role {
	enum msg_role kind;
	unsigned int index; /* of a gateway */
	pid_t pid;          /* 0: not running */
	bool ready;
	uint32_t restarts;
	uint64_t epoch;
	int64_t started_ms, respawn_ms;
	struct ipc ipc;
	struct loop_timer respawn_timer;
	struct msg_totals totals; /* of a gateway, as it last said */
};

struct keeper_sandbox {
	struct keeper_sandbox *next; /* in its bucket */
	int64_t id;
	uint32_t generation;
	struct tap *tap;
	int snapshot_fd;           /* sealed; kept for a restarted gateway */
	struct snapshot *snapshot; /* the same, mapped */
	struct snapshot *offered;  /* what the gateway was sent and has not taken yet: stays mapped, and so verified */
	struct keeper_role *gateway;
	uint64_t netns_dev, netns_ino;               /* NETNS: of the container's namespace */
	bool served;                                 /* the gateway has it */
	uint64_t refused_base[TAP_COUNTER_MAX];      /* the counters when its last gateway ended unexpectedly */
	struct usage_table usage;                    /* what was counted, for its next gateway */
	bool usage_unsent;                           /* control has not heard of all of it */
	TAILQ_ENTRY(keeper_sandbox) watched, listed; /* of the watch: all; those whose sockets are to be listed */
	uint32_t looks;                              /* that the watch took at it */
	bool sockets_due;                            /* it is in the second list */
	size_t sockets;                              /* in its namespace when they were listed last */
	int64_t sockets_listed_ms;                   /* when that was; 0: never */
	size_t foreign_sockets;                      /* of them, not ours */
	bool tampered;                               /* its rules were found changed; repaired and reported once */
};

/* A request of control's that waits for a gateway's answer. */
struct keeper_pending {
	struct keeper_pending *next;
	uint64_t tag;         /* ours, to the gateway */
	uint64_t control_tag; /* control's; 0: nobody waits (re-adding after a gateway crash) */
	uint16_t type;        /* MSG_ATTACH, MSG_DETACH, MSG_POLICY, MSG_LEASES */
	int64_t sandbox;
	struct keeper_role *gateway;
	int snapshot_fd; /* POLICY: becomes the sandbox's; else -1 */
	bool keep;       /* DETACH: namespace and device stay */
	uint32_t generation;
};

struct keeper {
	const struct role *roles; /* the process table */
	const struct options *options;
	char **argv;
	struct loop *loop;
	struct recorder recorder; /* the keeper's own events */
	struct keeper_role auditor, control, gateways[MSG_GATEWAYS_MAX];
	unsigned int gateway_count;
	struct keeper_sandbox *buckets[KEEPER_BUCKETS];
	size_t sandbox_count;
	struct keeper_pending *pending;
	uint64_t next_tag;
	struct usage_table usage_next; /* control's word on the sandbox that it is about to attach */
	int64_t usage_next_id;
	int control_listen_fd;
	struct geo_about databases[GEO_KIND_MAX]; /* as control has read them */
	int geo_fds[GEO_KIND_MAX]; /* sealed copies of the databases of addresses, for gateways and control; 0: none */
	bool host_chain;
	bool stopping;
	int64_t started_us;       /* clock_real_us */
	uint64_t tampered;        /* events of ours about that */
	struct msg_totals ended;  /* totals of gateways that are gone */
	struct msg_log_state log; /* as the auditor last said */
	int64_t busy_ms;          /* when there was last a sandbox; 0: not looked yet */
	char host_table[64];
};

extern struct keeper keeper;

/* keeper.c */
/* The next epoch: RECORD_EPOCH_SPAN later than any this state directory has seen, at least. 0, or -errno when it cannot
 * be stored, which is logged. */
int keeper_next_epoch(uint64_t *ret_epoch);
void keeper_event(enum event_kind kind, int64_t sandbox, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* A role became ready, or is gone: set-up and stop go on. */
void keeper_role_ready(struct keeper_role *role);
void keeper_role_gone(struct keeper_role *role, int wait_status);

/* Stop in order. */
void keeper_stop(void);

/* keeper_watch.c */
void keeper_watch_start(void);
void keeper_watch_stop(void);
/* A sandbox is there from now on, or is about to go. */
void keeper_watch_add(struct keeper_sandbox *sandbox);
void keeper_watch_remove(struct keeper_sandbox *sandbox);

/* keeper_setup.c */
/* Everything up to the first role; exits when it cannot be. */
void keeper_setup(const struct options *options);
/* Put the host's chain in force: at the start, and when somebody removed it. */
int keeper_host_chain(struct error *err);

/* The parent of all roles: starts them in the order of the table, which ends with a row without name. */
int keeper_run(const struct role *roles, const struct options *options, char **argv);

/* keeper_role.c */
void keeper_role_init(struct keeper_role *role, enum msg_role kind, unsigned int index);
/* Start the process; later, when it was running before and cannot be now. Exits the daemon when it never ran. */
void keeper_role_spawn(struct keeper_role *role);
/* From now on, start roles in the network namespace that the caller is in now, wherever it goes. */
void keeper_role_fork_from_here(void);
void keeper_role_respawn_later(struct keeper_role *role);
/* The running role of this epoch, or NULL. */
struct keeper_role *keeper_role_by_epoch(uint64_t epoch);
/* It is not what we started: kill it. Its end is seen by keeper_role_reap. */
void keeper_role_kill(struct keeper_role *role, const char *why);
/* Reap what ended; calls keeper_role_gone. */
void keeper_role_reap(void);
/* Make a channel between a sender and the auditor; NULL: the keeper itself. Both must be ready. */
void keeper_role_connect_auditor(struct keeper_role *sender);
const char *keeper_role_name(const struct keeper_role *role);

/* keeper_sandbox.c */
struct keeper_sandbox *keeper_sandbox_find(int64_t id);
struct keeper_sandbox *keeper_sandbox_find_name(const char *name); /* looks at each */
/* A number that spreads sandboxes evenly: over gateways, over the watch's looks at sockets. */
size_t keeper_sandbox_turn(int64_t id);
/* All but the gateway's part. Takes snapshot_fd. NULL with *err on failure, and nothing is left behind. */
struct keeper_sandbox *keeper_sandbox_attach(const struct msg_attach *attach, int snapshot_fd, struct error *err);
/* Give the sandbox's sockets and policy to its gateway; the answer comes with tag. */
int keeper_sandbox_serve(struct keeper_sandbox *sandbox, uint64_t tag);
/* New ranges and UDP sockets in force, and the gateway told; the answer comes with tag. */
int keeper_sandbox_policy(
    struct keeper_sandbox *sandbox, int snapshot_fd, uint32_t generation, uint64_t tag, struct error *err);
/* The gateway took (or refused) it. Takes snapshot_fd. */
void keeper_sandbox_policy_done(struct keeper_sandbox *sandbox, int snapshot_fd, uint32_t generation, bool taken);
void keeper_sandbox_free(struct keeper_sandbox *sandbox, bool keep);
void keeper_sandbox_each(void (*handler)(struct keeper_sandbox *sandbox, void *context), void *context);
void keeper_sandbox_describe(const struct keeper_sandbox *sandbox, struct msg_attached *ret_attached);

/* keeper_answer.c */
void keeper_result(struct msg_result *ret_result, enum error_code code, const char *text);
void keeper_answer(struct ipc *ipc, uint64_t tag, enum error_code code, const char *text);
/* The answer to an attach: code ERROR_NONE describes the sandbox, anything else undoes it. control_tag 0: nobody waits.
 */
void keeper_attach_answer(uint64_t control_tag, struct keeper_sandbox *sandbox, enum error_code code, const char *text);
void keeper_policy_answer(uint64_t control_tag, enum error_code code, const char *text);
void keeper_leases_answer(uint64_t control_tag, enum error_code code, const char *text);
struct keeper_pending *keeper_pending_add(uint16_t type, uint64_t control_tag, struct keeper_sandbox *sandbox);
/* Unlink and return the one of a tag; NULL: none (answered when its gateway died). */
struct keeper_pending *keeper_pending_take(uint64_t tag, const struct keeper_role *gateway);
/* Answer whatever waits for it. */
void keeper_pending_fail_all(const struct keeper_role *gateway);
/* A gateway's answer to what we passed on. False when no honest one says so. */
bool keeper_gateway_answer(struct keeper_role *gateway, struct ipc_message *message);

/* keeper_totals.c */
/* What a gateway has counted, or how the log stands. False when no honest child says so. */
bool keeper_totals_take(struct keeper_role *gateway, const struct msg_totals *totals);
bool keeper_totals_take_log(const struct msg_log_state *log);
/* The gateway is gone; the next one counts from zero. */
void keeper_totals_gateway_gone(struct keeper_role *gateway);
/* Of all gateways that there are and were. */
struct msg_totals keeper_totals_sum(void);

/* keeper_request.c */
bool keeper_message_handler(struct ipc *ipc, struct ipc_message *message);
bool keeper_fds_lost_handler(struct ipc *ipc, const struct ipc_message *message);
/* A gateway is gone: answer what waits for it, flush its leases. */
void keeper_request_gateway_gone(struct keeper_role *gateway);
/* Tell control what was counted, when it has room. */
void keeper_request_usage_forward(struct keeper_sandbox *sandbox);
/* It is back: give it its sandboxes. */
void keeper_request_gateway_ready(struct keeper_role *gateway);

#endif
