/* The rehearsal: a child process does with a plugin what the host is about to do, and tells how far it came. What a plugin
 * can do to a process (exit, crash, loop) it does there. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "plugin.h"

enum { MOST_PACKETS = 64 };

static const char *const doing[] = {
    [DL_STAGE_LOAD] = "being loaded (a constructor)", [DL_STAGE_ENTRY] = "the entry point",
    [DL_STAGE_PREFIX] = "reading its table",          [DL_STAGE_TABLE] = "reading its table",
    [DL_STAGE_KEYS] = "claimed_keys",                 [DL_STAGE_CREATE] = "create",
    [DL_STAGE_PROCESS] = "process",                   [DL_STAGE_DESTROY] = "destroy",
    [DL_STAGE_UNLOAD] = "leaving the process",        [DL_STAGE_DONE] = "nothing",
};

static void tell(int to, const dl_plugin_fault *fault) {
  if (write(to, fault, sizeof *fault) != (ssize_t)sizeof *fault) _exit(1);
}

static bool known_status(const dl_plugin *plugin, dl_instance *it, dl_plugin_fault *fault) {
  dl_packet packet = {.length = 64, .flow = 1};
  for (uint32_t i = 0; i < plugin->key_count && i < MOST_PACKETS; ++i) {
    packet.key = plugin->keys[i];
    for (int byte = 0; byte < DL_PAYLOAD_BYTES; ++byte) packet.payload[byte] = (uint8_t)(i + (uint32_t)byte);
    const dispatchlab_view view = dl_view_of(&packet);
    uint32_t result = 0;
    const int32_t status = plugin->table.process(it->instance, &view, &result);
    if (status == DISPATCHLAB_OK || status == DISPATCHLAB_FAILED) continue;
    fault->stage = DL_STAGE_PROCESS;
    snprintf(fault->what, sizeof fault->what, "process returns a status that does not exist");
    snprintf(fault->expected, sizeof fault->expected, "0 (DISPATCHLAB_OK) or -1 (DISPATCHLAB_FAILED)");
    snprintf(fault->got, sizeof fault->got, "%d for key %u", (int)status, (unsigned)packet.key);
    return false;
  }
  return true;
}

static void entering(void *context, dl_plugin_stage stage) {
  const dl_plugin_fault nothing = {.stage = stage};
  tell(*(const int *)context, &nothing);
}

/* In the child. Before each stage it tells which one it enters, so that a silent end can be blamed on it; the last word is a
 * fault, or that all is done. */
static void perform(const char *path, uint32_t host_level, int to) {
  const dl_plugin_watch watch = {entering, &to};
  dl_plugin plugin;
  dl_instance it;
  dl_plugin_fault fault;
  bool fine = dl_plugin_open(path, host_level, &watch, &plugin, &fault);
  if (fine) {
    entering(&to, DL_STAGE_CREATE);
    fine = dl_instance_create(&plugin, &it, &fault);
  }
  if (fine) {
    entering(&to, DL_STAGE_PROCESS);
    fine = known_status(&plugin, &it, &fault);
    if (fine) entering(&to, DL_STAGE_DESTROY);
    dl_instance_destroy(&it);
  }
  if (fine) entering(&to, DL_STAGE_DONE);
  else
    tell(to, &fault);
}

/* The child's own: nothing of it reaches the terminal, no core file is written, no signal of the parent's is inherited. */
static void become_child(void) {
  setsid(); /* so that what the plugin starts ends with it */
  const struct rlimit none = {0, 0};
  const int null = open("/dev/null", O_RDWR);
  setrlimit(RLIMIT_CORE, &none);
  for (int fd = 0; null >= 0 && fd < 3; ++fd) dup2(null, fd);
  for (int s = 1; s < 32; ++s) signal(s, SIG_DFL);
  sigset_t all;
  sigemptyset(&all);
  sigprocmask(SIG_SETMASK, &all, NULL);
}

static int64_t now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Reads what the child tells until it ends or the time is over; the last word is left in `last`. False: out of time. */
static bool listen_to(int from, int milliseconds, dl_plugin_fault *last) {
  const int64_t end = now_ms() + milliseconds;
  for (;;) {
    struct pollfd p = {.fd = from, .events = POLLIN};
    const int64_t left = end - now_ms();
    const int ready = left <= 0 ? 0 : poll(&p, 1, (int)left);
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return false;
    dl_plugin_fault word;
    const ssize_t got = read(from, &word, sizeof word); /* far below PIPE_BUF: whole or not at all */
    if (got < 0 && errno == EINTR) continue;
    if (got != (ssize_t)sizeof word) return true;
    *last = word;
  }
}

static bool blame(dl_plugin_fault *last, bool in_time, int milliseconds, int status) {
  if (last->what[0] != '\0') return false;
  if (in_time && last->stage == DL_STAGE_DONE) return true;
  snprintf(last->what, sizeof last->what, "the plugin ends its process in %s", doing[last->stage]);
  snprintf(last->expected, sizeof last->expected, "a return");
  if (!in_time) {
    snprintf(last->what, sizeof last->what, "the plugin does not come back from %s", doing[last->stage]);
    snprintf(last->got, sizeof last->got, "nothing within %d ms", milliseconds);
  } else if (WIFSIGNALED(status)) {
    snprintf(last->what, sizeof last->what, "the plugin crashes in %s", doing[last->stage]);
    snprintf(last->got, sizeof last->got, "signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
  } else {
    snprintf(last->got, sizeof last->got, "exit code %d", WEXITSTATUS(status));
  }
  return false;
}

bool dl_plugin_rehearse(const char *path, uint32_t host_level, int milliseconds, dl_plugin_fault *fault) {
  int ends[2], status = 0;
  *fault = (dl_plugin_fault){.stage = DL_STAGE_LOAD};
  if (pipe2(ends, O_CLOEXEC) != 0) {
    snprintf(fault->what, sizeof fault->what, "no pipe to a child process: %s", strerror(errno));
    return false;
  }
  const pid_t child = fork();
  if (child == 0) {
    become_child();
    close(ends[0]);
    perform(path, host_level, ends[1]);
    _exit(0);
  }
  close(ends[1]);
  if (child < 0) {
    snprintf(fault->what, sizeof fault->what, "no child process: %s", strerror(errno));
    close(ends[0]);
    return false;
  }
  const bool in_time = listen_to(ends[0], milliseconds, fault);
  close(ends[0]);
  kill(-child, SIGKILL);
  kill(child, SIGKILL);
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  return blame(fault, in_time, milliseconds, status);
}
