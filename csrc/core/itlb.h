/* How many pages of code the CPU's first instruction TLB remembers. */
#ifndef DL_ITLB_H
#define DL_ITLB_H

/* Entries for pages of 4 KiB, or -1 where the CPU does not tell (no x86, an old one, or a hypervisor that hides it). */
int dl_itlb_entries(void);

#endif
