/* A frame of C between a C++ host and a C++ plugin. Compiled with or without tables for unwinding. */
void through_c(void (*call)(void));
void through_c(void (*call)(void)) {
  call();
  __asm__ volatile("");
}
