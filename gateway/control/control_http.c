/* SPDX-License-Identifier: GPL-3.0-or-later */
/* HTTP over the control socket: libmicrohttpd without threads, driven by our loop through its epoll descriptor.
 *
 * A request is collected, dispatched once, and answered either before the dispatch returns or later; in between its
 * connection is suspended, so that the library neither calls us nor times it out.
 *
 * What libmicrohttpd asks of the kernel.
 * syscalls: epoll_create1 accept4 getsockname getsockopt(SOL_SOCKET,SO_DOMAIN) getsockopt(SOL_SOCKET,SO_ERROR)
 * syscalls: fcntl(F_GETFL) fcntl(F_SETFL) fcntl(F_SETFD) recvfrom sendto sendmsg writev shutdown */
#include "gateway/control/control_http.h"

#include "base/clock.h"
#include "base/escape.h"

#include <errno.h>
#include <fcntl.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

/* Rounds given to the library on shutdown to get answers out. */
#define HTTP_STOP_ROUNDS 16

/* -- the peer ------------------------------------------------------------------------------------------------------
 *
 * The kernel keeps the pid of the process that connected, not of the one that writes: a connection that was handed on,
 * or whose maker is gone and whose pid was used again, names another process. (SO_PEERPIDFD closes that, from Linux 6.5
 * on.) A client that waits for its answer is still there when this looks. */

/* syscalls: getsockopt(SOL_SOCKET,SO_PEERCRED) */
int
control_http_peer_read(int fd, struct control_peer *ret_peer)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0 || len != sizeof(peer))
		return -1;
	*ret_peer = (struct control_peer){.uid = peer.uid, .pid = peer.pid};
	return 0;
}

/* The beginning of /proc/PID/what. Returns its length; 0 when there is none.
 * syscalls: openat */
static size_t
peer_file(int32_t pid, const char *what, char *ret_bytes, size_t size)
{
	char path[48];
	ssize_t len;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, what);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return 0;
	len = read(fd, ret_bytes, size);
	close(fd);
	return len < 0 ? 0 : (size_t)len;
}

void
control_http_peer_look(struct control_peer *peer)
{
	char comm[CONTROL_PEER_COMM_MAX], command[CONTROL_PEER_COMMAND_MAX];
	size_t comm_len, command_len;

	if (peer->pid <= 0)
		return;
	comm_len = peer_file(peer->pid, "comm", comm, sizeof(comm));
	if (comm_len > 0 && comm[comm_len - 1] == '\n')
		comm_len--;
	escape_terminal(comm, comm_len, peer->comm, sizeof(peer->comm));
	command_len = peer_file(peer->pid, "cmdline", command, sizeof(command));
	/* A NUL ends each argument. */
	while (command_len > 0 && command[command_len - 1] == '\0')
		command_len--;
	for (size_t i = 0; i < command_len; i++)
		if (command[i] == '\0')
			command[i] = ' ';
	escape_terminal(command, command_len, peer->command, sizeof(peer->command));
}

/* -- answers ------------------------------------------------------------------------------------------------------- */

/* text is owned; NULL: out of memory. */
static void
http_answer(struct control_request *request, unsigned int status, char *text)
{
	request->answered = true;
	request->status = text == NULL ? MHD_HTTP_INTERNAL_SERVER_ERROR : status;
	request->answer = text;
	if (!request->suspended)
		return;
	request->suspended = false;
	MHD_resume_connection(request->connection);
	/* The library's own descriptor does not become readable by this: run it. */
	loop_timer_set(request->control->loop, &request->control->http_timer, 0);
}

void
control_http_answer(struct control_request *request, unsigned int status, json_t *body)
{
	if (!request->answered)
		http_answer(request, status, body == NULL ? NULL : json_dumps(body, JSON_INDENT(2)));
	json_decref(body);
}

void
control_http_answer_text(struct control_request *request, const char *content_type, char *text)
{
	if (request->answered) {
		free(text);
		return;
	}
	request->content_type = text == NULL ? NULL : content_type;
	http_answer(request, MHD_HTTP_OK, text);
}

void
control_http_answer_error(struct control_request *request, const struct error *err)
{
	char text[ERROR_TEXT_MAX];
	json_t *message = json_string(err->text);

	if (message == NULL) { /* not UTF-8: cut within a character, or quoting other bytes */
		snprintf(text, sizeof(text), "%s", err->text);
		for (char *at = text; *at != '\0'; at++)
			if ((unsigned char)*at >= 0x80)
				*at = '?';
		message = json_string(text);
	}
	control_http_answer(request, error_http_status(err->code),
	    json_pack("{s:s, s:o}", "error", error_code_text(err->code), "message", message));
}

static enum MHD_Result
http_queue(struct control_request *request)
{
	static char nothing[] = "{\"error\":\"system\",\"message\":\"out of memory\"}";
	struct MHD_Response *response = request->answer == NULL
	    ? MHD_create_response_from_buffer(sizeof(nothing) - 1, nothing, MHD_RESPMEM_PERSISTENT)
	    : MHD_create_response_from_buffer(strlen(request->answer), request->answer, MHD_RESPMEM_MUST_FREE);
	enum MHD_Result rc;

	if (response == NULL)
		return MHD_NO;
	request->answer = NULL;
	MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE,
	    request->content_type == NULL ? "application/json" : request->content_type);
	MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
	if (request->allow[0] != '\0')
		MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, request->allow);
	rc = MHD_queue_response(request->connection, request->status, response);
	MHD_destroy_response(response);
	return rc;
}

/* -- requests ------------------------------------------------------------------------------------------------------ */

/* Compares a path with a route's; what stands in the place of "*" is the name. */
static bool
http_path_fits(const char *pattern, const char *path, char ret_name[TAP_NAME_MAX])
{
	size_t before = strcspn(pattern, "*"), len;

	ret_name[0] = '\0';
	if (pattern[before] == '\0')
		return strcmp(pattern, path) == 0;
	if (strncmp(pattern, path, before) != 0)
		return false;
	len = strcspn(path + before, "/");
	if (len == 0 || len >= TAP_NAME_MAX || strcmp(pattern + before + 1, path + before + len) != 0)
		return false;
	memcpy(ret_name, path + before, len);
	ret_name[len] = '\0';
	return true;
}

/* Finds the route of method and path; answers the request (404, 405) when there is none. Fills request->name. */
static bool
http_find_route(struct control_request *request, const char *method, const char *path)
{
	size_t len = 0;
	struct error err;

	for (const struct control_route *route = request->control->routes; route->path != NULL; route++) {
		if (!http_path_fits(route->path, path, request->name))
			continue;
		if (strcmp(route->method, method) == 0) {
			request->route = route;
			request->allow[0] = '\0';
			return true;
		}
		len += (size_t)snprintf(
		    request->allow + len, sizeof(request->allow) - len, "%s%s", len == 0 ? "" : ", ", route->method);
	}
	if (len > 0)
		error_set(&err, ERROR_USAGE, "this path takes %s only", request->allow);
	else
		error_set(&err, ERROR_NOT_FOUND, "no such path; see /v1/status and /v1/sandboxes");
	control_http_answer_error(request, &err);
	if (len > 0)
		request->status = MHD_HTTP_METHOD_NOT_ALLOWED;
	return false;
}

static struct control_request *
http_request_new(struct control *control, struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct control_request *request = calloc(1, sizeof(*request));

	if (request == NULL || info == NULL || control_http_peer_read(info->connect_fd, &request->peer) < 0) {
		free(request);
		return NULL;
	}
	request->control = control;
	request->connection = connection;
	LIST_INSERT_HEAD(&control->requests, request, entry);
	return request;
}

/* Headers are there: refuse what will not be served before its body is sent. */
static enum MHD_Result
http_begin(struct control_request *request, const char *method, const char *path)
{
	const char *len =
	    MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONTENT_LENGTH);
	struct error err = {0};

	if (!http_find_route(request, method, path))
		return http_queue(request);
	if (request->control->stopping) {
		error_set(&err, ERROR_UNREACHABLE, "posternd is shutting down");
		control_http_answer_error(request, &err);
	} else if (len != NULL && strtoull(len, NULL, 10) > request->route->body_max) {
		if (request->route->body_max == 0)
			error_set(&err, ERROR_USAGE, "this request takes no body");
		else
			error_set(&err, ERROR_LIMIT, "the body is larger than %zu bytes", request->route->body_max);
		control_http_answer_error(request, &err);
		request->status = MHD_HTTP_CONTENT_TOO_LARGE;
	}
	return request->answered ? http_queue(request) : MHD_YES;
}

/* Takes a piece of the body; false: it is too long (and its length was not announced), or no memory. */
static bool
http_collect(struct control_request *request, const char *bytes, size_t len)
{
	if (request->answered)
		return true;
	if (len > request->route->body_max - request->body_len)
		return false;
	if (request->body_len + len > request->body_size) {
		size_t size =
		    request->body_size * 2 > request->body_len + len ? request->body_size * 2 : request->body_len + len;
		char *body = realloc(request->body, size);

		if (body == NULL)
			return false;
		request->body = body;
		request->body_size = size;
	}
	memcpy(request->body + request->body_len, bytes, len);
	request->body_len += len;
	return true;
}

static enum MHD_Result
http_handler(void *context, struct MHD_Connection *connection, const char *url, const char *method, const char *version,
    const char *upload, size_t *upload_len, void **slot)
{
	struct control_request *request = *slot;

	(void)version;
	if (request == NULL) {
		request = http_request_new(context, connection);
		*slot = request;
		return request == NULL ? MHD_NO : http_begin(request, method, url);
	}
	if (*upload_len > 0) {
		bool taken = http_collect(request, upload, *upload_len);

		*upload_len = 0;
		return taken ? MHD_YES : MHD_NO;
	}
	if (!request->dispatched && !request->answered) {
		request->dispatched = true;
		request->control->dispatch(request);
	}
	if (request->answered)
		return http_queue(request);
	request->suspended = true;
	MHD_suspend_connection(connection);
	return MHD_YES;
}

/* The library is done with a request. No job holds it any more: jobs answer before they end, and until then the
 * connection is suspended, and so not completed. */
static void
http_completed(void *context, struct MHD_Connection *connection, void **slot, enum MHD_RequestTerminationCode why)
{
	struct control_request *request = *slot;

	(void)context;
	(void)connection;
	(void)why;
	if (request == NULL)
		return;
	LIST_REMOVE(request, entry);
	free(request->body);
	free(request->answer);
	free(request);
	*slot = NULL;
}

/* -- the server ---------------------------------------------------------------------------------------------------- */

/* Runs the library, and arms the timer for when it wants to run again. */
static void
http_run(struct control *control)
{
	MHD_UNSIGNED_LONG_LONG wait_ms;

	MHD_run(control->http);
	if (MHD_get_timeout(control->http, &wait_ms) == MHD_YES)
		loop_timer_set(control->loop, &control->http_timer, wait_ms > 60000 ? 60000 : (int64_t)wait_ms);
	else
		loop_timer_stop(control->loop, &control->http_timer);
}

static void
http_source_handler(struct loop_source *source, uint32_t events)
{
	(void)events;
	http_run(loop_owner(source, struct control, http_source));
}

static void
http_timer_handler(struct loop_timer *timer)
{
	http_run(loop_owner(timer, struct control, http_timer));
}

/* syscalls: fcntl(F_GETFL) fcntl(F_SETFL) */
int
control_http_start(struct control *control, const struct control_route *routes,
    void (*dispatch)(struct control_request *request), struct error *err)
{
	const union MHD_DaemonInfo *info;
	int flags = fcntl(control->listen_fd, F_GETFL), rc;

	if (flags < 0 || fcntl(control->listen_fd, F_SETFL, flags | O_NONBLOCK) < 0)
		return error_sys(err, errno, "control socket");
	control->routes = routes;
	control->dispatch = dispatch;
	control->http = MHD_start_daemon(MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, http_handler, control,
	    MHD_OPTION_LISTEN_SOCKET, control->listen_fd, MHD_OPTION_CONNECTION_LIMIT,
	    (unsigned int)CONTROL_HTTP_CONNECTIONS_MAX, MHD_OPTION_CONNECTION_TIMEOUT,
	    (unsigned int)CONTROL_HTTP_IDLE_S, MHD_OPTION_NOTIFY_COMPLETED, http_completed, control, MHD_OPTION_END);
	if (control->http == NULL)
		return error_sys(err, errno, "HTTP server");
	control->listen_fd = -1; /* the library closes it */
	info = MHD_get_daemon_info(control->http, MHD_DAEMON_INFO_EPOLL_FD);
	if (info == NULL)
		return error_set(err, ERROR_SYSTEM, "HTTP server: no epoll descriptor");
	control->http_source.fd = info->epoll_fd;
	control->http_source.handler = http_source_handler;
	control->http_timer.handler = http_timer_handler;
	rc = loop_source_add(control->loop, &control->http_source, EPOLLIN);
	if (rc < 0)
		return error_sys(err, -rc, "HTTP server");
	return 0;
}

void
control_http_stop(struct control *control)
{
	struct control_request *request;
	struct error err = {0};

	if (control->http == NULL)
		return;
	error_set(&err, ERROR_UNREACHABLE, "posternd is shutting down");
	LIST_FOREACH(request, &control->requests, entry)
	if (request->suspended)
		control_http_answer_error(request, &err);
	for (int i = 0; i < HTTP_STOP_ROUNDS; i++)
		MHD_run(control->http);
	loop_source_remove(control->loop, &control->http_source);
	loop_timer_stop(control->loop, &control->http_timer);
	MHD_stop_daemon(control->http);
	control->http = NULL;
}
