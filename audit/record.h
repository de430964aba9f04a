/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The record of one attempt or event: a fixed shape, built in one place per kind, sent to the auditor as it is.
 *
 * Text from the guest is (bytes, length) and may hold anything; the store keeps it as it came and every renderer
 * escapes it. Addresses use struct addr. Times are microseconds since the epoch, UTC. */
#ifndef POSTERN_AUDIT_RECORD_H
#define POSTERN_AUDIT_RECORD_H

#include "policy/names/addr.h"
#include "policy/reason.h"

#include <stdbool.h>
#include <stdint.h>

#define RECORD_NAME_MAX 256
#define RECORD_RULE_MAX 256
#define RECORD_ALPN_MAX 64
#define RECORD_ANSWERS_MAX 1024
/* Room for a mark of 512 bytes, each of them escaped. */
#define RECORD_DETAIL_MAX 1088
/* Two paths, addresses, and 2 KiB of labels. */
#define RECORD_SANDBOX_DETAIL_MAX 3584
#define RECORD_JA4_MAX 40    /* 36 characters and the NUL */
#define RECORD_METHOD_MAX 24 /* longest registered HTTP method is 17 characters */
#define RECORD_AS_ORG_MAX 64
#define RECORD_SANDBOX_NAME_MAX 64

enum record_kind {
	RECORD_FLOW_OPEN = 1, /* insert a connection (allowed: open until its close; denied: complete) */
	RECORD_FLOW_CLOSE,    /* bytes, duration and end of an open connection */
	RECORD_REFUSED, /* packets refused in the kernel, aggregated: insert, or replace count and last time, by id */
	RECORD_DNS,     /* one query and its answer */
	RECORD_EVENT,   /* attached, policy changed, gateway crashed, tampered, ... */
	RECORD_SANDBOX, /* a sandbox came to be: row of the sandboxes table (insert or update by id) */
	RECORD_SANDBOX_END, /* it was detached */
	RECORD_GAP,         /* close, as "gateway_crash", all connections of a sender that is gone */
	RECORD_PROGRESS,    /* bytes so far and times of a connection that stays open; shape of a close, end END_OPEN */
	RECORD_ACCOUNT,     /* a sender's own count of a sandbox's attempts, against which rows are verified */
	RECORD_KIND_MAX
};

/* How a connection ended. Stored as numbers: append only. */
enum end_reason {
	END_OPEN = 0, /* still open */
	END_FIN,      /* both sides closed in order */
	END_RST_GUEST,
	END_RST_ORIGIN,
	END_TIMEOUT,        /* idle or keepalive */
	END_REFUSED,        /* never opened: the verdict was not "allowed" */
	END_CONNECT_FAILED, /* the origin refused or was unreachable */
	END_POLICY,         /* cut by policy: an edit, or the end of the rule that allowed it; the reason says which */
	END_NEXT_HOST,      /* HTTP: the same connection went on under another name, in another record */
	END_DETACHED,       /* the sandbox was detached */
	END_SHUTDOWN,       /* posternd stopped in order */
	END_GATEWAY_CRASH,
	END_DAEMON_CRASH,
	END_ERROR, /* a system call failed; detail in the log of the process */
	END_MAX
};

#define RECORD_FLAG_ECH 0x01u    /* ClientHello carried extension 0xfe0d (GREASE or real) */
#define RECORD_FLAG_TUNNEL 0x02u /* HTTP Upgrade: opaque after it */
#define RECORD_FLAG_LEARN 0x04u  /* let through by mode: learn alone */

/* In place of a rule: no rule allowed it, mode: learn let it through. No rule's text is like it. */
#define RECORD_RULE_LEARN "mode: learn"

/* Kinds of attempts that are counted. */
enum record_attempt {
	RECORD_ATTEMPT_CONNECTION, /* TCP accepted, each further name on an HTTP connection, UDP flow: rows with count 1
				    */
	RECORD_ATTEMPT_DNS,        /* queries */
	RECORD_ATTEMPT_REFUSED,    /* packets refused in the kernel; attempts are the kernel's own counters */
	RECORD_ATTEMPT_MAX
};

/* A proof of name and a verdict for one connection, datagram flow or refused packet class. */
struct record_flow {
	uint64_t id;     /* unique for ever: RECORD_ID of the sender's epoch and a counter; a row's primary key */
	int64_t sandbox; /* sandboxes.id */
	int64_t ts_us;   /* first seen */
	int64_t last_us; /* REFUSED: last seen; else 0 */
	uint64_t count;  /* REFUSED: packets so far; else 1 */
	struct addr src, dst;
	uint16_t sport, dport; /* 0 where the protocol has none */
	uint8_t proto;         /* IPPROTO_* */
	uint8_t verdict;       /* enum verdict */
	uint8_t reason;        /* enum reason */
	uint8_t name_source;   /* enum name_source */
	uint8_t flags;         /* RECORD_FLAG_* */
	uint8_t end;           /* enum end_reason: END_OPEN for allowed ones, else END_REFUSED, END_CONNECT_FAILED */
	uint16_t name_len;     /* 0..255 */
	uint8_t name[RECORD_NAME_MAX]; /* canonical when name_source proves it, raw bytes for CLAIM */
	char rule[RECORD_RULE_MAX];    /* deciding rule and origin, or "" */
	char detail[128];              /* why, where the reason alone does not tell (never-list row, parser message) */
	char alpn[RECORD_ALPN_MAX];    /* "h2,http/1.1" as offered, escaped; or "" */
	uint32_t generation;           /* policy generation that decided */
	uint16_t tls_version;     /* highest version offered in the ClientHello, as on the wire: 0x0304; 0: no TLS */
	char ja4[RECORD_JA4_MAX]; /* fingerprint of the ClientHello, or "" */
	char http_method[RECORD_METHOD_MAX]; /* of the request, a token; or "" */
	char country[3];                     /* of dst, ISO 3166-1 alpha-2, by the configured database; or "" */
	char as_org[RECORD_AS_ORG_MAX];      /* of dst: holder of asn; or "" */
	uint32_t asn;                        /* of dst: autonomous system number; 0: not known */
	int64_t dns_us;                      /* time the question that made the lease spent upstream; 0: no lease */
	int64_t hello_us;                    /* accept to a whole ClientHello or request head; 0: none was read */
};

/* CLOSE: how a connection ended. PROGRESS: how it stands; end is END_OPEN. */
struct record_close {
	uint64_t id;
	int64_t ts_us;
	uint64_t bytes_out, bytes_in; /* guest to origin, origin to guest: payload bytes passed on */
	uint64_t packets_out,
	    packets_in; /* TCP: segments on the guest's side, from it and to it; UDP: datagrams passed on */
	int64_t duration_us;
	int64_t connect_us;    /* until the origin had accepted; 0: it did not, or there was no handshake */
	int64_t first_byte_us; /* accept to the origin's first payload byte; 0: none came */
	struct addr up_src;    /* our own end of the connection to the origin; family 0: there was none */
	uint16_t up_sport;
	uint8_t end;     /* enum end_reason */
	uint8_t reason;  /* REASON_ALLOWED, or why it was cut (REVOKED) or failed (UPSTREAM_ERROR) */
	uint8_t verdict; /* ALLOWED, or FAILED when nothing came about */
};

struct record_dns {
	uint64_t id;
	int64_t sandbox;
	int64_t ts_us;
	uint64_t count;
	struct addr src, server; /* the guest, and the resolver address it asked (any is answered by us) */
	uint16_t sport;
	uint16_t qtype;
	uint8_t transport; /* IPPROTO_UDP or IPPROTO_TCP */
	uint8_t verdict, reason;
	uint8_t rcode; /* as answered */
	uint16_t ede;  /* RFC 8914 INFO-CODE, or 0xffff for none */
	uint16_t qname_len;
	uint8_t qname[RECORD_NAME_MAX];   /* presentation form of a good name, raw wire bytes otherwise */
	uint32_t ttl_s;                   /* as answered */
	int64_t upstream_us;              /* time spent upstream; 0 when none was asked */
	uint16_t leases;                  /* addresses of the answer that this sandbox may connect to now */
	char answers[RECORD_ANSWERS_MAX]; /* JSON array of strings: "A 1.2.3.4", "CNAME x.y"; cut at a whole item */
	char rule[RECORD_RULE_MAX];
	char detail[128];
	uint32_t generation;
};

enum event_kind {
	EVENT_DAEMON_START = 1, /* detail: {"version","rootless"}, and {"after":"crash"} when no end stands before it */
	EVENT_DAEMON_STOP,
	EVENT_ATTACH,
	EVENT_DETACH,
	EVENT_POLICY,         /* detail: {"from","to","hash","change","cut"} */
	EVENT_ROLE_CRASH,     /* detail: {"role","status"} */
	EVENT_TAMPERED,       /* someone changed the sandbox's nftables table; reinstalled */
	EVENT_AUDIT_RESUMED,  /* records could not be written for a while; detail: {"lost","since"} */
	EVENT_RESTORED,       /* re-attached after a restart */
	EVENT_AUDIT_REPLACED, /* the database was corrupt, foreign or gone; a new one took its place;
			       * detail: {"why","moved_to"} */
	EVENT_GRANT_EXPIRED,  /* a rule is past its deadline; detail: {"rule","origin","ended"}, and {"noticed"} late */
	EVENT_GRANT_USED_UP,  /* a rule's last use was made; detail: {"rule","origin"} */
	EVENT_LIMIT_SOFT,  /* a soft limit was reached; detail: {"limit","soft","hard"}, and of a rule {"rule","origin"}
			    */
	EVENT_MARK,        /* a step of the agent, in its own words; detail: {"text"} */
	EVENT_AUDIT_ALARM, /* the log itself needs attention; detail: {"what","wal_bytes"} */
	EVENT_PRUNED,      /* old records were dropped; detail: {"through","rows","before"} */
	EVENT_RECORDS_LOST, /* a sender's records from..to never came; detail: {"epoch","from","to","count"} */
	EVENT_KIND_MAX
};

struct record_event {
	uint64_t id;
	int64_t sandbox; /* 0: the daemon itself */
	int64_t ts_us;
	uint8_t kind;                   /* enum event_kind */
	uint32_t uid;                   /* who asked; UINT32_MAX: nobody */
	char detail[RECORD_DETAIL_MAX]; /* JSON object, or "" */
};

struct record_sandbox {
	int64_t id;    /* attach time in µs since the epoch, unique */
	int64_t ts_us; /* SANDBOX: attached; SANDBOX_END: detached */
	char name[RECORD_SANDBOX_NAME_MAX];
	char kind[8];                           /* "tap", "netns" */
	uint32_t uid;                           /* who attached it */
	char detail[RECORD_SANDBOX_DETAIL_MAX]; /* JSON: guest addresses, mac, device, labels, parent */
};

struct record_gap {
	uint64_t sender_epoch; /* of whose ids: record_id_is_of */
	int64_t ts_us;
	uint8_t end; /* END_GATEWAY_CRASH, END_DAEMON_CRASH */
};

/* What a sender counted itself, where attempts come in, apart from the records it made of them. Inserted, or replaced
 * by id. The rows that came from this sender before it must add up to it: postern verify. */
struct record_account {
	uint64_t id; /* one for each sandbox and sender, for as long as both live */
	int64_t sandbox;
	int64_t ts_us;
	uint64_t attempts[RECORD_ATTEMPT_MAX];              /* come in so far, each kind counted where it arrives */
	uint64_t recorded[RECORD_ATTEMPT_MAX][VERDICT_MAX]; /* of these, records made so far, by their verdict now;
							     * the others are still undecided (or, refused: not seen) */
	uint8_t final; /* the sandbox was detached or the sender ends in order: nothing comes after it */
};

struct record {
	uint32_t kind; /* enum record_kind */
	uint32_t lost; /* records right before this one that the sender had no room for: their numbers are missing */
	uint64_t seq;  /* per sender, counts from 1; without holes but for those */
	union {
		struct record_flow flow;
		struct record_close close;
		struct record_dns dns;
		struct record_event event;
		struct record_sandbox sandbox;
		struct record_gap gap;
		struct record_account account;
	};
};

/* Epochs are handed out at least this far apart: a sender that lives so long that its counter outgrows 31 bits (a
 * hostile guest can cause some thousand records a second) goes on into the epochs behind its own, and never meets
 * another's ids. */
#define RECORD_EPOCH_SPAN 64
#define RECORD_ID(epoch, counter) (((uint64_t)(epoch) << 31) + (counter))
/* Is the id one that the sender of this epoch gives out? */
static inline bool
record_id_is_of(uint64_t id, uint64_t epoch)
{
	return id >> 31 >= epoch && (id >> 31) - epoch < RECORD_EPOCH_SPAN;
}

/* Bytes of struct record that a kind uses: what travels; 0 for an unknown kind. */
uint32_t record_size(uint32_t kind);

/* Is every enum and length within bounds? The auditor asks this of each record it gets. */
bool record_valid(const struct record *record, uint32_t size);

/* Stored and printed words. "?" outside the enum. */
const char *record_name_source_text(unsigned int source);
const char *record_end_text(unsigned int end);
const char *record_event_text(unsigned int kind);

#endif
