/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Requests over the control socket. */
#ifndef POSTERN_GATEWAY_CONTROL_HTTP_H
#define POSTERN_GATEWAY_CONTROL_HTTP_H

#include "base/error.h"
#include "gateway/control/control_role.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* HTTP connections at most: further ones wait in the listen backlog. */
#define CONTROL_HTTP_CONNECTIONS_MAX 256
/* A silent HTTP connection is closed after this. Suspended ones are bounded by CONTROL_JOB_ANSWER_MS. */
#define CONTROL_HTTP_IDLE_S 60

/* Bytes of a process's name (TASK_COMM_LEN), and of its command line that are read: enough for "postern allow" with a
 * few rules, and little enough for the record that it goes into. */
#define CONTROL_PEER_COMM_MAX 16
#define CONTROL_PEER_COMMAND_MAX 160
/* One byte escaped is four. */
#define CONTROL_PEER_ESCAPED(n) (4 * (n) + 1)

/* Who asked: what the kernel says of the process at the other end, and what that process says of itself. */
struct control_peer {
	uint32_t uid; /* UINT32_MAX: the daemon itself */
	int32_t pid;  /* as this process sees it; 0: unknown, or out of its sight */
	/* Free for the process to choose, and so a claim. Escaped; "" when it could not be read. */
	char comm[CONTROL_PEER_ESCAPED(CONTROL_PEER_COMM_MAX)];
	char command[CONTROL_PEER_ESCAPED(CONTROL_PEER_COMMAND_MAX)];
};
#define CONTROL_PEER_NOBODY ((struct control_peer){.uid = UINT32_MAX})

struct control_job;

struct control_route {
	const char *method, *path; /* "*" in a path stands for a sandbox's name */
	size_t body_max;           /* bytes; 0: takes no body */
	bool changes;              /* a sandbox: the path's, or without "*" the one that the body names */
	void (*start)(struct control_job *job);
};

struct control_request {
	LIST_ENTRY(control_request) entry;
	struct control *control;
	struct MHD_Connection *connection;
	const struct control_route *route; /* NULL: path or method unknown; answered already */
	char name[TAP_NAME_MAX];           /* the path's sandbox, or "" */
	struct control_peer peer;          /* as control_http_peer_read fills it */
	char *body;
	size_t body_len, body_size;
	bool dispatched, suspended, answered;
	unsigned int status;
	char *answer;             /* text, owned until handed to the library */
	const char *content_type; /* of the answer; NULL: JSON */
	char allow[32];           /* 405: methods that the path has */
};

/* Serve on control->listen_fd by a table that ends with a route without a path; each complete request is given to
 * dispatch, which answers it then or later. 0 or -1. */
int control_http_start(struct control *control, const struct control_route *routes,
    void (*dispatch)(struct control_request *request), struct error *err);
/* Answer open requests with "shutting down", send what is ready, close. No job may hold a request any more. */
void control_http_stop(struct control *control);

/* Answer once; body's reference is stolen. Later answers to the same request are ignored. */
void control_http_answer(struct control_request *request, unsigned int status, json_t *body);
void control_http_answer_error(struct control_request *request, const struct error *err);
/* Likewise with a text that is not JSON: stolen (malloc); NULL: out of memory. */
void control_http_answer_text(struct control_request *request, const char *content_type, char *text);

/* uid and pid of the process that connected (SO_PEERCRED). 0 or -1. */
int control_http_peer_read(int fd, struct control_peer *ret_peer);
/* Its name and command line, as they are now. What cannot be read stays "". */
void control_http_peer_look(struct control_peer *peer);

#endif
