/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The process that `postern run` makes: namespaces of its own, then the command, with nothing left to undo them. */
#ifndef POSTERN_CLI_RUN_CHILD_H
#define POSTERN_CLI_RUN_CHILD_H

#include "base/error.h"

#include <sys/types.h>

/* How the child gets a network namespace that the daemon may enter. */
enum run_userns {
	RUN_USERNS_NONE,   /* we are root */
	RUN_USERNS_OWN,    /* an ordinary user before the system's daemon: a user namespace of our own */
	RUN_USERNS_KEEPER, /* rootless daemon: the user namespace that owns the sandboxes' namespaces */
};

struct run_child {
	pid_t pid;
	int go_fd;    /* close it: the child may run the command; -1 once closed */
	int ready_fd; /* readable: the child has its namespaces, or says why not */
};

/* Directories that are hidden: sockets and state of the daemon that is used, of the user's own, of the system's. */
#define RUN_CHILD_HIDE 6

struct run_child_config {
	enum run_userns userns;
	pid_t keeper_pid;                 /* for RUN_USERNS_KEEPER */
	const char *dns4, *dns6;          /* the gateway's addresses for resolv.conf */
	const char *hide[RUN_CHILD_HIDE]; /* the same one may be there twice; NULL: none */
	char **argv;                      /* the command */
};

/* Fork the child. It makes its namespaces and waits. 0, or -1. */
int run_child_start(const struct run_child_config *config, struct run_child *ret_child, struct error *err);

/* Wait until it has them. 0, or -1 with its own words. */
int run_child_ready(struct run_child *child, struct error *err);

/* Let it run the command. */
void run_child_go(struct run_child *child);

/* Wait for its end, passing SIGINT, SIGTERM and SIGHUP on. Returns the command's status as a shell gives it. */
int run_child_wait(struct run_child *child);

/* Give up before it ran anything. */
void run_child_cancel(struct run_child *child);

#endif
