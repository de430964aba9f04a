/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The role that runs as root: its state, and what its files do with it.
 *
 *   keeper.c          the daemon's life: start, roles that come and go, stop
 *   keeper_setup.c    what is made before the first role
 *   keeper_role.c     the roles' processes
 *   keeper_request.c  which role may send which message, and the operation that takes it
 *   keeper_answer.c   answers to control, and requests that wait for a gateway's answer
 *   keeper_sandbox.c  the table of sandboxes
 *   keeper_watch.c    are the sandboxes as they were made?
 *   keeper_event.c    the keeper's own records in the log
 *
 * One file for each operation, with the checks of the request first and what its gateway's answer leads to below:
 * keeper_attach.c, keeper_detach.c, keeper_policy.c, keeper_lease.c, keeper_usage.c, keeper_totals.c.
 *
 * All state is in a struct keeper; every role knows its own, and a sandbox through its gateway. */
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
/* Processes of roles: one a row of the table, and the gateways. */
#define KEEPER_ROLES_MAX (MSG_ROLE_MAX + MSG_GATEWAYS_MAX)
/* A role that dies is started again after this, doubled each time up to the maximum; reset once it lived a minute. */
#define KEEPER_RESPAWN_MS 50
#define KEEPER_RESPAWN_MS_MAX 5000

struct keeper_role {
	struct keeper *keeper;
	const struct role *row; /* of the process table */
	unsigned int index;     /* of a gateway */
	pid_t pid;              /* 0: not running */
	bool ready;
	uint32_t restarts;
	uint64_t epoch;
	int64_t started_ms, respawn_ms;
	struct ipc ipc;
	struct loop_timer respawn_timer;
	struct msg_totals totals; /* of a gateway: its last report */
};

struct keeper_sandbox {
	struct keeper_sandbox *next; /* in its bucket */
	int64_t id;
	uint32_t generation;
	struct tap *tap;
	int snapshot_fd;           /* sealed; kept for a restarted gateway */
	struct snapshot *snapshot; /* the same, mapped */
	struct snapshot *offered;  /* sent to the gateway and not yet taken: stays mapped, and so verified */
	struct keeper_role *gateway;
	uint64_t netns_dev, netns_ino;               /* NETNS: of the container's namespace */
	bool served;                                 /* the gateway has it */
	uint64_t refused_base[TAP_COUNTER_MAX];      /* the counters when its last gateway ended unexpectedly */
	struct usage_table usage;                    /* what was counted, for its next gateway */
	bool usage_unsent;                           /* control does not have all of it */
	TAILQ_ENTRY(keeper_sandbox) watched, listed; /* in the keeper's lists of these names */
	uint32_t looks;                              /* of the watch */
	bool sockets_due;                            /* it is in the list `listed` */
	size_t sockets;                              /* in its namespace when they were listed last */
	int64_t sockets_listed_ms;                   /* when that was; 0: never */
	size_t foreign_sockets;                      /* of them, not ours */
	bool tampered;                               /* its rules were changed; restored and reported once */
};
TAILQ_HEAD(keeper_sandbox_list, keeper_sandbox);

struct keeper {
	const struct options *options;
	char **argv;
	struct loop *loop;
	struct recorder recorder;                   /* the keeper's own events */
	struct keeper_role roles[KEEPER_ROLES_MAX]; /* the processes, in the order of the table */
	size_t role_count;
	struct keeper_role *auditor, *control, *gateways; /* of them; gateways: the first of gateway_count */
	unsigned int gateway_count;
	struct keeper_sandbox *buckets[KEEPER_BUCKETS]; /* by id */
	size_t sandbox_count;
	struct keeper_sandbox_list watched; /* all sandboxes; the watch looks at the first one next */
	struct keeper_sandbox_list listed;  /* those whose sockets are to be listed */
	struct keeper_pending *pending;
	uint64_t next_tag;
	struct usage_table usage_next; /* from control, for the sandbox that it attaches next */
	int64_t usage_next_id;
	int control_listen_fd;
	struct geo_about databases[GEO_KIND_MAX]; /* as control has read them */
	int geo_fds[GEO_KIND_MAX];  /* sealed copies of the databases of addresses, for gateways and control; 0: none */
	bool host_chain;            /* there is one */
	int64_t host_chain_ms;      /* when it was looked at */
	char host_table[64];        /* its table's name */
	bool announced;             /* all roles became ready once */
	bool stopping;              /* and no role is started again */
	bool stop_recorded;         /* the event of it is sent */
	int64_t started_us;         /* clock_real_us */
	uint64_t last_epoch;        /* given out */
	uint64_t tampered;          /* events of ours about that */
	struct msg_totals ended;    /* totals of gateways that are gone */
	struct msg_log_state log;   /* the auditor's last report */
	int64_t busy_ms;            /* when there was last a sandbox; 0: not looked yet */
	struct loop_source signals; /* signalfd */
	struct loop_timer watch_timer, stop_timer;
};

/* keeper.c */

/* The parent of all roles: starts them in the order of the table, which ends with a row without name. */
int keeper_run(const struct role *roles, const struct options *options, char **argv);
/* A keeper without sandboxes, whose roles do not run. The loop is set later. */
void keeper_init(struct keeper *keeper, const struct role *roles, const struct options *options, char **argv);
/* A channel's message from a role: READY first, then what keeper_request_take allows. */
bool keeper_message_handler(struct ipc *ipc, struct ipc_message *message);
/* A gateway is gone: answer what waits for it, close what it had let in. */
void keeper_gateway_gone(struct keeper_role *gateway);

/* keeper_setup.c */

/* Everything up to the first role; exits when that fails. */
void keeper_setup(struct keeper *keeper);
/* --probe: say whether the kernel has what postern needs. The exit status. */
int keeper_setup_probe(void);
/* Put the host's chain in force: at the start, and when it was removed. */
int keeper_setup_host_chain(const struct keeper *keeper, struct error *err);

/* keeper_role.c */

/* The next epoch: RECORD_EPOCH_SPAN later than any this state directory has seen, at least. 0, or -errno when it cannot
 * be stored, which is logged. */
int keeper_role_epoch(struct keeper *keeper, uint64_t *ret_epoch);
/* A role that does not run; its channel's message handlers are the caller's to set. */
void keeper_role_init(struct keeper_role *role, struct keeper *keeper, const struct role *row, unsigned int index);
/* Start the process; later, when it ran before and cannot be started now. Exits the daemon when it never ran. */
void keeper_role_spawn(struct keeper_role *role);
/* From now on, start roles in the network namespace that the caller is in now, wherever it goes. */
void keeper_role_fork_from_here(void);
void keeper_role_respawn_later(struct keeper_role *role);
/* The running role of this epoch, or NULL. */
struct keeper_role *keeper_role_by_epoch(struct keeper *keeper, uint64_t epoch);
/* It misbehaves: kill it. keeper_role_reap sees its end. */
void keeper_role_kill(struct keeper_role *role, const char *why);
/* A role whose process ended, with the status of waitpid(2); NULL: no more. */
struct keeper_role *keeper_role_reap(struct keeper *keeper, int *ret_status);
/* Make a channel between a sender and the auditor; NULL: the keeper itself. Nothing happens unless both are ready. */
void keeper_role_connect_auditor(struct keeper *keeper, struct keeper_role *sender);

/* keeper_request.c */

/* Handle a ready role's message. False: no honest role sends it; the channel then ends that role. */
bool keeper_request_take(struct keeper_role *role, struct ipc_message *message);
/* A message whose descriptors were lost, because this process has as many open as it may. */
bool keeper_request_fds_lost_handler(struct ipc *ipc, const struct ipc_message *message);

/* keeper_answer.c */

struct keeper_pending;

/* What becomes of a request that waits for a gateway. */
struct keeper_operation {
	uint16_t answer; /* MSG_*: the only type that the gateway may answer with */
	/* The gateway answered with this body; NULL: it ended, or answered with another type. */
	void (*done)(struct keeper *keeper, const struct keeper_pending *pending, const void *answer);
};

/* A request of control's that waits for a gateway's answer. */
struct keeper_pending {
	struct keeper_pending *next;
	const struct keeper_operation *operation;
	uint64_t tag;         /* ours, to the gateway */
	uint64_t control_tag; /* control's; 0: the keeper's own, after a gateway's restart */
	int64_t sandbox;
	struct keeper_role *gateway;
	int snapshot_fd; /* a new policy's; done takes it */
	uint32_t generation;
	bool keep; /* a detach: namespace and device stay */
};

/* Note that a request waits for the sandbox's gateway. */
struct keeper_pending *keeper_answer_await(struct keeper *keeper, const struct keeper_operation *operation,
    uint64_t control_tag, const struct keeper_sandbox *sandbox);
/* It was not sent after all: forget the one noted last. */
void keeper_answer_cancel(struct keeper *keeper);
/* A gateway's answer. False when no honest gateway sends it. */
bool keeper_answer_take(struct keeper_role *gateway, struct ipc_message *message);
/* The gateway is gone: end everything that waits for it. */
void keeper_answer_fail_all(struct keeper_role *gateway);
/* Every answer begins with a result. */
void keeper_answer_result(struct msg_result *ret_result, enum error_code code, const char *text);
/* Send control a request's answer of this type that says only why there is no other. */
void keeper_answer_refuse(struct keeper *keeper, uint16_t type, uint64_t tag, enum error_code code, const char *text);
/* The sandbox whose id begins the request's body, when its gateway can be asked; NULL: the request is refused. */
struct keeper_sandbox *keeper_answer_sandbox(struct keeper *keeper, const struct ipc_message *message);
/* A keeper_operation's done: control gets what the gateway answered, or that it ended. */
void keeper_answer_pass_on(struct keeper *keeper, const struct keeper_pending *pending, const void *answer);
/* Send MSG_RESULT. */
void keeper_answer(struct keeper_role *role, uint64_t tag, enum error_code code, const char *text);

/* keeper_sandbox.c */

struct keeper_sandbox *keeper_sandbox_find(struct keeper *keeper, int64_t id);
struct keeper_sandbox *keeper_sandbox_find_name(struct keeper *keeper, const char *name); /* looks at each */
/* A sandbox of this very gateway; NULL: another's, or none (detached while the request was under way). */
struct keeper_sandbox *keeper_sandbox_find_of(const struct keeper_role *gateway, int64_t id);
/* A number that spreads sandboxes evenly: over buckets, gateways, and the watch's looks at sockets. */
size_t keeper_sandbox_turn(int64_t id);
/* Enter a sandbox that is whole; the table owns it. */
void keeper_sandbox_add(struct keeper *keeper, struct keeper_sandbox *sandbox);
/* Remove a sandbox with all it has. keep: namespace and device stay for the next start. */
void keeper_sandbox_free(struct keeper *keeper, struct keeper_sandbox *sandbox, bool keep);

/* keeper_attach.c */

bool keeper_attach_request(struct keeper_role *control, struct ipc_message *message);
/* A gateway is ready: give it its sandboxes. */
void keeper_attach_gateway_ready(struct keeper_role *gateway);

/* keeper_detach.c */

bool keeper_detach_request(struct keeper_role *control, struct ipc_message *message);
bool keeper_detach_forget(struct keeper_role *control, struct ipc_message *message);

/* keeper_policy.c */

bool keeper_policy_request(struct keeper_role *control, struct ipc_message *message);
bool keeper_policy_preview(struct keeper_role *control, struct ipc_message *message);
/* Put a policy's ranges in force. */
int keeper_policy_apply(struct keeper_sandbox *sandbox, const struct snapshot *snapshot, struct error *err);
/* Hand the gateway sockets for the UDP ports that wanted has and have (may be NULL) has not. */
int keeper_policy_udp_open(
    struct keeper_sandbox *sandbox, const struct snapshot *wanted, const struct snapshot *have, struct error *err);
/* Put a new policy's ranges and UDP sockets in force and send it to the gateway, which answers with MSG_POLICY_DONE
 * under tag. The descriptor stays the caller's. On failure the old policy is in force. */
int keeper_policy_offer(
    struct keeper_sandbox *sandbox, int snapshot_fd, uint32_t generation, uint64_t tag, struct error *err);
/* The gateway took the policy, or refused it: then the old one is in force again. Takes snapshot_fd. */
void keeper_policy_settle(struct keeper_sandbox *sandbox, int snapshot_fd, uint32_t generation, bool taken);

/* keeper_lease.c */

bool keeper_lease_request(struct keeper_role *gateway, struct ipc_message *message);
bool keeper_lease_list(struct keeper_role *control, struct ipc_message *message);
/* The gateway is gone: flush the leases of its sandboxes, note what the kernel refused until now. */
void keeper_lease_gateway_gone(struct keeper_role *gateway);

/* keeper_usage.c */

bool keeper_usage_count(struct keeper_role *gateway, struct ipc_message *message);
bool keeper_usage_resume(struct keeper_role *control, struct ipc_message *message);
/* Give a new sandbox what control sent for it. */
void keeper_usage_claim(struct keeper *keeper, struct keeper_sandbox *sandbox);
/* Send control what was counted, when it has room. */
void keeper_usage_forward(struct keeper_sandbox *sandbox);

/* keeper_totals.c */

bool keeper_totals_take(struct keeper_role *gateway, struct ipc_message *message);
bool keeper_totals_log(struct keeper_role *auditor, struct ipc_message *message);
bool keeper_totals_refused(struct keeper_role *gateway, struct ipc_message *message);
bool keeper_totals_status(struct keeper_role *control, struct ipc_message *message);
/* Of all gateways that there are and were. */
struct msg_totals keeper_totals_sum(const struct keeper *keeper);
/* The gateway is gone; the next one counts from zero. */
void keeper_totals_gateway_gone(struct keeper_role *gateway);

/* keeper_event.c */

void keeper_event(struct keeper *keeper, enum event_kind kind, int64_t sandbox, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* Close, in the log, what a gateway that is gone had open. */
void keeper_event_gap(struct keeper *keeper, const struct keeper_role *gateway);

/* keeper_watch.c */

/* Look at the next part of the sandboxes, and at the host's chain. Returns ms until the next look. */
int64_t keeper_watch_look(struct keeper *keeper);

#endif
