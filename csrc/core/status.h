/* What a core function can say went wrong. The core never prints and never aborts: it returns one of these,
 * and csrc/binding/errors.c is the one place that turns them into exceptions. */
#ifndef DL_STATUS_H
#define DL_STATUS_H

typedef enum dl_status {
  DL_OK = 0,
  DL_NO_MEMORY,      /* an allocation failed */
  DL_BAD_ARGUMENT,   /* a value outside what the header allows */
  DL_NOT_SUPPORTED,  /* this machine, kernel or compiler has no such thing */
  DL_OS_ERROR,       /* a system call failed; errno says why */
  DL_STOPPED,        /* the caller's hook asked to stop; what was finished is kept */
  DL_NOT_ALLOWED     /* an arm cannot hold such a set (a closed set asked to hold a plugin, ...) */
} dl_status;

#endif
