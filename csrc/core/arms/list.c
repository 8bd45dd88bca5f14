/* The copy of a handler list that the scanning arms own. */
#include "list.h"

#include <stdlib.h>
#include <string.h>

dl_list *dl_list_copy(const dl_handler_set *set) {
  const size_t bytes = set->count * sizeof(dl_handler *);
  dl_list *list = malloc(sizeof *list + bytes);
  if (list == NULL) return NULL;
  list->handlers = (dl_handler **)(list + 1);
  list->count = set->count;
  memcpy(list->handlers, set->list, bytes);
  return list;
}
