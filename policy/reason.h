/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Verdicts, the closed set of reasons, and proofs of names; their words are stored, printed and documented
 * (postern-audit(5)). */
#ifndef POSTERN_POLICY_REASON_H
#define POSTERN_POLICY_REASON_H

enum verdict {
	VERDICT_ALLOWED = 0, /* let through */
	VERDICT_DENIED,      /* refused by policy, never list or proof of name */
	VERDICT_LIMITED,     /* refused because a limit was reached */
	VERDICT_FAILED,      /* permitted, but did not come about: upstream_error, audit_unavailable, internal_error */
	VERDICT_MAX
};

/* Stored as numbers: append only. */
enum reason {
	REASON_ALLOWED = 0,
	REASON_NO_RULE,       /* no rule allows this name or address on this port */
	REASON_RULE_DENY,     /* a deny rule matched */
	REASON_NEVER_ADDRESS, /* the address is on the never list (private, metadata, the host itself, ...) */
	REASON_NEVER_NAME,    /* the name is on the never list */
	REASON_NOT_LEASED,    /* this sandbox did not resolve an allowed name to this address */
	REASON_DNS_DENIED,    /* the question may not be asked: message or class is out of order */
	REASON_DNS_REBIND,    /* an allowed name answered with a never-list address */
	REASON_DNS_TYPE,      /* the query type is not served */
	REASON_SNI_MISSING,
	REASON_SNI_MISMATCH, /* SNI names something this sandbox did not resolve to that address, or is no host name */
	REASON_ECH,          /* encrypted ClientHello under "ech: deny" */
	REASON_TLS_MALFORMED,
	REASON_HOST_MISMATCH,  /* HTTP Host or authority, likewise */
	REASON_HTTP_MALFORMED, /* framing or syntax that two parsers may read in two ways */
	REASON_NOT_TLS,        /* port 443 spoke something else, or nothing in time */
	REASON_NOT_HTTP,       /* port 80, likewise */
	REASON_UDP_DENIED,
	REASON_PROTO_DENIED,   /* an IP protocol, or a protocol inside HTTP, that is never carried */
	REASON_SPOOFED_SOURCE, /* the packet's source is not the guest's address */
	REASON_LIMIT_CONNECTIONS,
	REASON_LIMIT_UPLOAD,
	REASON_LIMIT_RATE,
	REASON_EXPIRED,
	REASON_REVOKED,
	REASON_UPSTREAM_ERROR,
	REASON_AUDIT_UNAVAILABLE,
	REASON_INTERNAL_ERROR,
	REASON_LIMIT_DOWNLOAD,
	REASON_PLACE_UNKNOWN, /* a deny rule is about countries or networks, and the address's is not known */
	REASON_MAX
};

/* The proof behind a connection's name. Stored as numbers: append only. */
enum name_source {
	NAME_SOURCE_NONE = 0,
	NAME_SOURCE_LEASE, /* this sandbox resolved it to this address; no name in the protocol (raw ports) */
	NAME_SOURCE_SNI,   /* leased and said in the ClientHello */
	NAME_SOURCE_HOST,  /* leased and said in the HTTP request */
	NAME_SOURCE_CIDR,  /* an address rule allowed it; the name (if any) is only what the guest said */
	NAME_SOURCE_CLAIM, /* said by the guest, not proven: the reason of a refusal */
	NAME_SOURCE_DNS,   /* the question of a query */
	NAME_SOURCE_MAX
};

/* The word for a value ("rule_deny"); "?" for a value outside the enum (stored data may be damaged). */
const char *reason_text(unsigned int reason);

/* One short sentence for a person, as in DNS Extended Error text and HTTP 403 bodies ("no rule allows this name"). */
const char *reason_sentence(unsigned int reason);

#endif
