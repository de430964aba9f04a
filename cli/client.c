/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/client.h"

#include "base/paths.h"
#include "cli/command.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* Longer than the 30 s that the daemon waits for its keeper. */
#define CLIENT_TIMEOUT_S 60
/* Longest answer accepted; policies are quoted in it. */
#define CLIENT_ANSWER_MAX (64u << 20)
/* As in the daemon: [a-z0-9][a-z0-9_.-]{0,62}. */
#define CLIENT_NAME_MAX 63
/* "/v1/sandboxes/", a name, "/policy", NUL. */
#define CLIENT_PATH_MAX 128

struct client_answer {
	char *text;
	size_t len;
	long status;
};

int
client_check_name(const char *name, struct error *err)
{
	size_t len = strlen(name);

	if (len > 0 && len <= CLIENT_NAME_MAX && strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_.-") == len &&
	    strchr("_.-", name[0]) == NULL)
		return 0;
	return error_set(err, ERROR_USAGE,
	    "'%.100s' is not a sandbox name: 1 to %d lower-case letters, digits, '_', '.', '-', beginning with a "
	    "letter "
	    "or digit",
	    name, CLIENT_NAME_MAX);
}

static size_t
client_collect(char *bytes, size_t size, size_t count, void *context)
{
	struct client_answer *answer = context;
	size_t len = size * count;
	char *text;

	if (len > CLIENT_ANSWER_MAX - answer->len)
		return 0;
	text = realloc(answer->text, answer->len + len + 1);
	if (text == NULL)
		return 0;
	memcpy(text + answer->len, bytes, len);
	answer->text = text;
	answer->len += len;
	answer->text[answer->len] = '\0';
	return len;
}

/* Why the socket does not answer: the kernel says it more reliably than the library. */
static int
client_explain(const char *socket_path, const char *library_says, struct error *err)
{
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), failed = 0;

	memcpy(sun.sun_path, socket_path, strnlen(socket_path, sizeof(sun.sun_path) - 1));
	if (fd < 0 || connect(fd, (struct sockaddr *)&sun, sizeof(sun)) < 0)
		failed = errno;
	if (fd >= 0)
		close(fd);
	if (failed == EACCES || failed == EPERM)
		return error_set(err, ERROR_PERMISSION,
		    "%s: permission denied; become root or a member of its group: usermod -a -G postern USER, then log "
		    "in "
		    "again",
		    socket_path);
	if (failed == ENOENT || failed == ECONNREFUSED || failed == ENOTDIR)
		return error_set(err, ERROR_UNREACHABLE,
		    "%s: no daemon answers; posternd is not running or uses another --runtime-dir: systemctl start "
		    "posternd",
		    socket_path);
	if (failed != 0)
		return error_set(err, ERROR_UNREACHABLE, "%s: %s", socket_path, strerror(failed));
	return error_set(err, ERROR_UNREACHABLE, "%s: the daemon did not answer: %s", socket_path, library_says);
}

static int
client_exchange(CURL *curl, const char *socket_path, const char *method, const char *path, const char *body,
    struct client_answer *answer, struct error *err)
{
	char url[CLIENT_PATH_MAX + 32], why[CURL_ERROR_SIZE] = "";
	struct curl_slist *headers = NULL;
	CURLcode rc;

	snprintf(url, sizeof(url), "http://postern%s", path);
	headers = curl_slist_append(NULL, "Content-Type: application/json");
	headers = curl_slist_append(headers, "Expect:"); /* no extra round trip */
	curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, why);
	curl_easy_setopt(curl, CURLOPT_URL, url);
	curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, socket_path);
	curl_easy_setopt(curl, CURLOPT_PROXY, "");
	curl_easy_setopt(curl, CURLOPT_PATH_AS_IS, 1L);
	curl_easy_setopt(curl, CURLOPT_TIMEOUT, (long)CLIENT_TIMEOUT_S);
	curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
	curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, method);
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, client_collect);
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, answer);
	if (body != NULL) {
		curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body);
		curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)strlen(body));
	}
	rc = curl_easy_perform(curl);
	curl_slist_free_all(headers);
	if (rc != CURLE_OK)
		return client_explain(socket_path, why[0] == '\0' ? curl_easy_strerror(rc) : why, err);
	curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &answer->status);
	return 0;
}

static int
client_read_answer(const struct client_answer *answer, json_t **ret_answer, struct error *err)
{
	json_t *json =
	    answer->text == NULL ? NULL : json_loadb(answer->text, answer->len, JSON_REJECT_DUPLICATES, NULL);

	if (json == NULL)
		return error_set(err, ERROR_CORRUPT, "the daemon's answer (status %ld) is not JSON", answer->status);
	if (answer->status >= 200 && answer->status < 300) {
		*ret_answer = json;
		return 0;
	}
	error_set(err, error_code_parse(command_text(json, "error")), "%s", command_text(json, "message"));
	if (err->code == ERROR_NONE || err->text[0] == '\0')
		error_set(err, ERROR_SYSTEM, "the daemon answered with status %ld", answer->status);
	json_decref(json);
	return -1;
}

int
client_request(const char *method, const char *path, json_t *request_own, json_t **ret_answer, struct error *err)
{
	struct client_answer answer = {0};
	char socket_path[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
	char *text = request_own == NULL ? NULL : json_dumps(request_own, JSON_COMPACT);
	CURL *curl = curl_easy_init();
	int rc = -1;

	if ((size_t)snprintf(socket_path, sizeof(socket_path), "%s/control.sock", paths_runtime_dir()) >=
	    sizeof(socket_path))
		error_set(
		    err, ERROR_USAGE, "runtime directory %.200s: too long for a socket's path", paths_runtime_dir());
	else if (curl == NULL)
		error_set(err, ERROR_SYSTEM, "HTTP client: out of memory");
	else if (request_own != NULL && text == NULL)
		error_set(err, ERROR_USAGE, "an argument is not UTF-8");
	else if (client_exchange(curl, socket_path, method, path, text, &answer, err) == 0)
		rc = client_read_answer(&answer, ret_answer, err);
	curl_easy_cleanup(curl);
	free(answer.text);
	free(text);
	json_decref(request_own);
	return rc;
}

int
client_sandbox(const char *method, const char *name, const char *suffix, json_t *request_own, json_t **ret_answer,
    struct error *err)
{
	char path[CLIENT_PATH_MAX];

	if (client_check_name(name, err) < 0) {
		json_decref(request_own);
		return -1;
	}
	snprintf(path, sizeof(path), "/v1/sandboxes/%s%s", name, suffix);
	return client_request(method, path, request_own, ret_answer, err);
}
