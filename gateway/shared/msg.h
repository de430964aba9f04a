/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Every message between roles: both ends of each conversation on one page.
 *
 *   control --ATTACH/DETACH/POLICY/STATUS/LEASES--> keeper --SANDBOX_ADD/DEL/POLICY/UDP/LEASES--> gateway
 *   gateway --LEASE_ADD/LEASE_DEL/COUNTERS---------> keeper (kernel) ; answers carry the request's tag
 *   keeper, control, gateway --RECORD--> auditor --DURABLE--> them
 *   gateway --TOTALS--> keeper <--LOG_STATE-- auditor: what STATUS_DONE tells control
 *
 * Bodies are fixed structs of explicit widths unless a count says otherwise. The keeper believes nothing: sizes, names,
 * addresses and ports are checked again where they arrive. */
#ifndef POSTERN_GATEWAY_MSG_H
#define POSTERN_GATEWAY_MSG_H

#include "audit/record.h"
#include "base/error.h"
#include "gateway/shared/geo.h"
#include "policy/names/addr.h"
#include "policy/names/name.h"
#include "tap/tap.h"

#include <stdbool.h>
#include <stdint.h>

enum msg_type {
	MSG_READY = 1, /* child -> keeper: set up and confined; struct msg_ready */
	MSG_CHANNEL,   /* keeper -> any: struct msg_channel, 1 fd: a channel to the auditor, or (to it) from a sender */
	MSG_RESULT,    /* answer to a request that has no own answer: struct msg_result */

	MSG_ATTACH,   /* control -> keeper: struct msg_attach, 1 fd (snapshot) */
	MSG_ATTACHED, /* keeper -> control: struct msg_attached */
	MSG_DETACH,   /* control -> keeper: struct msg_sandbox; answer MSG_RESULT */
	MSG_FORGET,   /* control -> keeper: struct msg_forget, for a sandbox whose id is lost; answer MSG_RESULT */
	MSG_POLICY,   /* control -> keeper -> gateway: struct msg_policy, 1 fd; answer MSG_POLICY_DONE */
	MSG_POLICY_PREVIEW, /* the same way, likewise answered: what MSG_POLICY would cut; changes nothing */
	MSG_POLICY_DONE,    /* struct msg_policy_done */
	MSG_STATUS,         /* control -> keeper: no body; answer MSG_STATUS_DONE */
	MSG_STATUS_DONE,    /* struct msg_status */
	MSG_LEASES,         /* control -> keeper -> gateway: struct msg_leases; answer MSG_LEASES_DONE */
	MSG_LEASES_DONE,    /* struct msg_leases_done */

	MSG_SANDBOX_ADD, /* keeper -> gateway: struct msg_sandbox_add, TAP_SOCKET_MAX + 1 fds (snapshot last); answer
			    MSG_RESULT */
	MSG_SANDBOX_DEL, /* keeper -> gateway: struct msg_sandbox; answer MSG_RESULT */
	MSG_UDP_PORT, /* keeper -> gateway: struct msg_udp_port, 2 fds (IPv4, IPv6); before the POLICY that needs it */
	MSG_UDP_PORT_DEL, /* keeper -> gateway: struct msg_udp_port */

	MSG_LEASE_ADD,     /* gateway -> keeper: struct msg_lease with count elements; answer MSG_RESULT */
	MSG_LEASE_DEL,     /* likewise */
	MSG_COUNTERS,      /* gateway -> keeper: struct msg_sandbox; answer MSG_COUNTERS_DONE */
	MSG_COUNTERS_DONE, /* struct msg_counters */

	MSG_USAGE, /* struct msg_usage with count rows; no answer. gateway -> keeper -> control: what was counted;
		    * control -> keeper, before ATTACH, and keeper -> gateway, before SANDBOX_ADD: where to go on */

	MSG_TOTALS,    /* gateway -> keeper: struct msg_totals; no answer */
	MSG_LOG_STATE, /* auditor -> keeper: struct msg_log_state; no answer */

	MSG_RECORD,     /* any -> auditor: struct record cut to record_size(kind) */
	MSG_DURABLE,    /* auditor -> sender: struct msg_durable */
	MSG_SENDER_BAD, /* auditor -> keeper: struct msg_sender, who sent a record that no honest sender makes */
	MSG_SHUTDOWN,   /* keeper -> child: finish, close records, exit; no body */
	MSG_TYPE_MAX
};

enum msg_role { MSG_ROLE_KEEPER, MSG_ROLE_AUDITOR, MSG_ROLE_CONTROL, MSG_ROLE_GATEWAY };

/* What the role has read: control says it, for the event of the start; from others all zero. */
struct msg_ready {
	struct geo_about databases[GEO_KIND_MAX];
};

struct msg_channel {
	uint32_t role; /* enum msg_role of the sender at the other end (to the auditor); MSG_ROLE_AUDITOR (to others) */
	uint32_t pad;
	uint64_t epoch; /* the sender's epoch: upper part of its record ids */
};

struct msg_result {
	uint32_t code; /* enum error_code; ERROR_NONE = done */
	char text[ERROR_TEXT_MAX];
};

struct msg_sandbox {
	int64_t id;
};

struct msg_forget {
	char name[TAP_NAME_MAX];
	uint32_t keep; /* 1: only stop serving it; namespace and device stay, closed. 0: remove all */
};

#define MSG_PATH_MAX 512

struct msg_attach {
	int64_t id;
	uint32_t generation;
	uint32_t adopt; /* after a restart: take over what is there */
	uint32_t kind;  /* enum tap_kind */
	uint32_t owner_uid, owner_gid;
	int32_t pid; /* NETNS: of this process; 0: by netns_path */
	uint64_t netns_dev,
	    netns_ino; /* NETNS: the namespace must be this one (0: any); guards against reuse of pids and names */
	char netns_path[MSG_PATH_MAX];
	char name[TAP_NAME_MAX];
	char ifname[16];
	uint8_t guest_mac[6];
	uint8_t bits4, bits6;
	struct addr guest4, gateway4, guest6, gateway6;
};

struct msg_attached {
	struct msg_result result;
	char netns[MSG_PATH_MAX];
	char ifname[16];
	uint8_t guest_mac[6];
	uint8_t gateway_mac[6];
	uint64_t netns_dev, netns_ino; /* NETNS: of the container's namespace */
};

struct msg_policy {
	int64_t id;
	uint32_t generation;
	uint32_t pad;
};

/* Flows cut by an edit, named in the answer as far as they fit. */
#define MSG_CUT_MAX 32
struct msg_cut_flow {
	uint64_t record_id;
	struct addr dst;
	uint16_t dport;
	struct name name;
};

struct msg_policy_done {
	struct msg_result result;
	uint32_t cut_count; /* all of them; the first MSG_CUT_MAX are listed */
	uint32_t pad;
	struct msg_cut_flow cut[MSG_CUT_MAX];
};

/* What a gateway has on record of all its sandboxes since it started, those that are gone too. No count but the last
 * two is ever lower than in the message before it. */
struct msg_totals {
	uint64_t recorded[RECORD_ATTEMPT_MAX]
			 [VERDICT_MAX]; /* attempts by their verdict; a connection once that is final */
	uint64_t upload, download;      /* payload bytes */
	uint64_t open;    /* connections and flows on record whose verdict is not final, because they are open */
	uint64_t waiting; /* records that are not yet durable */
};
/* No count is larger: what a double holds exactly, and so more than an honest gateway ever comes to. */
#define MSG_TOTAL_MAX (UINT64_C(1) << 53)

/* How the log stands, on disk. */
struct msg_log_state {
	uint64_t changes;   /* number of its newest change (column seq); it counts from the log's first day */
	uint64_t unsealed;  /* of them no seal vouches for */
	uint64_t bytes;     /* of the database and its -wal */
	uint64_t wal_bytes; /* of the frames in the -wal that are not yet in the database */
	int64_t sealed_us;  /* time of the newest seal, in µs since the epoch; 0: there is none */
};

struct msg_role_status {
	int32_t pid;
	uint32_t restarts;
};

#define MSG_GATEWAYS_MAX 16
struct msg_status {
	struct msg_result result;
	struct msg_role_status keeper, auditor, control;
	uint32_t gateway_count;
	struct msg_role_status gateways[MSG_GATEWAYS_MAX];
	uint32_t sandboxes;
	uint32_t rootless;
	uint32_t host_chain;      /* 1: in force */
	uint32_t audit_ok;        /* 1: the auditor can write */
	uint32_t confined;        /* 1: seccomp in force in all children */
	int64_t started_us;       /* when the daemon started, in µs since the epoch */
	uint64_t tampered;        /* events EVENT_TAMPERED of the keeper since then */
	struct msg_totals totals; /* of all gateways since then */
	struct msg_log_state log; /* as the auditor last said */
};

struct msg_leases {
	int64_t id;
	struct name name; /* len 0: all; else those of the addresses that it was resolved to, its own and others' */
	struct addr addr; /* family 0: all; else its own */
};

#define MSG_LEASES_MAX 64
struct msg_lease_row {
	struct addr addr;
	struct name name;
	uint32_t left_s;
};
struct msg_leases_done {
	struct msg_result result;
	uint32_t count; /* rows filled */
	uint32_t flows; /* live connections of the sandbox */
	struct msg_lease_row rows[MSG_LEASES_MAX];
};

struct msg_sandbox_add {
	int64_t id;
	uint32_t generation;
	uint32_t pad;
	char name[TAP_NAME_MAX];
	struct addr guest4, gateway4, guest6, gateway6;
	uint64_t refused_base[TAP_COUNTER_MAX]; /* the counters when the gateway before it ended; 0: there was none */
};

struct msg_udp_port {
	int64_t id;
	uint16_t port;
	uint16_t pad[3];
};

struct msg_lease {
	int64_t id;
	uint32_t timeout_s;
	uint32_t count;                               /* 1..TAP_LEASE_BATCH_MAX */
	struct tap_lease leases[TAP_LEASE_BATCH_MAX]; /* count are sent */
};

struct msg_counters {
	struct msg_result result;
	uint64_t totals[TAP_COUNTER_MAX];
};

/* What a rule, or the whole sandbox, has used up so far. Totals, not differences: the larger one is right, whoever says
 * so again after a restart. */
struct msg_usage_row {
	uint64_t rule;             /* snapshot_rule_id; 0: the sandbox */
	uint64_t uses;             /* connections and flows let through */
	uint64_t upload, download; /* payload bytes */
};

#define MSG_USAGE_MAX 64
struct msg_usage {
	int64_t id;
	uint32_t count; /* 1..MSG_USAGE_MAX */
	uint32_t pad;
	char name[TAP_NAME_MAX];                  /* to control; else "" */
	struct msg_usage_row rows[MSG_USAGE_MAX]; /* count are sent */
};

struct msg_durable {
	uint64_t seq;      /* all records of this sender up to seq are committed and synced */
	uint32_t writable; /* 0: the log cannot be written; refuse new work until it can */
	uint32_t wal_mib;  /* of a write-ahead log that a reader keeps from shrinking; 0: there is none */
};

struct msg_sender {
	uint64_t epoch;
};

/* What a gateway answers, before anybody believes it: codes, counts, names and addresses within their bounds, texts
 * that end. */
bool msg_result_valid(const struct msg_result *result);
bool msg_leases_done_valid(const struct msg_leases_done *leases);
bool msg_policy_done_valid(const struct msg_policy_done *done);

/* Is the message as long as its count says, and its name one that ends? */
bool msg_usage_valid(const struct msg_usage *usage, uint32_t size);

/* Is this what a gateway may say after it said before (all zero at first)? */
bool msg_totals_follow(const struct msg_totals *totals, const struct msg_totals *before);

/* The exact size of a type's body, or 0 for variable ones (LEASE_*, USAGE, RECORD) and unknown types; *ret_fds its
 * descriptors. */
uint32_t msg_size(uint16_t type, size_t *ret_fds);

#endif
