/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Walks over netlink attributes: libmnl's own macros do not pass our warnings. */
#ifndef POSTERN_TAP_ATTR_H
#define POSTERN_TAP_ATTR_H

#include <libmnl/libmnl.h>
#include <stdbool.h>
#include <stdint.h>

/* Is there a whole attribute between attr and tail? */
static inline bool
attr_within(const struct nlattr *attr, const void *tail)
{
	return mnl_attr_ok(attr, (int)((const char *)tail - (const char *)attr));
}

/* Attributes of a message whose family header takes offset bytes. */
#define attr_each(attr, nlh, offset)                                                                                   \
	for ((attr) = mnl_nlmsg_get_payload_offset(nlh, offset); attr_within(attr, mnl_nlmsg_get_payload_tail(nlh));   \
	     (attr) = mnl_attr_next(attr))

/* Attributes inside an attribute. */
#define attr_each_nested(attr, nest)                                                                                   \
	for ((attr) = mnl_attr_get_payload(nest);                                                                      \
	     attr_within(attr, (const char *)mnl_attr_get_payload(nest) + mnl_attr_get_payload_len(nest));             \
	     (attr) = mnl_attr_next(attr))

#endif
