# SPDX-License-Identifier: GPL-3.0-or-later
# Makes a role's list of system calls from the notes in its sources: awk -v role=ROLE -f confine.awk SOURCE...
#
# A note is a line of a comment that stands beside the code that makes the calls, or uses the library that does:
#
#   syscalls: sendmsg setsockopt(SOL_SOCKET,SO_LINGER) openat=ENOENT
#   syscalls(control): memfd_create
#
# The second form is for that role only (several: names separated by commas); what a shared file does without it is
# allowed to every role that links the file. In parentheses, without spaces: the values that the arguments which matter
# must have. CALL=ERRNO: the call is refused with that error instead of ending the process, because a library tries it
# and goes on without. The output is sorted by nothing: the order of notes, each once.

BEGIN {
	# Which arguments are compared, counted from 0.
	first["ioctl"] = first["fcntl"] = first["setsockopt"] = first["getsockopt"] = 1
	first["prctl"] = first["socket"] = 0
	first["mmap"] = first["mprotect"] = 2
	# Calls that do too many things to be allowed whatever their arguments are.
	whole["ioctl"] = whole["fcntl"] = whole["setsockopt"] = whole["prctl"] = whole["socket"] = 1
	whole["mmap"] = whole["mprotect"] = 1
}

function fail(text) {
	printf "%s:%d: %s\n", FILENAME, FNR, text > "/dev/stderr"
	failed = 1
	exit 1
}

function emit(note,    call, error, arguments, count, values, i, out) {
	error = 0
	if (match(note, /=[A-Z]+$/)) {
		error = substr(note, RSTART + 1)
		note = substr(note, 1, RSTART - 1)
	}
	call = note
	if (match(note, /\(.*\)$/)) {
		call = substr(note, 1, RSTART - 1)
		arguments = substr(note, RSTART + 1, RLENGTH - 2)
		if (!(call in first))
			fail("no arguments of " call " are known to matter")
	} else if (error == 0 && (call in whole)) {
		fail(call " needs its arguments in the note: " call "(...)")
	}
	if (call !~ /^[a-z][a-z0-9_]*$/)
		fail("not a system call: " note)
	count = split(arguments, values, ",")
	out = ""
	for (i = 1; i <= count; i++)
		out = out sprintf(", {%d, %s}", first[call] + i - 1, values[i])
	out = sprintf("%s(%s, %s, %d%s)", error == 0 ? "SYSCALL" : "REFUSED", call, error, count, out)
	if (!(out in seen)) {
		seen[out] = 1
		print out
	}
}

/(^|[ \t*])syscalls(\([a-z,]+\))?: / {
	line = $0
	sub(/^.*syscalls/, "", line)
	if (line ~ /^\(/) {
		roles = line
		sub(/^\(/, "", roles)
		sub(/\).*/, "", roles)
		sub(/^\([a-z,]+\)/, "", line)
		if (index("," roles ",", "," role ",") == 0)
			next
	}
	sub(/^: /, "", line)
	sub(/ *\*\/.*$/, "", line)
	n = split(line, notes, " ")
	for (k = 1; k <= n; k++)
		emit(notes[k])
}

END {
	exit failed
}
