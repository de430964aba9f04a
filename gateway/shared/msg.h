/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Every message between roles: both ends of each conversation on one page.
 *
 *   control --ATTACH/DETACH/POLICY/STATUS/LEASES--> keeper --SANDBOX_ADD/DEL/POLICY/UDP/LEASES--> gateway
 *   gateway --LEASE_ADD/LEASE_DEL/COUNTERS---------> keeper (kernel) ; answers carry the request's tag
 *   keeper, control, gateway --RECORD--> auditor --DURABLE--> them
 *   gateway --TOTALS--> keeper <--LOG_STATE-- auditor: what STATUS_DONE tells control
 *
 * Bodies are structs of explicit widths. Every channel checks each message against the table, sent or received: sender,
 * receiver, size, number of descriptors (gateway/shared/ipc.c). Handlers check what the body says. */
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

/* Who sends what to whom, with what body and what descriptors, and the answer: the table in gateway/shared/msg.c. */
enum msg_type {
	MSG_READY = 1, /* set up and confined */
	MSG_CHANNEL,   /* to the auditor, or (to it) from a sender, or (to control) the API's listener */
	MSG_RESULT,    /* answer to a request that has no own answer */

	MSG_ATTACH, /* with the snapshot */
	MSG_ATTACHED,
	MSG_DETACH,
	MSG_FORGET,         /* for a sandbox whose id is lost */
	MSG_POLICY,         /* with the snapshot */
	MSG_POLICY_PREVIEW, /* the same; answered with what MSG_POLICY would cut, changes nothing */
	MSG_POLICY_DONE,
	MSG_STATUS,
	MSG_STATUS_DONE,
	MSG_LEASES,
	MSG_LEASES_DONE,

	MSG_SANDBOX_ADD, /* with the sandbox's sockets, in the order of enum tap_socket, and last the snapshot */
	MSG_SANDBOX_DEL,
	MSG_UDP_PORT, /* with its sockets, IPv4 and IPv6; before the POLICY that needs it */
	MSG_UDP_PORT_DEL,

	MSG_LEASE_ADD,
	MSG_LEASE_DEL,
	MSG_COUNTERS,
	MSG_COUNTERS_DONE,

	MSG_USAGE, /* to control: what was counted; to the gateway, before ATTACH and SANDBOX_ADD: where to go on */

	MSG_TOTALS,
	MSG_LOG_STATE,

	MSG_RECORD,
	MSG_DURABLE,
	MSG_SENDER_BAD, /* it sent a record that no honest sender makes */
	MSG_SHUTDOWN,   /* finish, close records, exit */
	MSG_TYPE_MAX
};

/* The ends of a channel. SENDER: any role, at the end of its channel for records. */
enum msg_role {
	MSG_ROLE_KEEPER,
	MSG_ROLE_AUDITOR,
	MSG_ROLE_CONTROL,
	MSG_ROLE_GATEWAY,
	MSG_ROLE_SENDER,
	MSG_ROLE_MAX,
};

/* A message that goes from one of some roles to one of others. */
struct msg_row {
	uint16_t type;
	uint16_t answer;   /* type of the answer; 0: there is none */
	uint32_t from, to; /* bits, 1 << enum msg_role */
	const char *name;
	uint32_t fds;  /* descriptors, exactly */
	uint32_t size; /* of the body; with a list: of what is before its elements */
	struct {
		uint32_t count_at, element,
		    max; /* where the number of elements is; their size; 1..max; max 0: no list */
	} list;
	bool record; /* the record's kind says the size */
};

/* All of them. */
const struct msg_row *msg_rows(size_t *ret_count);
/* NULL: no such message goes that way. */
const struct msg_row *msg_row_find(uint16_t type, enum msg_role from, enum msg_role to);
/* Why the message is none that goes from one role to the other, as static text; NULL: it is one. body: size bytes,
 * aligned to 8. Size and descriptors are right then; what the body says is the handler's to check. */
const char *msg_wrong(
    uint16_t type, enum msg_role from, enum msg_role to, const void *body, uint32_t size, size_t fd_count);
/* The type of a request's answer; 0: it has none. */
uint16_t msg_answer_type(uint16_t request);
/* "ATTACH"; "?" for an unknown type. */
const char *msg_name(uint16_t type);

/* The databases that control has read, for the event of the start; all zero from other roles. */
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
	struct addr guest4, router4, guest6, router6;
};

struct msg_attached {
	struct msg_result result;
	char netns[MSG_PATH_MAX];
	char ifname[16];
	uint8_t guest_mac[6];
	uint8_t router_mac[6];
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
	struct addr guest4, router4, guest6, router6;
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

/* What a rule, or the whole sandbox, has used up so far. Totals, not differences: of two reports the larger one is
 * right, also after a restart. */
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

/* Checks of what a gateway answers: codes, counts, names and addresses within their bounds, texts that end. */
bool msg_result_valid(const struct msg_result *result);
bool msg_leases_done_valid(const struct msg_leases_done *leases);
bool msg_policy_done_valid(const struct msg_policy_done *done);

/* Does its name end? */
bool msg_usage_valid(const struct msg_usage *usage);

/* Is this what a gateway may say after it said before (all zero at first)? */
bool msg_totals_follow(const struct msg_totals *totals, const struct msg_totals *before);

#endif
