/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a gateway counts of a sandbox's attempts: those that came in, and those of them that are on record.
 *
 * Two independent sides. Attempts are counted where they arrive: a connection at accept, a datagram or message at the
 * socket it is read from, a refused packet by the kernel. Records are counted where they are handed to the recorder.
 * What is lost between the two shows as a difference; postern verify compares both with the rows of the log. */
#ifndef POSTERN_GATEWAY_BALANCE_H
#define POSTERN_GATEWAY_BALANCE_H

#include "audit/record.h"
#include "base/loop.h"
#include "gateway/shared/recorder.h"
#include "gateway/shared/msg.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

/* A changed balance is sent within this time. */
#define BALANCE_SEND_MS 10000
/* Balances sent in one round of the loop, and the pause before the next ones. */
#define BALANCE_BATCH_MAX 64
#define BALANCE_STEP_MS 10

struct sandbox;

/* The balances of a gateway that changed since they were sent, the longest waiting first, and the sum of all, those of
 * sandboxes that are gone too. Zeroed at the start; of a struct gateway. */
struct balance_queue {
	struct loop *loop;
	TAILQ_HEAD(, balance) waiting; /* the longest waiting first; made by the first balance */
	struct loop_timer timer;
	uint64_t recorded[RECORD_ATTEMPT_MAX][VERDICT_MAX]; /* as struct record_account says */
	uint64_t open;                                      /* connections among them that have no close yet */
};

struct balance {
	struct balance_queue *queue;
	struct recorder *recorder;
	TAILQ_ENTRY(balance) next; /* in queue */
	bool queued;
	int64_t due_ms; /* clock_mono_ms: when it is to be sent */
	unsigned int holders;
	char name[TAP_NAME_MAX];
	struct record_account counts;
};

/* Make sandbox->balance, held once. 0 or -ENOMEM. */
int balance_attach(struct sandbox *sandbox);
/* For an owner that records after the sandbox's end. Returns balance. */
struct balance *balance_hold(struct balance *balance);
/* The last holder's release sends the final balance and frees it. NULL is fine. */
void balance_release(struct balance *balance);

/* Attempts came in. */
void balance_arrive(struct balance *balance, enum record_attempt kind, uint64_t count);
/* One that came in turned out to be of another kind. */
void balance_reclass(struct balance *balance, enum record_attempt from, enum record_attempt to);

/* recorder_send for every record that is about an attempt, and count it. before: the count with which the same row was
 * sent last, 0 for a new one. A close changes the verdict of its connection, which was "allowed". Returns as
 * recorder_send; nothing is counted when that failed. */
int balance_send(struct balance *balance, struct record *record, uint64_t before, struct recorder_wait *wait);

#endif
