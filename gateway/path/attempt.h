/* SPDX-License-Identifier: GPL-3.0-or-later */
/* An attempt of a guest to reach an origin, by TCP or UDP: what its records say, and what it holds while it is open.
 *
 * An attempt that is let through has an opening record, which must be durable before any payload leaves; then interim
 * records of its counts, and one closing record. An attempt that is refused has one complete record, or is counted in
 * one together with others of its kind. */
#ifndef POSTERN_GATEWAY_ATTEMPT_H
#define POSTERN_GATEWAY_ATTEMPT_H

#include "gateway/path/count/aggregate.h"
#include "gateway/path/count/interim.h"
#include "gateway/path/count/quota.h"
#include "gateway/path/count/window.h"
#include "gateway/path/gateway.h"
#include "gateway/path/judge.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

/* Kinds of refusals kept per sandbox, protocol and reason (gateway/path/count/aggregate.h). */
#define ATTEMPT_KINDS_MAX 64
/* The time in which an own record is given to so many refusals. */
#define ATTEMPT_LISTED_MS 60000

/* Both ends as the guest made them; dst is where it goes, and nothing else is ever dialled. Compared as bytes. */
struct attempt_ends {
	struct addr src, dst;
	uint16_t sport, dport;
};
static_assert(sizeof(struct attempt_ends) == 2 * sizeof(struct addr) + 4, "struct attempt_ends must have no padding");

/* Embedded in a connection or UDP flow. The owner sets what is above the line once, before attempt_open. */
struct attempt {
	struct sandbox *sandbox;
	struct attempt_ends ends;
	struct recorder_wait wait; /* its handler runs when the opening record is durable */
	const uint64_t *out, *in;  /* payload bytes passed on since attempt_open, counted by the owner */
	/* Fill in packets_out and packets_in since attempt_open; close->end is END_OPEN in an interim record. */
	void (*packets)(struct attempt *attempt, struct record_close *close);
	/* ---- */
	struct judgement verdict;          /* that let it through */
	struct quota_ticket ticket;        /* held while it is open */
	uint64_t id;                       /* of the open record; 0: none */
	int64_t opened_us;                 /* clock_mono_us of attempt_open */
	int64_t connect_us, first_byte_us; /* as in struct record_close; the owner sets them */
	struct addr up_src;                /* our own end towards the origin */
	uint16_t up_sport;
	struct interim interim;
};

/* The refusals of one sandbox and protocol. */
struct attempt_refusals {
	struct sandbox *sandbox;
	uint8_t proto;
	uint64_t listed_max;      /* with a record of their own, in ATTEMPT_LISTED_MS */
	struct window listed;     /* these */
	struct aggregate counted; /* the others, by kind */
};

/* Microseconds since a clock_mono_us; at least 1, since 0 says "did not happen". */
int64_t attempt_since_us(int64_t began_us);

/* Fill in country and network of the record's destination, for people who read the log: it decides nothing. */
void attempt_record_place(const struct geo *geo, struct record_flow *flow);
/* Make a record of kind RECORD_FLOW_OPEN: a new id, the time, the ends and the verdict. */
void attempt_record(struct sandbox *sandbox, struct record *ret_record, const struct attempt_ends *ends, uint8_t proto,
    const struct judgement *verdict);

/* Send the opening record, made by attempt_record; attempt->wait fires when it is durable. 0, or -ENOBUFS: it is not
 * open then. */
int attempt_open(struct attempt *attempt, struct record *record);
/* Note our own end of a connected socket towards the origin. */
void attempt_note_source(struct attempt *attempt, int fd);
/* Send the closing record, if one is open, and count the bytes. The ticket is kept. 0, or -ENOBUFS: the record is
 * lost. */
int attempt_close(struct attempt *attempt, enum end_reason end, enum verdict verdict, enum reason reason);
/* List a live attempt that the policy no longer allows. */
void attempt_list_cut(const struct attempt *attempt, struct msg_policy_done *done);

/* listed_max: refusals in ATTEMPT_LISTED_MS that get a record of their own; 0: none does. */
void attempt_refusals_init(
    struct attempt_refusals *refusals, struct sandbox *sandbox, uint8_t proto, uint64_t listed_max);
/* Send what was counted and free all. */
void attempt_refusals_close(struct attempt_refusals *refusals);
/* May one more refusal have a record of its own? Then it is counted as one. */
bool attempt_refusals_list(struct attempt_refusals *refusals);
/* Count a refusal in the record of its kind. end: END_REFUSED or END_CONNECT_FAILED. */
void attempt_refusals_count(struct attempt_refusals *refusals, const struct attempt_ends *ends,
    const struct judgement *verdict, enum end_reason end);

#endif
